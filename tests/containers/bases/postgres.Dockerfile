# A stand-in for the official image of Postgres, where images cannot be pulled. It starts as root and continues as the user postgres.
FROM keyward-test/debian
RUN (userdel postgres || true) && groupadd --gid 999 --system postgres && useradd --uid 999 --gid postgres --system postgres
COPY native /usr/lib/postgresql/18
COPY postgres.sh /usr/local/bin/start-postgres
ENV PATH=/usr/lib/postgresql/18/bin:/usr/lib/postgresql/17/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV LANG=C.UTF-8
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["sh", "/usr/local/bin/start-postgres"]
CMD ["postgres"]
