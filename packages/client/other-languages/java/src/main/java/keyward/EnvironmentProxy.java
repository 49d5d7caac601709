package keyward;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * Selects the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name, in upper or lower case. Without these variables, the system properties of
 * Java apply.
 */
final class EnvironmentProxy extends ProxySelector {
    private static final int DEFAULT_PORT = 80;

    @Override
    public List<Proxy> select(URI target) {
        String given = variable(target.getScheme() + "_proxy");
        if (given.isEmpty()) return ProxySelector.getDefault().select(target);
        URI proxy = URI.create(given.contains("://") ? given : "http://" + given);
        if (proxy.getHost() == null || isDirect(target.getHost())) return List.of(Proxy.NO_PROXY);
        int port = proxy.getPort() < 0 ? DEFAULT_PORT : proxy.getPort();
        return List.of(new Proxy(Proxy.Type.HTTP, InetSocketAddress.createUnresolved(proxy.getHost(), port)));
    }

    @Override
    public void connectFailed(URI target, SocketAddress proxy, IOException error) {
        // The request fails, which the client reports.
    }

    private static boolean isDirect(String host) {
        return Stream.of(variable("no_proxy").split("[, ]+"))
                .map(name -> name.replaceAll("^\\*?\\.|:\\d+$", ""))
                .anyMatch(name -> name.equals("*") || host.equalsIgnoreCase(name) || !name.isEmpty() && host.endsWith("." + name));
    }

    private static String variable(String name) {
        String lower = System.getenv(name);
        String upper = System.getenv(name.toUpperCase(Locale.ROOT));
        return lower != null ? lower : upper != null ? upper : "";
    }
}
