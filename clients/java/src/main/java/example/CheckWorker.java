package example;

import com.ordergateway.v1.OrderState;
import com.ordergateway.v1.Placement;
import com.ordergateway.v1.SubmitOrderRequest;
import com.ordergateway.v1.Task;
import com.ordergateway.v1.TaskStatus;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Checks the worker: files orders for an account of its own, and looks at what becomes of them and of the shop. */
final class CheckWorker {
  private static final String ACCOUNT = "java";
  private static final Pattern PLACED = Pattern.compile("\"orders_placed\": *(\\d+)");

  private final Checks checks = new Checks();
  private final String shop = Checks.setting("SHOP");
  private final Gateway gateway;

  private CheckWorker(ManagedChannel channel) {
    gateway = new Gateway(channel, Checks.setting("TOKEN"), Duration.ofSeconds(30));
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    ManagedChannel channel = Channels.plain(Checks.setting("GRPC"));
    Path journal = Files.createTempDirectory("journal-");
    Process worker = started(journal);
    CheckWorker upstream = new CheckWorker(channel);
    try {
      upstream.checkOrders();
    } finally {
      worker.destroy();
      worker.waitFor();
      channel.shutdownNow();
      remove(journal);
    }
    System.exit(upstream.checks.end());
  }

  private void checkOrders() throws IOException, InterruptedException {
    long before = ordersPlaced();
    Task paid = ended("paid", SubmitOrderRequest.newBuilder().setMaxTotalYen(5000));
    boolean isPaid = paid.getLatestState() == OrderState.ORDER_STATE_PAID;
    checks.that("an order: is paid", paid.getStatus() == TaskStatus.TASK_STATUS_SUCCEEDED && isPaid);
    boolean withTerms = paid.getTerms().getItemsCount() == 1;
    checks.that("an order: was permitted, with its terms", paid.hasSubmitPermittedAt() && withTerms);

    Task dear = ended("dear", SubmitOrderRequest.newBuilder().setMaxTotalYen(1));
    int code = dear.getReports(dear.getReportsCount() - 1).getErrorCode();
    boolean forPerson = dear.getStatus() == TaskStatus.TASK_STATUS_NEEDS_HUMAN;
    checks.that("a cap of 1 yen: is for a person", forPerson && code == 5004);
    boolean impossible = dear.getPlacement() == Placement.PLACEMENT_IMPOSSIBLE;
    checks.that("a cap of 1 yen: nothing can be ordered", impossible);

    Task dry = ended("dry", SubmitOrderRequest.newBuilder().setStopBeforeSubmit(true));
    boolean inCart = dry.getLatestState() == OrderState.ORDER_STATE_IN_CART;
    checks.that("a dry run: ends in the cart", dry.getStatus() == TaskStatus.TASK_STATUS_SUCCEEDED && inCart);
    checks.that("the shop has counted one order", ordersPlaced() == before + 1);
  }

  /** Runs the worker with the Java and the classes of this program. */
  private static Process started(Path journal) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    ProcessBuilder worker =
        new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), Worker.class.getName());
    worker.environment().put("ORDER_GATEWAY_JOURNAL", journal.toString());
    worker.environment().put("ORDER_GATEWAY_ACCOUNT", ACCOUNT);
    return worker
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  /** Files an order for the worker's account and waits for its end. */
  private Task ended(String name, SubmitOrderRequest.Builder order) {
    String intent =
        """
        {"item_url": "%s/item/sandbox-store/sencha-100g/", "quantity": 1, "max_total_yen": 5000}""".formatted(shop);
    String taskId = "java-worker-" + name + "-" + System.currentTimeMillis();
    gateway.submit(order.setTaskId(taskId).setSite("sandbox").setAccount(ACCOUNT).setIntentJson(intent).build());
    return gateway.watch(taskId, Duration.ofMinutes(1), change -> {});
  }

  /** Asks the shop what it counted. */
  private long ordersPlaced() throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(shop + "/_control/counters")).build();
    String counters =
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    Matcher placed = PLACED.matcher(counters);
    return placed.find() ? Long.parseLong(placed.group(1)) : -1;
  }

  private static void remove(Path folder) throws IOException {
    try (Stream<Path> tree = Files.walk(folder)) {
      List<Path> deepestFirst = tree.sorted(Comparator.reverseOrder()).toList();
      for (Path path : deepestFirst) {
        Files.delete(path);
      }
    }
  }
}
