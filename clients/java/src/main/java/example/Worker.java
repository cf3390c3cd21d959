package example;

import com.ordergateway.v1.Lease;
import com.ordergateway.v1.OrderState;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Serves one account of the sandbox shop, an order at a time, until its process is ended. It keeps the promises of
 * docs/clients.md#a-worker-in-another-language, with one thing left out: it verifies nothing, so a task that was leased
 * before goes to a person. Where everything is, the environment says.
 */
final class Worker {
  private static final System.Logger LOG = System.getLogger("worker");

  private final Leases gateway;
  private final Journal journal;
  private final String account;
  private final Purchase.Customer customer;

  /** {@code account} is the account's name at the gateway; empty: the site's only one. */
  Worker(Leases gateway, Journal journal, String account, Purchase.Customer customer) {
    this.gateway = gateway;
    this.journal = journal;
    this.account = account;
    this.customer = customer;
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    ManagedChannel channel = Channels.plain(Checks.setting("GRPC"));
    Leases gateway = new Leases(channel, Checks.setting("WORKER_TOKEN"), "java-worker");
    String account = Optional.ofNullable(System.getenv("ORDER_GATEWAY_ACCOUNT")).orElse("");
    Purchase.Customer customer =
        new Purchase.Customer(Checks.setting("SHOP"), "java@accounts.sandbox.example", "sandbox");
    try (Journal journal = new Journal(Path.of(Checks.setting("JOURNAL")))) {
      new Worker(gateway, journal, account, customer).run();
    } finally {
      channel.shutdownNow();
    }
  }

  /** Throws what no repeat would heal, such as a token that the gateway does not know. */
  private void run() throws IOException, InterruptedException {
    finishFormerLife();
    for (int tries = 0; ; ) {
      Optional<Lease> lease;
      try {
        lease = gateway.next(journal.id(), account);
        tries = 0;
      } catch (StatusRuntimeException error) {
        LOG.log(System.Logger.Level.WARNING, "no lease stream: {0}", error.getMessage());
        Thread.sleep(Refusals.pauseBeforeRetry(error, tries++).orElseThrow(() -> error).toMillis());
        continue;
      }
      if (lease.isPresent()) {
        serve(lease.get());
      }
    }
  }

  /**
   * Takes a lease, from the acknowledgement to the last report. Throws the error of a report that nobody answers: then the
   * process ends, and its successor sends it.
   */
  private void serve(Lease lease) throws IOException {
    String taskId = lease.getTaskId();
    Journal.Entry known = journal.load(taskId);
    if (known.leaseToken().equals(lease.getLeaseToken()) || !lease.getAccount().equals(account)) {
      LOG.log(System.Logger.Level.WARNING, "{0}: the lease was taken before, or is for somebody else", taskId);
      return;
    }
    Optional<Hold> acknowledged = acknowledged(lease);
    if (acknowledged.isEmpty()) {
      return;
    }
    try (Hold held = acknowledged.get()) {
      Journal.Entry taken =
          new Journal.Entry(
              lease.getLeaseToken(), known.sequence(), OrderState.ORDER_STATE_CREATED, Optional.empty(), false);
      journal.store(taskId, taken);
      Reports reports = new Reports(gateway, journal, taskId, taken);
      new Purchase(gateway, journal, held, lease, reports).make(customer);
    } catch (Refused | LeaseLost error) {
      LOG.log(System.Logger.Level.WARNING, "{0}: {1}", taskId, error.getMessage());
    }
  }

  private Optional<Hold> acknowledged(Lease lease) {
    try {
      return Optional.of(Hold.acknowledge(gateway, lease));
    } catch (Refused | StatusRuntimeException error) {
      LOG.log(System.Logger.Level.WARNING, "{0}: not acknowledged: {1}", lease.getTaskId(), error.getMessage());
      return Optional.empty();
    }
  }

  /** Tells what an earlier process left unsaid, before the first order is taken. */
  private void finishFormerLife() throws IOException {
    for (String taskId : journal.tasks()) {
      Journal.Entry known = journal.load(taskId);
      if (known.ended()) {
        continue;
      }
      try {
        new Reports(gateway, journal, taskId, known).finish();
      } catch (Refused refused) {
        // The lease has ended meanwhile: the gateway keeps what is told late, and its refusal is an answer too.
        LOG.log(System.Logger.Level.WARNING, "{0}: {1}", taskId, refused.getMessage());
      }
    }
  }
}
