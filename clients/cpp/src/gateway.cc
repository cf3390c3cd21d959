#include "gateway.h"

#include <algorithm>
#include <thread>

#include <google/protobuf/util/message_differencer.h>

#include "refusals.h"

namespace shop {

using google::protobuf::util::MessageDifferencer;
using ordergateway::v1::OrderService;
using ordergateway::v1::Task;
using std::chrono::system_clock;

namespace {

// One try gets no longer than this of a call's deadline: a connection may be dead without saying so.
constexpr std::chrono::seconds kOneTry{10};

// Waits until a call may be sent again; throws its error where it may not, or not before the deadline.
void PauseOrThrow(const CallError& error, int tries, system_clock::time_point deadline) {
  const auto pause = PauseBeforeRetry(error, tries);
  if (!pause || system_clock::now() + *pause >= deadline) throw error;
  std::this_thread::sleep_for(*pause);
}

}  // namespace

std::shared_ptr<grpc::Channel> Connect(const std::string& target,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // The gateway ends a connection that pings more often than every 5 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  // Retries are this file's, under the same task_id.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // gRPC would take http_proxy of the environment for loopback too. Leave this out where a proxy leads to the gateway.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

bool HasEnded(const Task& task) {
  switch (task.status()) {
    case ordergateway::v1::TASK_STATUS_SUCCEEDED:
    case ordergateway::v1::TASK_STATUS_FAILED:
    case ordergateway::v1::TASK_STATUS_NEEDS_HUMAN:
      return true;
    default:
      return false;
  }
}

Gateway::Gateway(const std::shared_ptr<grpc::Channel>& channel, const std::string& token, Milliseconds within)
    : orders_(OrderService::NewStub(channel)), authorization_("Bearer " + token), within_(within) {}

ordergateway::v1::SubmitOrderResponse Gateway::Submit(const ordergateway::v1::SubmitOrderRequest& order) const {
  if (order.task_id().empty()) {
    throw std::invalid_argument("an order without a task_id of your own cannot be sent again");
  }
  return Repeated(&OrderService::StubInterface::SubmitOrder, order);
}

ordergateway::v1::SubmitOrdersResponse Gateway::SubmitMany(
    const std::vector<ordergateway::v1::SubmitOrderRequest>& orders) const {
  ordergateway::v1::SubmitOrdersRequest request;
  request.mutable_orders()->Assign(orders.begin(), orders.end());
  return Repeated(&OrderService::StubInterface::SubmitOrders, request);
}

Task Gateway::Get(const std::string& task_id) const {
  ordergateway::v1::GetOrderRequest request;
  request.set_task_id(task_id);
  return Repeated(&OrderService::StubInterface::GetOrder, request).task();
}

void Gateway::List(ordergateway::v1::ListOrdersRequest wanted, const Told& told) const {
  do {
    const auto page = Repeated(&OrderService::StubInterface::ListOrders, wanted);
    for (const Task& task : page.tasks()) told(task);  // a page may be empty and yet not be the last one
    wanted.set_page_token(page.next_page_token());
  } while (!wanted.page_token().empty());
}

Task Gateway::Cancel(const std::string& task_id, const std::string& reason) const {
  ordergateway::v1::CancelOrderRequest request;
  request.set_task_id(task_id);
  request.set_reason(reason);
  return Repeated(&OrderService::StubInterface::CancelOrder, request).task();
}

Task Gateway::Watch(const std::string& task_id, Milliseconds within, const Told& told) const {
  const auto deadline = Clock::now() + within;
  ordergateway::v1::WatchOrderRequest request;
  request.set_task_id(task_id);
  Task seen;
  for (int tries = 0;; ++tries) {
    grpc::ClientContext context;
    Prepare(&context, deadline);
    const auto stream = orders_->WatchOrder(&context, request);
    ordergateway::v1::WatchOrderResponse message;
    while (stream->Read(&message)) {
      tries = 0;
      if (!message.has_task() || MessageDifferencer::Equals(message.task(), seen)) continue;
      seen = message.task();
      told(seen);
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok()) {
      PauseOrThrow(CallError(status), tries, deadline);
    } else if (HasEnded(seen)) {
      return seen;
    }
  }
}

template <typename Request, typename Answer>
Answer Gateway::Repeated(Call<Request, Answer> call, const Request& request) const {
  const auto deadline = Clock::now() + within_;
  for (int tries = 0;; ++tries) {
    grpc::ClientContext context;
    Prepare(&context, std::min<Clock::time_point>(deadline, Clock::now() + kOneTry));
    Answer answer;
    const grpc::Status status = (orders_.get()->*call)(&context, request, &answer);
    if (status.ok()) return answer;
    PauseOrThrow(CallError(status), tries, deadline);
  }
}

void Gateway::Prepare(grpc::ClientContext* context, Clock::time_point deadline) const {
  // By hand, since gRPC refuses call credentials on a channel in plain text.
  context->AddMetadata("authorization", authorization_);
  context->set_deadline(deadline);
}

}  // namespace shop
