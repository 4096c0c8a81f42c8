#!/bin/bash
# Idle strangers on every port of a server that may have few descriptors: they get what is left of
# them, and the logs go on.
. "$(dirname "$0")/serving.bash"

# ---- publishing rolls segments while nobody else gets in ----
mkfifo pipe
printf '#!/bin/sh\nulimit -n 160\nexec "%s" "$@"\n' "$WEIR" >tight
chmod +x tight
WEIR=./tight start --json --data data $free --hub eh1:2 --hub eh2:2
amqp=$(field amqp)
http=$(field http)
connect=$(field connection_string)
"$WEIR" send eh1 --connect "$connect" <pipe >sent 2>send_err &
send=$!
exec 9>pipe
echo first >&9
until "$WEIR" tail eh1 --connect "$connect" --until-end 2>/dev/null | grep -q first; do sleep 0.05; done
for i in $(seq 100); do
    exec {a}<>"/dev/tcp/${amqp%:*}/${amqp#*:}" 2>/dev/null || break
    [ $((i % 3)) != 0 ] || exec {a}<>"/dev/tcp/${http%:*}/${http#*:}" 2>/dev/null || break
done
for _ in $(seq 200); do grep -q 'no file descriptor is left' log && break; sleep 0.05; done
said 'no file descriptor is left' log
free_now=$((160 - $(ls "/proc/$server/fd" | wc -l)))
[ "$free_now" -ge 40 ] || fail "$free_now descriptors are left for the logs"
head -c 12000000 /dev/zero | tr '\0' x | fold -w 60000 >&9
echo >&9
exec 9>&-
wait $send || { cat send_err; fail "the sender ended with $?"; }
said 'acknowledged 201 events' sent
silent 'Too many open files' log
stop
expect 0 "$WEIR" inspect data
said 'no damage'

# ---- a receiver of old events meets no descriptor for their file: it goes on when there is one ----
"$WEIR" hub create old --data data --partitions 1 --retention-bytes 64M >out
head -c 48000000 /dev/zero | tr '\0' x | fold -w 60000 | "$WEIR" send old --data data >sent
start --json --data data $free
mkfifo slow
"$WEIR" tail old --until-end --connect "$(field connection_string)" >slow 2>tail_err &
tail=$!
exec 8<slow
read -r -n 1 <&8 # the rest waits: what the client, the server and the sockets hold is not all of it
limit=$(prlimit --pid $server --nofile --output SOFT --noheadings)
prlimit --pid $server --nofile=3:
cat <&8 >lines &
lines=$!
size=-1
until [ "$(wc -c <lines)" = $size ]; do # it comes as far as it can
    size=$(wc -c <lines)
    sleep 0.5
done
[ "$size" -lt 48000000 ] || fail "no descriptor was missed"
prlimit --pid $server "--nofile=$limit:"
for _ in $(seq 600); do kill -0 $tail 2>/dev/null || break; sleep 0.05; done
kill $tail 2>/dev/null && fail "the receiver stands still behind $(wc -c <lines) bytes"
wait $lines
[ "$(wc -l <lines)" = 800 ] || fail "$(wc -l <lines) of 800 lines"
stop
