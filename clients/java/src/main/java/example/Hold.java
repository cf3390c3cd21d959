package example;

import com.google.protobuf.util.Durations;
import com.ordergateway.v1.Lease;
import com.ordergateway.v1.RenewLeaseRequest;
import io.grpc.StatusRuntimeException;
import java.time.Duration;

/** Keeps a lease, by a thread that renews it, until it is closed. */
final class Hold implements AutoCloseable {
  private static final long LONGEST_PAUSE_MS = 60_000;

  /** How long before its end a lease is trusted no more, at most a fifth of it. */
  private static final long MARGIN_MS = 5_000;

  private final Leases gateway;
  private final RenewLeaseRequest request;
  private final long ttlMs;
  private final Thread keeper = new Thread(this::keep, "keeps the lease");
  private volatile Moment until = Moment.now();
  private volatile boolean lost;

  private Hold(Leases gateway, Lease lease) {
    this.gateway = gateway;
    this.request =
        RenewLeaseRequest.newBuilder()
            .setTaskId(lease.getTaskId())
            .setWorkerId(gateway.workerId())
            .setLeaseToken(lease.getLeaseToken())
            .build();
    this.ttlMs = Durations.toMillis(lease.getLeaseTtl());
    keeper.setDaemon(true);
  }

  /**
   * Makes the first renewal, before which nothing may be done, and keeps renewing. Throws Refused, or the last error where
   * nobody answered in time.
   */
  static Hold acknowledge(Leases gateway, Lease lease) {
    Hold hold = new Hold(gateway, lease);
    hold.renew(Durations.toMillis(lease.getAcknowledgeWithin()));
    hold.keeper.start();
    return hold;
  }

  /** Whether the lease may be acted on now. */
  boolean isTrusted() {
    return !lost && until.isToCome();
  }

  /** Throws LeaseLost where the lease may not be acted on: asked before each write to the site. */
  void ensure() {
    if (!isTrusted()) {
      throw new LeaseLost();
    }
  }

  @Override
  public void close() {
    lost = true;
    keeper.interrupt();
  }

  /** Counts from the moment at which the request was sent, not from its answer. */
  private void renew(long withinMs) {
    until =
        gateway.repeated(
            Deadline.after(Duration.ofMillis(withinMs)),
            stub -> {
              Moment sent = Moment.now();
              long ms = Durations.toMillis(stub.renewLease(request).getLeaseTtl());
              return sent.plus(Duration.ofMillis(ms - Math.min(MARGIN_MS, ms / 5)));
            });
  }

  private void keep() {
    while (isTrusted()) {
      try {
        Thread.sleep(Math.min(LONGEST_PAUSE_MS, ttlMs / 3));
        renew(ttlMs);
      } catch (Refused refused) {
        lost = true;
      } catch (StatusRuntimeException unanswered) {
        // Once it is too late the lease is not trusted, and this ends.
      } catch (InterruptedException closed) {
        return;
      }
    }
  }
}
