package example;

import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** The moment by which a call must be answered, with all of its repeats. */
final class Deadline {
  /** Where a call is made once. */
  @FunctionalInterface
  interface Attempt<T> {
    /** {@code ms} is what the one try may take. */
    T make(long ms) throws StatusRuntimeException;
  }

  private final long nanos;

  private Deadline(Duration within) {
    nanos = System.nanoTime() + within.toNanos();
  }

  static Deadline after(Duration within) {
    return new Deadline(within);
  }

  /** Milliseconds that are left, at least 1. */
  long left() {
    return Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos - System.nanoTime()));
  }

  /** Makes a call until it is answered, refused for good, or the deadline has passed; throws its last error then. */
  <T> T repeated(Duration oneTry, Attempt<T> attempt) {
    for (int tries = 0; ; tries++) {
      try {
        return attempt.make(Math.min(oneTry.toMillis(), left()));
      } catch (StatusRuntimeException error) {
        pauseOrThrow(error, tries);
      }
    }
  }

  /** Waits until a call may be made again; throws its error where it may not, or not before the deadline. */
  void pauseOrThrow(StatusRuntimeException error, int tries) {
    long pause = Refusals.pauseBeforeRetry(error, tries).orElseThrow(() -> error).toMillis();
    if (pause >= left()) {
      throw error;
    }
    try {
      Thread.sleep(pause);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw error;
    }
  }
}
