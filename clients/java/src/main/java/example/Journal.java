package example;

import com.google.protobuf.InvalidProtocolBufferException;
import com.ordergateway.v1.OrderState;
import com.ordergateway.v1.ReportOrderRequest;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.UUID;
import java.util.stream.Stream;

/** A worker's memory: what must be on disk before it is done. One process has it at a time. */
final class Journal implements AutoCloseable {
  private static final String TASK = ".task";

  private final Path folder;
  private final FileChannel lock;
  private final String id;

  /** Opens the journal in a folder, or makes it. Fails where another process has it. */
  Journal(Path folder) throws IOException {
    this.folder = Files.createDirectories(folder);
    this.lock = FileChannel.open(folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    if (lock.tryLock() == null) {
      throw new IOException("the journal " + folder + " is another process's");
    }
    Path made = folder.resolve("journal_id");
    if (!Files.exists(made)) {
      write("journal_id", UUID.randomUUID().toString());
    }
    this.id = Files.readString(made);
  }

  /** Made once; a permit is tied to it. */
  String id() {
    return id;
  }

  /** Lets another process have the journal. */
  @Override
  public void close() throws IOException {
    lock.close();
  }

  /** Makes the click record of a task, which can exist once: an exception means that nothing may be clicked. */
  void recordClick(String taskId) throws IOException {
    Path click = folder.resolve(taskId + ".click");
    try (FileChannel file = FileChannel.open(click, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      file.force(true);
    }
    syncFolder();
  }

  boolean hasClicked(String taskId) {
    return !Files.notExists(folder.resolve(taskId + ".click"));
  }

  /**
   * What is held of a task.
   *
   * @param sequence the number of the last report
   * @param state the one that it told
   * @param unsent that report, until the gateway has answered it: a repeat is the same, number included
   * @param ended nothing more is to be said
   */
  record Entry(
      String leaseToken, long sequence, OrderState state, Optional<ReportOrderRequest> unsent, boolean ended) {
    static final Entry NONE = new Entry("", 0, OrderState.ORDER_STATE_CREATED, Optional.empty(), true);
  }

  Entry load(String taskId) throws IOException {
    Path path = folder.resolve(taskId + TASK);
    if (!Files.exists(path)) {
      return Entry.NONE;
    }
    Properties kept = new Properties();
    kept.load(new StringReader(Files.readString(path)));
    return new Entry(
        kept.getProperty("leaseToken"),
        Long.parseLong(kept.getProperty("sequence")),
        OrderState.valueOf(kept.getProperty("state")),
        report(kept.getProperty("unsent")),
        Boolean.parseBoolean(kept.getProperty("ended")));
  }

  void store(String taskId, Entry entry) throws IOException {
    Properties kept = new Properties();
    kept.setProperty("leaseToken", entry.leaseToken());
    kept.setProperty("sequence", Long.toString(entry.sequence()));
    kept.setProperty("state", entry.state().name());
    entry.unsent().ifPresent(
        report -> kept.setProperty("unsent", Base64.getEncoder().encodeToString(report.toByteArray())));
    kept.setProperty("ended", Boolean.toString(entry.ended()));
    StringWriter text = new StringWriter();
    kept.store(text, null);
    write(taskId + TASK, text.toString());
  }

  /** The tasks that the journal knows. */
  List<String> tasks() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .map(path -> path.getFileName().toString())
          .filter(name -> name.endsWith(TASK))
          .map(name -> name.substring(0, name.length() - TASK.length()))
          .toList();
    }
  }

  private static Optional<ReportOrderRequest> report(String text) throws InvalidProtocolBufferException {
    return text == null
        ? Optional.empty()
        : Optional.of(ReportOrderRequest.parseFrom(Base64.getDecoder().decode(text)));
  }

  /** Replaces a file as a whole; when it returns, the file outlives a power cut. */
  private void write(String name, String text) throws IOException {
    Path made = Files.createTempFile(folder, "new-", "");
    try (FileChannel file = FileChannel.open(made, StandardOpenOption.WRITE)) {
      ByteBuffer bytes = StandardCharsets.UTF_8.encode(text);
      while (bytes.hasRemaining()) {
        file.write(bytes);
      }
      file.force(true);
    }
    Files.move(made, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    syncFolder();
  }

  private void syncFolder() throws IOException {
    try (FileChannel entries = FileChannel.open(folder, StandardOpenOption.READ)) {
      entries.force(true);
    }
  }
}
