#!/bin/sh
# Creates the data folder with the password in POSTGRES_PASSWORD, unless it exists, and starts Postgres as an unprivileged user.
set -eu
data=/var/lib/postgresql/18/docker

if [ "$(id -u)" = 0 ]; then
  chown -R postgres:postgres /var/lib/postgresql
  exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$0" "$@"
fi
if [ ! -s "$data/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata="$data" --username=postgres --auth=scram-sha-256 --pwfile=/tmp/password
  rm /tmp/password
  echo "listen_addresses = '*'" >> "$data/postgresql.conf"
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
fi
exec "$@" -D "$data"
