package example;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.ordergateway.v1.ErrorDetail;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/** What the gateway said when a call failed, and whether the same call may be sent again. */
final class Refusals {
  private static final long FIRST_PAUSE_MS = 100;
  private static final long LONGEST_PAUSE_MS = 5_000;

  /** How often a call is sent again where something other than the gateway says that it cannot be served. */
  private static final int TRIES_WITHOUT_A_GATEWAY = 3;

  private Refusals() {}

  /**
   * The gateway's own word for a call that failed: branch on its reason. Empty where the gateway did not answer: then
   * nothing is known of what became of the call, whatever the code says.
   */
  static Optional<ErrorDetail> refusalOf(StatusRuntimeException error) {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    if (status == null) {
      return Optional.empty();
    }
    for (Any detail : status.getDetailsList()) {
      if (detail.is(ErrorDetail.class)) {
        try {
          return Optional.of(detail.unpack(ErrorDetail.class));
        } catch (InvalidProtocolBufferException unreadable) {
          return Optional.empty();
        }
      }
    }
    return Optional.empty();
  }

  /**
   * How long to wait before the same call is sent again; empty: it is not. {@code tries} counts those that failed before
   * this one. The pause is jittered, so that many clients do not come back at the same moment.
   */
  static Optional<Duration> pauseBeforeRetry(StatusRuntimeException error, int tries) {
    long longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(tries, 10));
    Duration pause = Duration.ofMillis(longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2));
    Status.Code code = error.getStatus().getCode();
    Optional<ErrorDetail> refusal = refusalOf(error);
    if (refusal.isPresent()) {
      if (refusal.get().hasRetryAfter()) {
        com.google.protobuf.Duration told = refusal.get().getRetryAfter();
        Duration asTold = Duration.ofSeconds(told.getSeconds(), told.getNanos());
        return Optional.of(asTold.compareTo(pause) > 0 ? asTold : pause);
      }
      return code == Status.Code.UNAVAILABLE ? Optional.of(pause) : Optional.empty();
    }
    // A lost connection shows as one of many codes, so only two of them mean something: a proxy or an older server.
    boolean nobodyServesThis = code == Status.Code.UNIMPLEMENTED || code == Status.Code.RESOURCE_EXHAUSTED;
    return nobodyServesThis && tries >= TRIES_WITHOUT_A_GATEWAY ? Optional.empty() : Optional.of(pause);
  }
}
