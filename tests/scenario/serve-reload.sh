#!/bin/bash
# SIGHUP: certificates and the configuration are read again, connections stay, what is bad changes
# nothing; and a terminal that goes takes its server along.
. "$(dirname "$0")/serving.bash"
command -v openssl >/dev/null || { echo "openssl is not installed"; exit 77; }

# certificate NAME: for localhost, in NAME.pem and NAME.key.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -addext subjectAltName=DNS:localhost -keyout "$1.key" -out "$1.pem" 2>/dev/null
}
# use NAME: its certificate is the one in the server's files.
use() { cp "$1.key" server.key && cp "$1.pem" server.pem; }
# subject: whose certificate is shown now.
subject() { openssl s_client -connect "$amqps" </dev/null 2>/dev/null | sed -n 's/^subject=CN = //p'; }
config() { printf '{"UserConfig":{"NamespaceConfig":[{"Entities":[%s]}]}}' "$1" >c.json; }
certificate first
certificate second
use first
config '{"Name":"a","PartitionCount":1}'
start --data d --amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http off --json --config c.json \
    --tls-certificate server.pem --tls-key server.key
amqps=$(field amqps)
[ "$(subject)" = first ] || fail "another certificate"

# ---- a good one, under a connection that is open ----
mkfifo say
openssl s_client -connect "$amqps" -quiet <say >heard 2>/dev/null &
client=$!
exec 7>say
printf 'AMQP\3\1\0\0' >&7
until [ "$(head -c 4 heard)" = AMQP ]; do sleep 0.02; done
size=$(stat -c %s heard)
use second
hup 'INFO serve: the certificate was read again'
[ "$(subject)" = second ] || fail "still the old certificate: $(subject)"
printf '\0\0\0\x19\2\1\0\0\0\x53\x41\xc0\x0c\1\xa3\x09ANONYMOUS' >&7
for _ in $(seq 200); do
    [ "$(stat -c %s heard)" -gt "$size" ] && break
    sleep 0.05
done
[ "$(stat -c %s heard)" -gt "$size" ] || fail "the connection was dropped"
exec 7>&-
kill $client && wait $client || true

# ---- bad ones ----
echo rubbish >server.pem
hup 'ERROR serve: the certificate stays as it was: server.pem: reading the certificate'
cp first.pem server.pem # which is not of that key
hup 'ERROR serve: the certificate stays as it was: '
rm server.key
hup 'ERROR serve: the certificate stays as it was: '
[ "$(subject)" = second ] || fail "another certificate"

# ---- the configuration ----
use first
config '{"Name":"a","PartitionCount":1},{"Name":"b","PartitionCount":2}'
hup 'INFO serve: the configuration was read again'
[ "$(subject)" = first ] || fail "another certificate"
expect 0 "$WEIR" send b --connect "$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' out)"
config '{"Name":"a","PartitionCount":3}'
hup "ERROR serve: the configuration stays as it was: .*hub 'a' has 1 partition"
stop

# ---- without files SIGHUP changes nothing; a terminal that goes ends it ----
start --in-memory --amqp 127.0.0.1:0 --amqps off --http off --json
hup 'INFO serve: SIGHUP: files are read again'
stop
command -v python3 >/dev/null || exit 0
python3 - "$WEIR" <<'P' || fail "a server without its terminal goes on"
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "serve", "--in-memory", "--amqp", "127.0.0.1:0", "--amqps", "off", "--http", "off"])
heard = b""
while b"Ctrl-C stops" not in heard:
    heard += os.read(fd, 4096)
os.close(fd)
for _ in range(400):
    if os.waitpid(pid, os.WNOHANG)[0]:
        sys.exit(0)
    time.sleep(0.05)
os.kill(pid, 9)
sys.exit(1)
P
