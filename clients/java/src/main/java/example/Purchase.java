package example;

import com.ordergateway.v1.Lease;
import com.ordergateway.v1.OrderState;
import com.ordergateway.v1.ReportOrderRequest;
import com.ordergateway.v1.TaskStatus;
import com.ordergateway.v1.TermsItem;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.util.List;
import java.util.Optional;

/** One order on its way, under a lease that is acknowledged. */
final class Purchase {
  // The error codes of docs/protocol.md that this worker needs.
  private static final int MALFORMED = 422;
  private static final int OVER_LIMIT = 5004;
  private static final int OVER_BUDGET = 5005;

  private final Leases gateway;
  private final Journal journal;
  private final Hold held;
  private final Lease lease;
  private final Reports reports;

  Purchase(Leases gateway, Journal journal, Hold held, Lease lease, Reports reports) {
    this.gateway = gateway;
    this.journal = journal;
    this.held = held;
    this.lease = lease;
    this.reports = reports;
  }

  /** Where the worker buys, and as whom. */
  record Customer(String shopUrl, String user, String password) {}

  /** Throws LeaseLost where nothing was ordered and nothing is to be said any more, and Refused where a report was. */
  void make(Customer customer) throws IOException {
    reports.send(place(customer));
  }

  /** Returns the report that ends the task. */
  private ReportOrderRequest.Builder place(Customer customer) throws IOException {
    if (lease.getLeaseCount() > 1 || journal.hasClicked(lease.getTaskId())) {
      return reports.toPerson("the task was in hand before, and this worker verifies nothing");
    }
    Optional<Intent> intent = Intent.read(lease.getIntentJson());
    if (intent.isEmpty()) {
      String words = "malformed intent: this worker buys one item_url, in a quantity";
      return reports.end(TaskStatus.TASK_STATUS_FAILED, words).setErrorCode(MALFORMED);
    }
    Intent wanted = intent.get();
    reports.send(Reports.reached(OrderState.ORDER_STATE_CREATED));
    Shop shop;
    try {
      shop = Shop.open(customer.shopUrl(), customer.user(), customer.password(), held::ensure);
      shop.fill(wanted.itemUrl(), wanted.quantity());
    } catch (IOException error) {
      return reports.end(TaskStatus.TASK_STATUS_FAILED, error.toString());
    }
    Shop.Confirmation shown;
    try {
      shown = shop.confirm();
    } catch (IOException error) {
      return reports.toPerson(error.toString());
    }
    long payable = shown.terms().getPayableYen();
    reports.send(Reports.reached(OrderState.ORDER_STATE_IN_CART).setPayableYen(payable));
    if (!shows(shown.terms().getItemsList(), wanted)) {
      return reports.toPerson("the confirmation page shows something else than what is wanted");
    }
    if (payable > wanted.maxTotalYen()) {
      return reports.toPerson("the order costs more than the intent allows").setErrorCode(OVER_LIMIT);
    }
    return permitted(shop, shown);
  }

  private static boolean shows(List<TermsItem> items, Intent wanted) {
    return items.size() == 1
        && items.get(0).getItemUrl().equals(wanted.itemUrl())
        && items.get(0).getQuantity() == wanted.quantity();
  }

  private ReportOrderRequest.Builder permitted(Shop shop, Shop.Confirmation shown) {
    Optional<Permit> permit;
    try {
      permit = Permit.ask(gateway, held, lease, journal.id(), shop, shown);
    } catch (Refused refused) {
      return afterRefusal(shop, refused);
    } catch (IOException | StatusRuntimeException error) {
      return reports.toPerson("no permit, and nothing was clicked: " + error);
    }
    return permit.isPresent()
        ? click(shop, permit.get())
        : reports.toPerson("the confirmation page shows other terms than before; nothing was clicked");
  }

  /** Ends a task that gets no permit: nothing is clicked, least of all for a reason that this worker does not know. */
  private ReportOrderRequest.Builder afterRefusal(Shop shop, Refused refused) {
    String words = refused.detail().getMessage();
    return switch (refused.detail().getReason()) {
      case ERROR_REASON_PERMIT_DRY_RUN -> {
        try {
          shop.empty();
        } catch (IOException error) {
          yield reports.toPerson(error.toString());
        }
        yield reports.end(TaskStatus.TASK_STATUS_SUCCEEDED, "dry run");
      }
      case ERROR_REASON_TOO_LATE, ERROR_REASON_CANCEL_REQUESTED ->
          reports.end(TaskStatus.TASK_STATUS_FAILED, words);
      case ERROR_REASON_TERMS_OVER_CAP -> reports.toPerson(words).setErrorCode(OVER_LIMIT);
      case ERROR_REASON_BUDGET_EXCEEDED -> reports.toPerson(words).setErrorCode(OVER_BUDGET);
      case ERROR_REASON_LEASE_INVALID -> throw new LeaseLost();
      default -> reports.toPerson(words);
    };
  }

  /** Clicks, once, if the permit and the lease still hold when the click record is on disk. */
  private ReportOrderRequest.Builder click(Shop shop, Permit permit) {
    if (!mayClick(permit)) {
      return reports.toPerson("the permit or the lease ran out before the click; nothing was clicked");
    }
    try {
      journal.recordClick(lease.getTaskId());
    } catch (IOException error) {
      return reports.toPerson("no click record could be made; nothing was clicked");
    }
    if (!mayClick(permit)) {
      return reports.toPerson("the permit or the lease ran out at the click; nothing was clicked");
    }
    String number;
    try {
      number = shop.click(permit.shown());
    } catch (LeaseLost lost) {
      return reports.toPerson("the lease ran out at the click; nothing was clicked");
    } catch (IOException error) {
      return reports.toPerson("the answer to the click was lost, look on the site: " + error);
    }
    return pay(shop, permit, number);
  }

  private ReportOrderRequest.Builder pay(Shop shop, Permit permit, String number) {
    try {
      long payable = permit.shown().terms().getPayableYen();
      reports.send(
          Reports.reached(OrderState.ORDER_STATE_ORDERED).setSiteOrderId(number).setPayableYen(payable));
      if (shop.pay(number)) {
        return reports.end(TaskStatus.TASK_STATUS_SUCCEEDED, "").setState(OrderState.ORDER_STATE_PAID);
      }
    } catch (Refused | LeaseLost lost) {
      return reports.toPerson("ordered, not paid: the lease is lost");
    } catch (IOException error) {
      return awaitingPayment(error.toString());
    }
    return awaitingPayment("the shop wants a person for it");
  }

  private ReportOrderRequest.Builder awaitingPayment(String words) {
    return reports
        .toPerson("ordered; the payment is for a person: " + words)
        .setState(OrderState.ORDER_STATE_AWAITING_PAYMENT);
  }

  private boolean mayClick(Permit permit) {
    return held.isTrusted() && permit.until().isToCome();
  }
}
