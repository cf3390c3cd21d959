package example;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import java.util.Optional;

/** What of an upstream's intent this worker knows. */
record Intent(String itemUrl, long quantity, long maxTotalYen) {
  /** Empty where it is not an intent to buy one item. */
  static Optional<Intent> read(String json) {
    Struct.Builder fields = Struct.newBuilder();
    try {
      JsonFormat.parser().merge(json, fields);
    } catch (InvalidProtocolBufferException malformed) {
      return Optional.empty();
    }
    String itemUrl = field(fields, "item_url").getStringValue();
    double quantity = field(fields, "quantity").getNumberValue();
    double most = field(fields, "max_total_yen").getNumberValue();
    boolean counts = quantity >= 1 && quantity == Math.rint(quantity);
    return itemUrl.isEmpty() || !counts
        ? Optional.empty()
        : Optional.of(new Intent(itemUrl, (long) quantity, (long) most));
  }

  private static Value field(Struct.Builder fields, String name) {
    return fields.getFieldsOrDefault(name, Value.getDefaultInstance());
  }
}
