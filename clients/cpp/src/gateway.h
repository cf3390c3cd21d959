// An upstream's client of the gateway. Every call throws CallError where it is refused, or not answered in time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "ordergateway/v1/orders.grpc.pb.h"

namespace shop {

// A channel in plain text, for loopback and private networks, or with the credentials of grpc::SslCredentials. Make one
// and share it: it is a connection, which it opens again by itself.
std::shared_ptr<grpc::Channel> Connect(const std::string& target,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Whether nothing more happens to a task by itself.
bool HasEnded(const ordergateway::v1::Task& task);

// Repeats calls that were not answered, until a deadline.
class Gateway {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Told = std::function<void(const ordergateway::v1::Task&)>;

  // `within` bounds each call with all of its repeats.
  Gateway(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
          Milliseconds within = std::chrono::seconds(30));

  // Files an order. A lost answer is healed by sending the same request again, which needs a task_id of your own: keep it
  // with the thing that is to be bought, before the first call.
  ordergateway::v1::SubmitOrderResponse Submit(const ordergateway::v1::SubmitOrderRequest& order) const;

  // Files up to 500 orders by one commit; each result tells of the order in its place.
  ordergateway::v1::SubmitOrdersResponse SubmitMany(
      const std::vector<ordergateway::v1::SubmitOrderRequest>& orders) const;

  ordergateway::v1::Task Get(const std::string& task_id) const;

  // Hands on all tasks that match, newest first, page by page.
  void List(ordergateway::v1::ListOrdersRequest wanted, const Told& told) const;

  // Ends a task that no worker has taken yet, as failed.
  ordergateway::v1::Task Cancel(const std::string& task_id, const std::string& reason) const;

  // Hands on the task as it is, then after each change, until it has ended; returns it then. Where the stream breaks it is
  // opened again, and what was seen already is not told twice.
  ordergateway::v1::Task Watch(const std::string& task_id, Milliseconds within, const Told& told) const;

 private:
  using Clock = std::chrono::system_clock;  // what a gRPC deadline is made of

  template <typename Request, typename Answer>
  using Call = grpc::Status (ordergateway::v1::OrderService::StubInterface::*)(grpc::ClientContext*, const Request&,
                                                                                Answer*);

  template <typename Request, typename Answer>
  Answer Repeated(Call<Request, Answer> call, const Request& request) const;

  void Prepare(grpc::ClientContext* context, Clock::time_point deadline) const;

  std::unique_ptr<ordergateway::v1::OrderService::StubInterface> orders_;
  std::string authorization_;
  Milliseconds within_;
};

}  // namespace shop
