package example;

import com.ordergateway.v1.ErrorDetail;

/** The gateway's answer to a request of which no repeat makes anything else. */
final class Refused extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final transient ErrorDetail detail;

  Refused(ErrorDetail detail) {
    super(detail.getReason() + ": " + detail.getMessage());
    this.detail = detail;
  }

  ErrorDetail detail() {
    return detail;
  }
}
