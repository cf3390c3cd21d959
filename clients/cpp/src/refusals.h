// What the gateway said when a call failed, and whether the same call may be sent again.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>

#include <grpcpp/grpcpp.h>

#include "ordergateway/v1/errors.pb.h"

namespace shop {

// A call that was not answered, or was refused.
class CallError : public std::runtime_error {
 public:
  explicit CallError(const grpc::Status& status) : std::runtime_error(status.error_message()), status(status) {}

  // The gateway's own word: branch on its reason. Nothing where the gateway did not answer: then nothing is known of
  // what became of the call, whatever the code says.
  std::optional<ordergateway::v1::ErrorDetail> Refusal() const;

  const grpc::Status status;
};

// How long to wait before the same call is sent again; nothing: it is not. `tries` counts those that failed before this
// one. The pause is jittered, so that many clients do not come back at the same moment.
std::optional<std::chrono::milliseconds> PauseBeforeRetry(const CallError& error, int tries);

}  // namespace shop
