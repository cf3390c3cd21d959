package example;

import com.ordergateway.v1.OrderServiceGrpc;
import com.ordergateway.v1.Task;
import com.ordergateway.v1.WatchOrderRequest;
import com.ordergateway.v1.WatchOrderResponse;
import io.grpc.StatusRuntimeException;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** A task that is followed. That a connection is dead is noticed by the channel's own pings. */
final class Watch {
  private final OrderServiceGrpc.OrderServiceBlockingStub orders;
  private final WatchOrderRequest request;
  private Task seen = Task.getDefaultInstance();
  private int tries;

  Watch(OrderServiceGrpc.OrderServiceBlockingStub orders, String taskId) {
    this.orders = orders;
    this.request = WatchOrderRequest.newBuilder().setTaskId(taskId).build();
  }

  /** See {@link Gateway#watch}. */
  Task untilItHasEnded(Deadline deadline, Consumer<Task> told) {
    while (true) {
      try {
        follow(deadline, told);
        if (hasEnded(seen)) {
          return seen;
        }
      } catch (StatusRuntimeException error) {
        deadline.pauseOrThrow(error, tries);
        tries++;
      }
    }
  }

  private void follow(Deadline deadline, Consumer<Task> told) {
    Iterator<WatchOrderResponse> messages =
        orders.withDeadlineAfter(deadline.left(), TimeUnit.MILLISECONDS).watchOrder(request);
    while (messages.hasNext()) {
      WatchOrderResponse message = messages.next();
      tries = 0;
      if (message.hasTask() && !message.getTask().equals(seen)) {
        seen = message.getTask();
        told.accept(seen);
      }
    }
  }

  /** Whether nothing more happens to a task by itself. */
  static boolean hasEnded(Task task) {
    return switch (task.getStatus()) {
      case TASK_STATUS_SUCCEEDED, TASK_STATUS_FAILED, TASK_STATUS_NEEDS_HUMAN -> true;
      default -> false;
    };
  }
}
