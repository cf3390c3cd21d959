package example;

import com.ordergateway.v1.OrderState;
import com.ordergateway.v1.ReportOrderRequest;
import com.ordergateway.v1.TaskStatus;
import java.io.IOException;
import java.time.Duration;
import java.util.Optional;

/** What the gateway is told of one task: numbered and written down first, then sent until it is answered. */
final class Reports {
  /** Longer than any outage that is left alone. */
  private static final Duration UNTIL_ANSWERED = Duration.ofHours(24);

  private final Leases gateway;
  private final Journal journal;
  private final String taskId;
  private Journal.Entry entry;

  Reports(Leases gateway, Journal journal, String taskId, Journal.Entry entry) {
    this.gateway = gateway;
    this.journal = journal;
    this.taskId = taskId;
    this.entry = entry;
  }

  /** Tells that the order has come so far. */
  static ReportOrderRequest.Builder reached(OrderState state) {
    return ReportOrderRequest.newBuilder().setState(state);
  }

  /** Ends the task where it stands, for a person to look at. */
  ReportOrderRequest.Builder toPerson(String words) {
    return end(TaskStatus.TASK_STATUS_NEEDS_HUMAN, words);
  }

  /** Ends the task where it stands. */
  ReportOrderRequest.Builder end(TaskStatus status, String words) {
    return reached(entry.state()).setTerminal(true).setTerminalStatus(status).setDetail(words);
  }

  /** Throws Refused where the gateway did not take it: it was kept there all the same, and is not sent again. */
  void send(ReportOrderRequest.Builder told) throws IOException {
    ReportOrderRequest report =
        told.setTaskId(taskId)
            .setWorkerId(gateway.workerId())
            .setLeaseToken(entry.leaseToken())
            .setSequence(entry.sequence() + 1)
            .build();
    keep(report.getSequence(), report.getState(), Optional.of(report), false);
    sendUntilAnswered(report);
  }

  /** Sends the report that an earlier process could not, and hands to a person what that one had in hand. */
  void finish() throws IOException {
    if (entry.unsent().isPresent()) {
      sendUntilAnswered(entry.unsent().get());
    }
    if (!entry.ended()) {
      boolean clicked = journal.hasClicked(taskId);
      String words = clicked ? "and may have clicked: look on the site" : "and had not clicked";
      send(toPerson("the worker was started anew, " + words));
    }
  }

  private void sendUntilAnswered(ReportOrderRequest report) throws IOException {
    try {
      gateway.repeated(Deadline.after(UNTIL_ANSWERED), stub -> stub.reportOrder(report));
    } catch (Refused refused) {
      keep(report.getSequence(), report.getState(), Optional.empty(), true);
      throw refused;
    }
    keep(report.getSequence(), report.getState(), Optional.empty(), report.getTerminal());
  }

  private void keep(long sequence, OrderState state, Optional<ReportOrderRequest> unsent, boolean ended)
      throws IOException {
    entry = new Journal.Entry(entry.leaseToken(), sequence, state, unsent, ended);
    journal.store(taskId, entry);
  }
}
