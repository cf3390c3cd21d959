package example;

import com.ordergateway.v1.Terms;
import com.ordergateway.v1.TermsItem;
import java.io.IOException;
import java.net.CookieManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Buys at the sandbox shop, as a worker does: a page or a form a call. Java's client sends a form once; what it may send
 * again by itself are pages.
 */
final class Shop {
  private static final Duration PAGE = Duration.ofSeconds(15);
  private static final Pattern TOKEN = Pattern.compile("name=\"token\" value=\"([^\"]+)\"");
  private static final Pattern PAYABLE = Pattern.compile("id=\"payable\">([^<]+)<");
  private static final Pattern LINE =
      Pattern.compile(
          "<tr class=\"line\" data-variant-id=\"([^\"]*)\">.*?href=\"([^\"]+)\".*?unit-price\">([^<]+)<"
              + ".*?quantity\">([^<]+)<",
          Pattern.DOTALL);
  private static final Pattern REMOVE = Pattern.compile("class=\"remove\"");
  private static final Pattern PAID = Pattern.compile("id=\"payment-state\" data-state=\"paid\"");

  private final HttpClient client =
      HttpClient.newBuilder()
          .version(HttpClient.Version.HTTP_1_1)
          .cookieHandler(new CookieManager())
          .followRedirects(HttpClient.Redirect.NEVER)
          .connectTimeout(PAGE)
          .build();
  private final String url;
  private final Runnable mayWrite;

  /** The last page before the click. */
  record Confirmation(Terms terms, String token) {}

  private record Page(String text, String leadsTo) {}

  private Shop(String url, Runnable mayWrite) {
    this.url = url;
    this.mayWrite = mayWrite;
  }

  /** Logs in. {@code mayWrite} is asked before each form, and throws where it may not be sent. */
  static Shop open(String url, String user, String password, Runnable mayWrite) throws IOException {
    Shop shop = new Shop(url, mayWrite);
    Page answer = shop.post("/login", "username", user, "password", password);
    expect(answer.leadsTo().equals("/account"), "the shop refused the login");
    return shop;
  }

  /** Makes the cart hold so many of one item and nothing else. */
  void fill(String itemUrl, long quantity) throws IOException {
    String items = url + "/item/sandbox-store/";
    expect(itemUrl.startsWith(items), itemUrl + " is no item of this shop");
    empty();
    String code = itemUrl.substring(items.length()).replaceFirst("/$", "");
    Page answer = post("/cart/add", "code", code, "quantity", Long.toString(quantity));
    expect(answer.leadsTo().equals("/cart"), "the shop did not put the item into the cart");
  }

  /** Takes everything out of the cart. */
  void empty() throws IOException {
    for (long lines = REMOVE.matcher(get("/cart").text()).results().count(); lines > 0; lines--) {
      post("/cart/remove", "line", "0");
    }
  }

  /** Opens the confirmation page and reads its terms. */
  Confirmation confirm() throws IOException {
    String page = get("/order/confirm?payment_method=card").text();
    Matcher token = TOKEN.matcher(page);
    Matcher payable = PAYABLE.matcher(page);
    expect(token.find() && payable.find(), "the confirmation page does not show what it should");
    Terms.Builder terms = Terms.newBuilder().setPayableYen(number(payable.group(1)));
    StringBuilder text = new StringBuilder().append(terms.getPayableYen()).append('\n');
    for (Matcher line = LINE.matcher(page); line.find(); ) {
      TermsItem item =
          TermsItem.newBuilder()
              .setItemUrl(url + line.group(2))
              .setVariantId(line.group(1))
              .setQuantity(number(line.group(4)))
              .setUnitPriceYen(number(line.group(3)))
              .build();
      terms.addItems(item);
      text.append(item.getItemUrl()).append('\t').append(item.getVariantId()).append('\t');
      text.append(item.getQuantity()).append('\t').append(item.getUnitPriceYen()).append('\n');
    }
    return new Confirmation(terms.setDigest(digest(text.toString())).build(), token.group(1));
  }

  /** The one irreversible click. Returns the order's number; after an IOException nobody knows whether there is one. */
  String click(Confirmation confirmation) throws IOException {
    URI thanks = URI.create(post("/order/submit", "token", confirmation.token()).leadsTo());
    String query = thanks.getQuery();
    boolean thanked = "/order/thanks".equals(thanks.getPath()) && query != null;
    expect(thanked && query.startsWith("order_number="), "the shop did not thank for the order");
    return query.substring("order_number=".length());
  }

  /** Pays an order by card; false: the shop wants a person for it. */
  boolean pay(String order) throws IOException {
    String to = post("/payment", "order_number", order).leadsTo();
    return to.startsWith("/payment/result") && PAID.matcher(get(to).text()).find();
  }

  private Page get(String path) throws IOException {
    return send(HttpRequest.newBuilder(URI.create(url + path)).GET());
  }

  private Page post(String path, String... namesAndValues) throws IOException {
    StringBuilder form = new StringBuilder();
    for (int index = 0; index < namesAndValues.length; index += 2) {
      String value = URLEncoder.encode(namesAndValues[index + 1], StandardCharsets.UTF_8);
      form.append(index == 0 ? "" : "&").append(namesAndValues[index]).append('=').append(value);
    }
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(url + path))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .POST(HttpRequest.BodyPublishers.ofString(form.toString()));
    mayWrite.run();
    return send(request);
  }

  private Page send(HttpRequest.Builder wanted) throws IOException {
    HttpRequest request = wanted.timeout(PAGE).build();
    try {
      HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
      expect(answer.statusCode() < 400, "the shop answered " + request.uri() + " with " + answer.statusCode());
      return new Page(answer.body(), answer.headers().firstValue("Location").orElse(""));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException(interrupted);
    }
  }

  private static void expect(boolean holds, String otherwise) throws IOException {
    if (!holds) {
      throw new IOException(otherwise);
    }
  }

  /** Reads what a page shows: 1,080円 is 1080. */
  private static long number(String shown) throws IOException {
    String digits = shown.replaceAll("[^0-9]", "");
    expect(!digits.isEmpty(), "the page shows no number: " + shown);
    return Long.parseLong(digits);
  }

  private static String digest(String text) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest);
    } catch (NoSuchAlgorithmException impossible) {
      throw new AssertionError(impossible); // each Java has SHA-256
    }
  }
}
