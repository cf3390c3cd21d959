package example;

import com.google.protobuf.util.Durations;
import com.ordergateway.v1.ErrorDetail;
import com.ordergateway.v1.Lease;
import com.ordergateway.v1.LeaseOrdersRequest;
import com.ordergateway.v1.LeaseOrdersResponse;
import com.ordergateway.v1.OrderLeaseServiceGrpc;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Iterator;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** A worker's calls to the gateway. */
final class Leases {
  private static final Duration ONE_TRY = Duration.ofSeconds(10);
  private static final Duration WAIT_FOR_ORDER = Duration.ofSeconds(30);

  /** How much longer a stream is waited for: one that has not ended by then is dead. */
  private static final Duration OVERDUE = Duration.ofSeconds(10);

  private final OrderLeaseServiceGrpc.OrderLeaseServiceBlockingStub stub;
  private final String workerId;

  /** Another one in each process. */
  private final String session = UUID.randomUUID().toString();

  private long streams;

  Leases(ManagedChannel channel, String token, String workerId) {
    this.stub = OrderLeaseServiceGrpc.newBlockingStub(channel).withCallCredentials(Channels.bearer(token));
    this.workerId = workerId;
  }

  String workerId() {
    return workerId;
  }

  /** Opens one stream, which is also the worker's heartbeat, and waits for the lease that it may bring. */
  Optional<Lease> next(String journalId, String account) {
    LeaseOrdersRequest request =
        LeaseOrdersRequest.newBuilder()
            .setWorkerId(workerId)
            .setSessionId(session)
            .setJournalId(journalId)
            .setStreamNumber(++streams)
            .addSites("sandbox")
            .addAccounts(account)
            .setWait(Durations.fromSeconds(WAIT_FOR_ORDER.toSeconds()))
            .build();
    try (Context.CancellableContext whileItIsRead = Context.current().withCancellation()) {
      Context outer = whileItIsRead.attach();
      try {
        long seconds = WAIT_FOR_ORDER.plus(OVERDUE).toSeconds();
        Iterator<LeaseOrdersResponse> messages = stub.withDeadlineAfter(seconds, TimeUnit.SECONDS).leaseOrders(request);
        while (messages.hasNext()) {
          LeaseOrdersResponse message = messages.next();
          if (message.hasLease()) {
            return Optional.of(message.getLease());
          }
        }
        return Optional.empty();
      } finally {
        whileItIsRead.detach(outer);
      }
    }
  }

  /** A call that may be made again, as they all may. */
  interface Call<A> {
    A to(OrderLeaseServiceGrpc.OrderLeaseServiceBlockingStub stub);
  }

  /**
   * Makes a call until it is answered. Throws Refused for an answer that is final, and the last error when the deadline has
   * passed.
   */
  <A> A repeated(Deadline deadline, Call<A> call) {
    return deadline.repeated(ONE_TRY, ms -> once(call, ms));
  }

  private <A> A once(Call<A> call, long ms) {
    try {
      return call.to(stub.withDeadlineAfter(ms, TimeUnit.MILLISECONDS));
    } catch (StatusRuntimeException error) {
      ErrorDetail refusal = Refusals.refusalOf(error).orElseThrow(() -> error);
      throw switch (refusal.getReason()) {
          // A repeat may heal these: they are like a lost connection.
        case ERROR_REASON_STORE_UNAVAILABLE, ERROR_REASON_SHUTTING_DOWN, ERROR_REASON_TOO_MANY, ERROR_REASON_INTERNAL ->
            refusal.hasRetryAfter() ? error : Status.UNAVAILABLE.withCause(error).asRuntimeException();
        default -> new Refused(refusal);
      };
    }
  }
}
