import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.zip.GZIPOutputStream;

/** Sends checks with java.net.http.HttpClient. */
public class Client {
  static String apiKey;

  static String post(HttpClient client, String url, BodyPublisher body, boolean expects, String... headers) {
    var request = HttpRequest.newBuilder(URI.create(url))
        .header("Authorization", "Bearer " + apiKey)
        .header("Content-Type", "application/json")
        .expectContinue(expects)
        .POST(body);
    if (headers.length > 0) request.headers(headers);
    try {
      // HttpClient's timeout has no effect while the client waits for 100 Continue.
      var response = client.sendAsync(request.build(), BodyHandlers.ofString()).get(expects ? 4 : 30, TimeUnit.SECONDS);
      return String.valueOf(response.statusCode());
    } catch (TimeoutException error) {
      return "hangs";
    } catch (Exception error) {
      return "error: " + error;
    }
  }

  static String twice(String url, byte[] body, int seconds) throws InterruptedException {
    var client = HttpClient.newHttpClient();
    post(client, url, BodyPublishers.ofByteArray(body), false);
    Thread.sleep(seconds * 1000L);
    return post(client, url, BodyPublishers.ofByteArray(body), false);
  }

  static void print(String path, String name, String result) {
    System.out.println(String.join("\t", "Java HttpClient", path, name, result));
  }

  public static void main(String[] args) throws Exception {
    apiKey = args[0];
    var json = "{\"license\":\"" + args[1] + "\"}";
    var body = json.getBytes(StandardCharsets.UTF_8);
    var idle = Integer.parseInt(args[2]);
    var zipped = new ByteArrayOutputStream();
    try (var writer = new GZIPOutputStream(zipped)) {
      writer.write(body);
    }
    for (var one : Arrays.copyOfRange(args, 3, args.length)) {
      var path = one.substring(0, one.indexOf('='));
      var url = one.substring(one.indexOf('=') + 1);
      var client = HttpClient.newHttpClient();
      var stream = BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body));
      var large = BodyPublishers.ofString(json + " ".repeat(1_100_000 - json.length()));
      print(path, "length", post(client, url, BodyPublishers.ofString(json), false));
      print(path, "chunked", post(client, url, stream, false));
      print(path, "expect", post(client, url, BodyPublishers.ofString(json), true));
      print(path, "reuse", twice(url, body, 0));
      print(path, "gzip", post(client, url, BodyPublishers.ofByteArray(zipped.toByteArray()), false, "Content-Encoding", "gzip"));
      print(path, "bom", post(client, url, BodyPublishers.ofString("\ufeff" + json), false));
      print(path, "large", post(client, url, large, false));
      if (idle > 0) print(path, "idle", twice(url, body, idle));
    }
  }
}
