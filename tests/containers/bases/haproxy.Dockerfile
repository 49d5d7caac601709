# A stand-in for the official image of haproxy, where images cannot be pulled. It has the same user, signal and folders.
FROM keyward-test/debian
RUN userdel haproxy \
 && groupadd --gid 99 --system haproxy \
 && useradd --uid 99 --gid haproxy --system --home-dir /var/lib/haproxy haproxy \
 && mkdir -p /usr/local/etc/haproxy /var/lib/haproxy
USER haproxy
WORKDIR /var/lib/haproxy
STOPSIGNAL SIGUSR1
CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
