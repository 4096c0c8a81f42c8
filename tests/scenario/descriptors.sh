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
for _ in $(seq 200); do grep -q 'no file descriptor is left' err && break; sleep 0.05; done
said 'no file descriptor is left' err
free_now=$((160 - $(ls "/proc/$server/fd" | wc -l)))
[ "$free_now" -ge 40 ] || fail "$free_now descriptors are left for the logs"
head -c 12000000 /dev/zero | tr '\0' x | fold -w 60000 >&9
echo >&9
exec 9>&-
wait $send || { cat send_err; fail "the sender ended with $?"; }
said 'acknowledged 201 events' sent
silent 'Too many open files' err
stop
expect 0 "$WEIR" inspect data
said 'no damage'
