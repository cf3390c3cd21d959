package example;

import java.time.Duration;

/**
 * A moment by both clocks: the one that nobody sets stands still while the machine sleeps, the other one goes on but may be
 * set.
 */
record Moment(long nanos, long millis) {
  static Moment now() {
    return new Moment(System.nanoTime(), System.currentTimeMillis());
  }

  Moment plus(Duration length) {
    return new Moment(nanos + length.toNanos(), millis + length.toMillis());
  }

  /** Whether it has come by neither clock. */
  boolean isToCome() {
    return System.nanoTime() - nanos < 0 && System.currentTimeMillis() < millis;
  }
}
