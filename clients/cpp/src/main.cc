// Checks the gateway by grpc++. Where it is, the environment says.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "gateway.h"
#include "refusals.h"

namespace {

using ordergateway::v1::ErrorDetail;
using ordergateway::v1::SubmitOrderRequest;
using ordergateway::v1::Task;
using shop::CallError;
using shop::Connect;
using shop::Gateway;

// No worker serves this site here: what is filed there stays queued.
const std::string kQueue = "rakuten";

std::string Setting(const std::string& name) {
  const char* value = std::getenv(("ORDER_GATEWAY_" + name).c_str());
  if (value == nullptr) throw std::runtime_error("ORDER_GATEWAY_" + name + " is not set");
  return value;
}

SubmitOrderRequest Order(const std::string& task_id, const std::string& site, const std::string& intent) {
  SubmitOrderRequest order;
  order.set_task_id(task_id);
  order.set_site(site);
  order.set_intent_json(intent);
  return order;
}

class Checks {
 public:
  Checks() : gateway_(Connect(Setting("GRPC"), grpc::InsecureChannelCredentials()), token_) {}

  // Runs all checks and prints the closing line; the exit status of the program.
  int Run() {
    Submission("order-" + name_);
    Lists("list-" + name_);
    Refusals();
    LostAnswers();
    Tls("tls-" + name_);
    std::cout << passed_ << " passed, " << failed_ << " failed" << std::endl;
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void That(const std::string& what, bool holds) {
    ++(holds ? passed_ : failed_);
    if (!holds) std::cerr << "failed: " << what << std::endl;
  }

  // The error that a call must end with.
  template <typename Call>
  static CallError Failing(Call call) {
    try {
      call();
    } catch (const CallError& error) {
      return error;
    }
    throw std::logic_error("a call that must be refused was not");
  }

  void Submission(const std::string& task_id) {
    // The intent is handed on as it is; a number beyond what a program counts exactly travels in it unharmed.
    const std::string intent = R"({"item_url": ")" + Setting("SHOP") +
                               R"(/item/sandbox-store/sencha-100g/", "quantity": 1, "max_total_yen": 5000, )" +
                               R"("reference": 12345678901234567890, "note": "煎茶を一袋"})";
    auto order = Order(task_id, "sandbox", intent);
    order.set_max_total_yen(5000);
    That("submit: makes a task", gateway_.Submit(order).created());
    const auto again = gateway_.Submit(order);
    That("submit again: is the same task",
         !again.created() && again.task_id() == task_id && again.differs().empty());
    const auto other = gateway_.Submit(Order(task_id, "sandbox", "{}"));
    That("submit another intent: changes nothing, and says so",
         std::count(other.differs().begin(), other.differs().end(), "intent_json") == 1);
    That("get: 20 digits and Japanese are as they were sent", gateway_.Get(task_id).intent_json() == intent);

    const Task task = gateway_.Watch(task_id, std::chrono::minutes(1), [](const Task&) {});
    That("watch: ends with the order paid", task.status() == ordergateway::v1::TASK_STATUS_SUCCEEDED &&
                                                task.latest_state() == ordergateway::v1::ORDER_STATE_PAID);
  }

  void Lists(const std::string& prefix) {
    std::vector<SubmitOrderRequest> batch;
    for (const char* number : {"-1", "-2", "-3"}) {
      batch.push_back(Order(prefix + number, kQueue, "{}"));
      (*batch.back().mutable_labels())["batch"] = prefix;
    }
    batch.push_back(Order(prefix + "-4", kQueue, "no JSON"));
    const auto results = gateway_.SubmitMany(batch).results();
    int filed = 0;
    for (const auto& result : results) filed += result.submitted().created() ? 1 : 0;
    That("batch: files three", filed == 3);
    That("batch: refuses one, and names its field", results.at(3).refusal().field() == "orders[3].intent_json");

    ordergateway::v1::ListOrdersRequest wanted;
    wanted.set_page_size(2);
    (*wanted.mutable_filter()->mutable_labels())["batch"] = prefix;
    std::string listed;
    gateway_.List(wanted, [&](const Task& task) { listed += task.task_id().substr(prefix.size()); });
    That("list: gives each once, over two pages", listed == "-3-2-1");
  }

  void Refusals() {
    const auto refusal = [](auto call) { return Failing(call).Refusal().value_or(ErrorDetail()); };
    const ErrorDetail unknown = refusal([&] { gateway_.Get("unknown-" + name_); });
    That("an unknown task: has its reason", unknown.reason() == ordergateway::v1::ERROR_REASON_TASK_NOT_FOUND);
    const ErrorDetail malformed = refusal([&] { gateway_.Submit(Order("m-" + name_, kQueue, "{")); });
    That("a malformed intent: names the field",
         malformed.violations_size() == 1 && malformed.violations(0).field() == "intent_json");
    const Gateway stranger(Connect(Setting("GRPC"), grpc::InsecureChannelCredentials()), "a-token-that-nobody-knows");
    const ErrorDetail wrong = refusal([&] { stranger.Get("unknown-" + name_); });
    That("a wrong token: has its reason", wrong.reason() == ordergateway::v1::ERROR_REASON_UNAUTHENTICATED);

    const std::string task_id = "wait-" + name_;
    gateway_.Submit(Order(task_id, kQueue, "{}"));
    const CallError late =
        Failing([&] { gateway_.Watch(task_id, std::chrono::milliseconds(300), [](const Task&) {}); });
    That("a deadline: is told as such", late.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  }

  void LostAnswers() {
    const Gateway lossy(Connect(Setting("LOSSY_GRPC"), grpc::InsecureChannelCredentials()), token_);
    const auto lost = lossy.Submit(Order("lost-submit-" + name_, kQueue, "{}"));
    That("a lost answer: the same task_id makes no second task", !lost.created() && lost.differs().empty());
    const std::string task_id = "lost-watch-" + name_;
    gateway_.Submit(Order(task_id, kQueue, "{}"));
    gateway_.Cancel(task_id, "nobody needs it");
    std::vector<ordergateway::v1::TaskStatus> seen;
    lossy.Watch(task_id, std::chrono::seconds(30), [&](const Task& task) { seen.push_back(task.status()); });
    That("a lost stream: is watched again, to the end",
         seen == std::vector<ordergateway::v1::TaskStatus>{ordergateway::v1::TASK_STATUS_FAILED});
  }

  void Tls(const std::string& task_id) {
    std::ifstream file(Setting("CA"));
    std::stringstream pem;
    pem << file.rdbuf();
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = pem.str();
    const std::string target = Setting("TLS_GRPC");
    const Gateway trusting(Connect(target, grpc::SslCredentials(options)), token_);
    That("TLS: with the CA it is a call as any other", trusting.Submit(Order(task_id, kQueue, "{}")).created());
    const Gateway strange(Connect(target, grpc::SslCredentials({})), token_, std::chrono::seconds(1));
    That("TLS: without the CA there is no call", !Failing([&] { strange.Get(task_id); }).Refusal().has_value());
  }

  const std::string token_ = Setting("TOKEN");
  // Task ids hold this: each run needs ids of its own.
  const std::string name_ = "cpp-" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  const Gateway gateway_;
  int passed_ = 0;
  int failed_ = 0;
};

}  // namespace

int main() {
  try {
    return Checks().Run();
  } catch (const std::exception& error) {
    std::cerr << "failed: " << error.what() << std::endl;
    return 1;
  }
}
