package example;

import java.util.ArrayList;
import java.util.List;

/** What was found right, and what was not. */
final class Checks {
  private final List<String> failures = new ArrayList<>();
  private int passed;

  void that(String what, boolean holds) {
    if (holds) {
      passed++;
    } else {
      failures.add(what);
    }
  }

  /** Prints what failed and the closing line; the exit status of the program. */
  int end() {
    failures.forEach(failure -> System.err.println("failed: " + failure));
    System.out.println(passed + " passed, " + failures.size() + " failed");
    return failures.isEmpty() ? 0 : 1;
  }

  /** The value of an ORDER_GATEWAY_ variable. */
  static String setting(String name) {
    String value = System.getenv("ORDER_GATEWAY_" + name);
    if (value == null) {
      throw new IllegalStateException("ORDER_GATEWAY_" + name + " is not set");
    }
    return value;
  }
}
