#!/bin/bash
# How weir serve ends, and what the service manager hears of it, on a real datagram socket.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
free='--amqp 127.0.0.1:0 --amqps off --http off'

# ---- the service manager ----
cc -std=c11 -Wall -Wextra -Werror -o notify_hear "$here/notify_hear.c"
for socket in "$TMPDIR/notify" "@weir-scenario-$$"; do
    ./notify_hear "$socket" 2 >heard &
    ear=$!
    until grep -q listening heard; do kill -0 $ear && sleep 0.02; done
    NOTIFY_SOCKET=$socket start --in-memory $free
    until grep -qx 'READY=1' heard; do kill -0 $ear && sleep 0.02; done
    [ "$(wc -l <heard)" = 2 ] || fail "more than READY=1: $(cat heard)"
    stop
    wait $ear
    [ "$(sed -n 3p heard)" = STOPPING=1 ] || fail "heard: $(cat heard)"
done
NOTIFY_SOCKET=/nobody/here start --in-memory $free # a manager that is gone is no reason to stop
said 'notifying the service manager' log
stop

# ---- signals ----
for signal in TERM INT; do
    start --in-memory $free
    stop $signal
done

# With somebody connected who never answers, the end takes its time; a second signal does not.
start --in-memory $free --json
exec 9<>"/dev/tcp/127.0.0.1/$(field amqp | cut -d: -f2)"
printf 'AMQP\0\1\0\0' >&9
head -c 8 <&9 >/dev/null # it has begun to speak with us
kill -INT "$server"
head -c 1 <&9 >/dev/null # and now it has taken its leave: the first signal was heard
kill -0 "$server" || fail "it did not wait for its client"
sleep 0.3 # what comes in the same moment is the same one
kill -INT "$server"
code=0
wait "$server" || code=$?
server=
[ "$code" = 130 ] || fail "exit code $code after a second Ctrl-C"
exec 9>&-
