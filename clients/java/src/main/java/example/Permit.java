package example;

import com.google.protobuf.util.Durations;
import com.ordergateway.v1.ErrorReason;
import com.ordergateway.v1.Lease;
import com.ordergateway.v1.RequestSubmitPermitRequest;
import java.io.IOException;
import java.time.Duration;
import java.util.Optional;

/** The gateway's consent to one click, which must begin before its time is over. */
record Permit(Moment until, Shop.Confirmation shown) {
  /** How long to wait while a person has paused dispatch. */
  private static final long PAUSE_MS = 2_000;

  private static final Duration AS_LONG_AS_THE_LEASE_LIVES = Duration.ofHours(24);

  /**
   * Asks until it is granted or refused for good, while the lease lives. After a wait the confirmation page is opened again:
   * empty where it shows something else by then. Throws Refused, LeaseLost, or what kept the shop or the gateway from
   * answering.
   */
  static Optional<Permit> ask(
      Leases gateway, Hold held, Lease lease, String journalId, Shop shop, Shop.Confirmation first)
      throws IOException {
    RequestSubmitPermitRequest request =
        RequestSubmitPermitRequest.newBuilder()
            .setTaskId(lease.getTaskId())
            .setWorkerId(gateway.workerId())
            .setLeaseToken(lease.getLeaseToken())
            .setJournalId(journalId)
            .setAttestsNoClickRecord(true)
            .setTerms(first.terms())
            .build();
    Shop.Confirmation shown = first;
    while (true) {
      try {
        return Optional.of(new Permit(granted(gateway, held, request), shown));
      } catch (Refused refused) {
        if (refused.detail().getReason() != ErrorReason.ERROR_REASON_DISPATCH_PAUSED) {
          throw refused;
        }
      }
      pause();
      shown = shop.confirm();
      if (!shown.terms().equals(first.terms())) {
        return Optional.empty();
      }
    }
  }

  /** The moment until which the click may begin, counted from when the request was sent. */
  private static Moment granted(Leases gateway, Hold held, RequestSubmitPermitRequest request) {
    return gateway.repeated(
        Deadline.after(AS_LONG_AS_THE_LEASE_LIVES),
        stub -> {
          held.ensure();
          Moment sent = Moment.now();
          long ms = Durations.toMillis(stub.requestSubmitPermit(request).getValidFor());
          return sent.plus(Duration.ofMillis(ms));
        });
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
