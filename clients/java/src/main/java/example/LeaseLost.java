package example;

/** The lease can be trusted no more: nothing is written to the site, and what the task comes to is another one's matter. */
final class LeaseLost extends RuntimeException {
  private static final long serialVersionUID = 1;

  LeaseLost() {
    super("the lease is lost");
  }
}
