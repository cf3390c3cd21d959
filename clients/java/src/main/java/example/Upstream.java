package example;

import com.ordergateway.v1.ErrorDetail;
import com.ordergateway.v1.ErrorReason;
import com.ordergateway.v1.ListOrdersRequest;
import com.ordergateway.v1.OrderState;
import com.ordergateway.v1.SubmitOrderRequest;
import com.ordergateway.v1.SubmitOrderResponse;
import com.ordergateway.v1.SubmitOrdersResult;
import com.ordergateway.v1.Task;
import com.ordergateway.v1.TaskFilter;
import com.ordergateway.v1.TaskStatus;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Checks the gateway as an upstream. Where it is, the environment says. */
final class Upstream {
  /** No worker serves this site here: what is filed there stays queued. */
  private static final String QUEUE = "rakuten";

  private static final Duration CALL = Duration.ofSeconds(30);

  private final Checks checks = new Checks();
  private final String token = Checks.setting("TOKEN");
  private final String name = "java-" + System.currentTimeMillis();
  private final List<ManagedChannel> channels = new ArrayList<>();
  private final ManagedChannel plain = kept(Channels.plain(Checks.setting("GRPC")));
  private final Gateway gateway = new Gateway(plain, token, CALL);

  public static void main(String[] arguments) throws IOException {
    System.exit(new Upstream().run());
  }

  private int run() throws IOException {
    try {
      checkSubmission("order-" + name);
      checkLists("list-" + name);
      checkRefusals();
      checkLostAnswers();
      checkTls("tls-" + name);
    } finally {
      channels.forEach(ManagedChannel::shutdownNow);
    }
    return checks.end();
  }

  private ManagedChannel kept(ManagedChannel channel) {
    channels.add(channel);
    return channel;
  }

  private static SubmitOrderRequest.Builder order(String taskId, String site, String intent) {
    return SubmitOrderRequest.newBuilder().setTaskId(taskId).setSite(site).setIntentJson(intent);
  }

  private void checkSubmission(String taskId) {
    // The intent is handed on as it is; a number beyond what a program counts exactly travels in it unharmed.
    String intent =
        """
        {"item_url": "%s/item/sandbox-store/sencha-100g/", "quantity": 1, "max_total_yen": 5000,
         "reference": 12345678901234567890, "note": "煎茶を一袋"}"""
            .formatted(Checks.setting("SHOP"));
    SubmitOrderRequest order = order(taskId, "sandbox", intent).setMaxTotalYen(5000).build();
    checks.that("submit: makes a task", gateway.submit(order).getCreated());
    SubmitOrderResponse again = gateway.submit(order);
    boolean same = again.getTaskId().equals(taskId) && again.getDiffersCount() == 0;
    checks.that("submit again: is the same task", !again.getCreated() && same);
    SubmitOrderResponse other = gateway.submit(order(taskId, "sandbox", "{}").build());
    checks.that(
        "submit another intent: changes nothing, and says so",
        other.getDiffersList().contains("intent_json"));
    checks.that(
        "get: 20 digits and Japanese are as they were sent",
        gateway.get(taskId).getIntentJson().equals(intent));

    List<TaskStatus> seen = new ArrayList<>();
    Task task = gateway.watch(taskId, Duration.ofMinutes(1), change -> seen.add(change.getStatus()));
    checks.that(
        "watch: ends with the order paid",
        task.getStatus() == TaskStatus.TASK_STATUS_SUCCEEDED
            && task.getLatestState() == OrderState.ORDER_STATE_PAID);
    checks.that("watch: the end is the last thing told", seen.indexOf(task.getStatus()) == seen.size() - 1);
  }

  private void checkLists(String prefix) {
    Stream<SubmitOrderRequest> orders =
        IntStream.rangeClosed(1, 3)
            .mapToObj(number -> order(prefix + "-" + number, QUEUE, "{}").putLabels("batch", prefix).build());
    SubmitOrderRequest broken = order(prefix + "-4", QUEUE, "no JSON").build();
    List<SubmitOrdersResult> results = gateway.submitMany(Stream.concat(orders, Stream.of(broken)).toList());
    checks.that(
        "batch: files three",
        results.stream().filter(result -> result.getSubmitted().getCreated()).count() == 3);
    checks.that(
        "batch: refuses one, and names its field",
        results.get(3).getRefusal().getField().equals("orders[3].intent_json"));

    List<String> listed = new ArrayList<>();
    TaskFilter filter = TaskFilter.newBuilder().putLabels("batch", prefix).build();
    gateway.list(
        ListOrdersRequest.newBuilder().setPageSize(2).setFilter(filter).build(),
        task -> listed.add(task.getTaskId()));
    List<String> newestFirst = List.of(prefix + "-3", prefix + "-2", prefix + "-1");
    checks.that("list: gives each once, over two pages", listed.equals(newestFirst));
  }

  private void checkRefusals() {
    ErrorDetail unknown = refusal(() -> gateway.get("unknown-" + name));
    checks.that(
        "an unknown task: has its reason", unknown.getReason() == ErrorReason.ERROR_REASON_TASK_NOT_FOUND);
    ErrorDetail malformed = refusal(() -> gateway.submit(order("m-" + name, QUEUE, "{").build()));
    checks.that(
        "a malformed intent: names the field",
        malformed.getViolationsCount() == 1 && malformed.getViolations(0).getField().equals("intent_json"));
    Gateway stranger = new Gateway(plain, "a-token-that-nobody-knows", CALL);
    ErrorDetail wrong = refusal(() -> stranger.get("unknown-" + name));
    checks.that("a wrong token: has its reason", wrong.getReason() == ErrorReason.ERROR_REASON_UNAUTHENTICATED);

    String taskId = "wait-" + name;
    gateway.submit(order(taskId, QUEUE, "{}").build());
    StatusRuntimeException late = failing(() -> gateway.watch(taskId, Duration.ofMillis(300), change -> {}));
    checks.that("a deadline: is told as such", late.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED);
  }

  private void checkLostAnswers() {
    Gateway lossy = new Gateway(kept(Channels.plain(Checks.setting("LOSSY_GRPC"))), token, CALL);
    SubmitOrderResponse lost = lossy.submit(order("lost-submit-" + name, QUEUE, "{}").build());
    checks.that(
        "a lost answer: the same task_id makes no second task",
        !lost.getCreated() && lost.getDiffersCount() == 0);
    String taskId = "lost-watch-" + name;
    gateway.submit(order(taskId, QUEUE, "{}").build());
    gateway.cancel(taskId, "nobody needs it");
    List<TaskStatus> seen = new ArrayList<>();
    lossy.watch(taskId, CALL, task -> seen.add(task.getStatus()));
    checks.that(
        "a lost stream: is watched again, to the end", seen.equals(List.of(TaskStatus.TASK_STATUS_FAILED)));
  }

  private void checkTls(String taskId) throws IOException {
    String target = Checks.setting("TLS_GRPC");
    ManagedChannel trusting = kept(Channels.tls(target, new File(Checks.setting("CA"))));
    SubmitOrderResponse trusted = new Gateway(trusting, token, CALL).submit(order(taskId, QUEUE, "{}").build());
    checks.that("TLS: with the CA it is a call as any other", trusted.getCreated());
    Gateway strange = new Gateway(kept(Channels.tls(target)), token, Duration.ofSeconds(1));
    StatusRuntimeException error = failing(() -> strange.get(taskId));
    checks.that("TLS: without the CA there is no call", Refusals.refusalOf(error).isEmpty());
  }

  /** The error that a call must end with. */
  private static StatusRuntimeException failing(Runnable call) {
    try {
      call.run();
    } catch (StatusRuntimeException error) {
      return error;
    }
    throw new AssertionError("a call that must be refused was not");
  }

  private static ErrorDetail refusal(Runnable call) {
    return Refusals.refusalOf(failing(call)).orElse(ErrorDetail.getDefaultInstance());
  }
}
