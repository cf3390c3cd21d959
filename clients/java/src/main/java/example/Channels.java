package example;

import io.grpc.CallCredentials;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import java.io.File;
import java.io.IOException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/** How the gateway's gRPC port is reached. A channel is made once and shared; close it at the end. */
final class Channels {
  private Channels() {}

  /** In plain text, for loopback and private networks. */
  static ManagedChannel plain(String target) {
    return channel(target, InsecureChannelCredentials.create());
  }

  /** With TLS, trusting the CAs in a PEM file and no other. */
  static ManagedChannel tls(String target, File ca) throws IOException {
    return channel(target, TlsChannelCredentials.newBuilder().trustManager(ca).build());
  }

  /** With TLS, trusting the CAs that Java trusts. */
  static ManagedChannel tls(String target) {
    return channel(target, TlsChannelCredentials.create());
  }

  private static ManagedChannel channel(String target, ChannelCredentials credentials) {
    return Grpc.newChannelBuilder(target, credentials)
        .keepAliveTime(10, TimeUnit.SECONDS) // the gateway ends a connection that pings more often than every 5 s
        .keepAliveTimeout(5, TimeUnit.SECONDS)
        .keepAliveWithoutCalls(true)
        .proxyDetector(address -> null) // who is named as a proxy need not be shown the token
        .disableRetry() // Refusals knows what may be repeated
        .build();
  }

  /** Sends the token with every call. */
  static CallCredentials bearer(String token) {
    Metadata.Key<String> key = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    Metadata headers = new Metadata();
    headers.put(key, "Bearer " + token);
    return new CallCredentials() {
      @Override
      public void applyRequestMetadata(RequestInfo call, Executor executor, MetadataApplier applier) {
        applier.apply(headers);
      }
    };
  }
}
