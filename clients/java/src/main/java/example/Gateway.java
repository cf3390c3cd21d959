package example;

import com.ordergateway.v1.CancelOrderRequest;
import com.ordergateway.v1.GetOrderRequest;
import com.ordergateway.v1.ListOrdersRequest;
import com.ordergateway.v1.ListOrdersResponse;
import com.ordergateway.v1.OrderServiceGrpc;
import com.ordergateway.v1.SubmitOrderRequest;
import com.ordergateway.v1.SubmitOrderResponse;
import com.ordergateway.v1.SubmitOrdersRequest;
import com.ordergateway.v1.SubmitOrdersResult;
import com.ordergateway.v1.Task;
import io.grpc.ManagedChannel;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** An upstream's client of the gateway. It repeats calls that were not answered, until a deadline. */
final class Gateway {
  /** One try gets no longer than this of a call's deadline: a connection may be dead without saying so. */
  private static final Duration ONE_TRY = Duration.ofSeconds(10);

  private final OrderServiceGrpc.OrderServiceBlockingStub orders;
  private final Duration within;

  /** {@code within} bounds each call with all of its repeats; then its last error is thrown. */
  Gateway(ManagedChannel channel, String token, Duration within) {
    this.orders = OrderServiceGrpc.newBlockingStub(channel).withCallCredentials(Channels.bearer(token));
    this.within = within;
  }

  /**
   * Files an order. A lost answer is healed by sending the same request again, which needs a task_id of your own: keep it
   * with the thing that is to be bought, before the first call.
   */
  SubmitOrderResponse submit(SubmitOrderRequest order) {
    if (order.getTaskId().isEmpty()) {
      throw new IllegalArgumentException("an order without a task_id of your own cannot be sent again");
    }
    return repeated(stub -> stub.submitOrder(order));
  }

  /** Files up to 500 orders by one commit; each result tells of the order in its place. */
  List<SubmitOrdersResult> submitMany(List<SubmitOrderRequest> batch) {
    SubmitOrdersRequest request = SubmitOrdersRequest.newBuilder().addAllOrders(batch).build();
    return repeated(stub -> stub.submitOrders(request)).getResultsList();
  }

  Task get(String taskId) {
    GetOrderRequest request = GetOrderRequest.newBuilder().setTaskId(taskId).build();
    return repeated(stub -> stub.getOrder(request)).getTask();
  }

  /** Hands on all tasks that match, newest first, page by page. */
  void list(ListOrdersRequest wanted, Consumer<Task> told) {
    String pageToken = "";
    do {
      ListOrdersRequest request = wanted.toBuilder().setPageToken(pageToken).build();
      ListOrdersResponse page = repeated(stub -> stub.listOrders(request));
      page.getTasksList().forEach(told); // a page may be empty and yet not be the last one
      pageToken = page.getNextPageToken();
    } while (!pageToken.isEmpty());
  }

  /** Ends a task that no worker has taken yet, as failed. */
  Task cancel(String taskId, String reason) {
    CancelOrderRequest request = CancelOrderRequest.newBuilder().setTaskId(taskId).setReason(reason).build();
    return repeated(stub -> stub.cancelOrder(request)).getTask();
  }

  /**
   * Hands on the task as it is, then after each change, until it has ended; returns it then. Where the stream breaks it is
   * opened again, and what was seen already is not told twice.
   */
  Task watch(String taskId, Duration within, Consumer<Task> told) {
    return new Watch(orders, taskId).untilItHasEnded(Deadline.after(within), told);
  }

  private interface Call<T> {
    T to(OrderServiceGrpc.OrderServiceBlockingStub stub);
  }

  private <T> T repeated(Call<T> call) {
    return Deadline.after(within)
        .repeated(ONE_TRY, ms -> call.to(orders.withDeadlineAfter(ms, TimeUnit.MILLISECONDS)));
  }
}
