#!/bin/sh
# Runs haproxy, and reloads it when the files of the certificate have changed. haproxy reads a certificate only when it
# starts or reloads, so a renewed certificate would otherwise never be served. A reload keeps open connections. If the
# new files are invalid, haproxy continues with the old ones.
# Usage: run.sh CONFIGURATION CERTIFICATE-FOLDER. CERTIFICATE_INTERVAL is the pause between two comparisons in seconds.
set -u
configuration=$1
folder=$2

checksum() { cat "$folder"/tls.pem* | cksum; }

# Compares the files with those that haproxy $1 has read.
watch() {
  trap 'kill "$pause" 2>/dev/null; exit 0' TERM
  while :; do
    sleep "${CERTIFICATE_INTERVAL:-10}" &
    pause=$!
    wait "$pause"
    found=$(checksum)
    [ "$found" = "$served" ] && continue
    served=$found
    if haproxy -c -f "$configuration" >/dev/null 2>&1; then
      echo '{"event":"certificate changed, reloading"}'
      kill -USR2 "$1"
    else
      echo '{"event":"certificate changed, but it is not valid"}' >&2
    fi
  done
}

served=$(checksum)
haproxy -W -db -f "$configuration" &
haproxy=$!
watch "$haproxy" &
watcher=$!
# USR1 stops haproxy after the open requests. TERM and INT stop it at once.
stop=''
trap 'stop=USR1' USR1
trap 'stop=TERM' TERM INT

status=0
while kill -0 "$haproxy" 2>/dev/null; do
  if [ -z "$stop" ]; then
    # A signal interrupts this wait.
    wait "$haproxy"
    status=$?
  else
    # haproxy loses a signal that it receives while it reloads, so the signal is repeated.
    kill "-$stop" "$haproxy"
    sleep 0.2
  fi
done
[ -z "$stop" ] || status=0
kill -TERM "$watcher" 2>/dev/null
exit "$status"
