#include "refusals.h"

#include <algorithm>
#include <random>

#include "google/rpc/status.pb.h"

namespace shop {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{5000};
// How often a call is sent again where something other than the gateway says that it cannot be served.
constexpr int kTriesWithoutGateway = 3;

}  // namespace

std::optional<ordergateway::v1::ErrorDetail> CallError::Refusal() const {
  google::rpc::Status told;
  ordergateway::v1::ErrorDetail refusal;
  if (!told.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& detail : told.details()) {
    if (detail.UnpackTo(&refusal)) return refusal;
  }
  return std::nullopt;
}

std::optional<milliseconds> PauseBeforeRetry(const CallError& error, int tries) {
  static thread_local std::mt19937 random{std::random_device{}()};
  const milliseconds longest = std::min(kLongestPause, kFirstPause * (1 << std::min(tries, 10)));
  const milliseconds pause{std::uniform_int_distribution<long>(longest.count() / 2, longest.count())(random)};
  const grpc::StatusCode code = error.status.error_code();
  if (const auto refusal = error.Refusal()) {
    if (refusal->has_retry_after()) {
      const auto& told = refusal->retry_after();
      return std::max(pause, milliseconds{told.seconds() * 1000 + told.nanos() / 1'000'000});
    }
    if (code == grpc::StatusCode::UNAVAILABLE) return pause;
    return std::nullopt;
  }
  // A lost connection shows as one of many codes, so only two of them mean something: a proxy or an older server.
  const bool nobody_serves_this =
      code == grpc::StatusCode::UNIMPLEMENTED || code == grpc::StatusCode::RESOURCE_EXHAUSTED;
  if (nobody_serves_this && tries >= kTriesWithoutGateway) return std::nullopt;
  return pause;
}

}  // namespace shop
