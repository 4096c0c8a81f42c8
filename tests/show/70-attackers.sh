#!/bin/bash
# 70-attackers - four strangers and four holders of a Send key say the most expensive things they know,
# 0.5 MB/s each, for a minute: in no turn do the server's loops work for longer than 5 ms, and what
# connecting, logging in and publishing takes meanwhile is printed beside a run without them. Then a
# thousand connections hold messages that never end: memory stays within the budget, all of them are
# closed when their time is over, and the server's memory goes back to what it was.
# depends: src tests/show/attack tests/scenario/serving.bash
SECONDS_EACH=${SECONDS_EACH:-60}
RATE=500000
HELD=1000
BUDGET=$((256 << 20))
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../scenario/serving.bash"
cc -std=c11 -O2 -Wall -Wextra -Werror -o attack "$here/attack/attack.c"
rc=0
# verdict NAME VALUE GOAL: at most.
verdict() {
    local word=ok
    [ "$2" -le "$3" ] || { word=MISSED rc=1; }
    echo "ROW attackers $1=$2 goal=$3 $word"
}
metric() { curl -s "http://$http/metrics" | sed -n "s/^$1 //p"; }
# Turns that took longer than 5 ms, also because the processor was given to others.
long_turns() {
    curl -s "http://$http/metrics" | awk '
        $1 == "weir_loop_turn_seconds_count" { all = $2 }
        $1 == "weir_loop_turn_seconds_bucket{le=\"0.005\"}" { short = $2 }
        END { print all - short }'
}
resident() { awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$server/status"; }
measure() { ./attack measure "$port" "$1" 0 sb://localhost/eh1 "$token" eh1; }

start --data d $free --hub eh1:4 --message-timeout 10s --json
amqp=$(field amqp) http=$(field http)
port=${amqp##*:}
until=$(($(date +%s) + 3600))
signature=$(printf 'sb%%3A%%2F%%2Flocalhost%%2Feh1\n%s' $until |
    openssl dgst -sha256 -hmac SAS_KEY_VALUE -binary | base64 | sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g')
token="SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&sig=$signature&se=$until&skn=RootManageSharedAccessKey"

echo "alone:          $(measure $((SECONDS_EACH / 3)))"
echo "turns above 5 ms: $(long_turns), worked for more than 5 ms: $(metric weir_loop_busy_turns_total)"
before=$(long_turns)
# Elsewhere they would have processors of their own: here they get what the server leaves.
attackers=()
for i in 1 2 3 4; do
    chrt --idle 0 ./attack stranger "$port" "$SECONDS_EACH" $RATE "${http##*:}" >"stranger$i" &
    attackers+=($!)
    chrt --idle 0 ./attack sender "$port" "$SECONDS_EACH" $RATE sb://localhost/eh1 "$token" eh1 >"sender$i" &
    attackers+=($!)
done
echo "with attackers: $(measure "$SECONDS_EACH")"
wait "${attackers[@]}"
sed 's/^/    /' stranger? sender?
echo "turns above 5 ms: $(($(long_turns) - before))"
verdict busy_turns "$(metric weir_loop_busy_turns_total)" 0

# ---- messages without an end ----
base=$(resident)
coproc ./attack hold "$port" $HELD 900000 sb://localhost/eh1 "$token" eh1
read -r -t 120 word <&"${COPROC[0]}" || true
[ "$word" = ready ] || fail "attack hold: $word"
verdict buffer_bytes "$(metric weir_buffer_bytes)" $BUDGET
echo "refused: $(metric weir_buffer_refused_total)"
peak=$(resident)
for _ in $(seq 600); do
    [ "$(metric weir_buffer_bytes)" -gt 1000000 ] || break
    sleep 0.1
done
eval "exec ${COPROC[1]}>&-"
read -r -t 60 ended <&"${COPROC[0]}" || true
[ "$ended" = "$HELD of $HELD closed" ] || { echo "ROW attackers held=\"$ended\" MISSED"; rc=1; }
room=$((base / 5 > 16 << 20 ? base / 5 : 16 << 20))
for _ in $(seq 300); do
    [ "$(resident)" -gt $((base + room)) ] || break
    sleep 0.1
done
echo "resident: $((base >> 20)) MiB before, $((peak >> 20)) MiB with $HELD messages"
verdict resident_bytes "$(resident)" $((base + room))
stop
exit $rc
