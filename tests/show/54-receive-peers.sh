#!/bin/bash
# 54-receive-peers - receiving events of 100 bytes over loopback with this library, beside RabbitMQ streams and
# beside a minimal log server in C, which is what the machine allows, in interleaved rounds; medians. All three
# have the events in the system's cache: the others leave them there when they are published, ours writes
# past it, so the second reading counts. Ours is to be 1.3 times as fast as RabbitMQ, 0.7 times as fast as
# the minimal one, and to take 80 ns of the client's CPU for an event.
#
#   WEIR_PEERS    the program that measures the others (../shared/bench/peers)
#   WEIR_ROUNDS   how many (7)
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/client src/server
# depends: src/cli bench
set -euo pipefail
RABBIT=1.3 FLOOR=0.7 GOAL_NS=80
EVENTS=6000000
here=$(cd "$(dirname "$0")" && pwd)
peers=${WEIR_PEERS:-$here/../../../shared/bench/peers}
rounds=${WEIR_ROUNDS:-7}

# The round of this library, which the other program calls: one hub for each.
if [ "${1:-}" = --round ]; then
    [ "$SIZE" = 100 ] || exit 0
    hub=round-$(wc -l <"$WORK/ours")
    "$WEIR" hub create "$hub" --partitions 1 --connect "$STRING" --admin "$ADMIN" >/dev/null
    "$WEIR" bench wire publish --connect "$AMQP" --hub "$hub" --size 100 --events "$EVENTS" >/dev/null
    "$WEIR" bench receive "$hub" --connect "$STRING" >/dev/null
    "$WEIR" bench receive "$hub" --connect "$STRING" --json | tee -a "$WORK/ours"
    "$WEIR" hub delete "$hub" --connect "$STRING" --admin "$ADMIN" >/dev/null
    exit
fi

[ -x "$peers" ] || { echo "the program that measures others is not at ${WEIR_PEERS:-../shared/bench/peers}"; exit 77; }
WORK=$(mktemp -d /var/tmp/receive-peers.XXXXXX)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$WORK"
}
trap finish EXIT
trap 'exit 130' INT TERM

"${WEIR:?}" serve --data "$WORK/data" --amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0 --json \
    >"$WORK/ready" 2>"$WORK/err" &
server=$!
for _ in $(seq 200); do
    [ -s "$WORK/ready" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
[ -s "$WORK/ready" ] || { cat "$WORK/err" && exit 1; }
field() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" "$WORK/ready"; }
STRING=$(field connection_string) AMQP=$(field amqp) ADMIN=http://$(field http)
export WORK STRING AMQP ADMIN EVENTS
: >"$WORK/ours"

SYSTEMS=rabbit-stream WITH="$here/54-receive-peers.sh --round" "$peers" consume "$rounds" | tee "$WORK/rows"

# median FILE PATTERN FIELD: of the fields of lines separated by commas.
median() { awk -F, -v pattern="$2" -v at="$3" '$0 ~ pattern { print $at }' "$1" | middle; }
middle() { sort -n | awk '{ all[NR] = $1 } END { print NR ? all[int((NR + 1) / 2)] : 0 }'; }
rabbit=$(median "$WORK/rows" '^ROW,rabbit[^,]*,[^,]*,100,' 7)
floor=$(median "$WORK/rows" '^ROW,floor[^,]*,[^,]*,100,' 7)
ours=$(sed 's/.*"events_per_s":\([0-9]*\).*/\1/' "$WORK/ours" | middle)
cpu=$(sed 's/.*"cpu_ns":\([0-9.]*\).*/\1/' "$WORK/ours" | middle)
[ "$(wc -l <"$WORK/ours")" = "$rounds" ] || { echo "not every round was run" && exit 1; }
awk -v ours="$ours" -v rabbit="$rabbit" -v floor="$floor" -v cpu="$cpu" -v r="$RABBIT" -v f="$FLOOR" \
    -v goal="$GOAL_NS" -v rounds="$rounds" '
    function judge(what, ratio, goal) {
        bad += ratio < goal
        printf "ROW receive-peers event_bytes=100 rounds=%d ours=%d %s=%d ratio=%.2f goal=%s %s\n", rounds, ours,
            what, what == "floor" ? floor : rabbit, ratio, goal, ratio < goal ? "MISSED" : "ok"
    }
    BEGIN {
        if (!rabbit || !floor) { print "a peer was not measured"; exit 1 }
        judge("rabbitmq-stream", ours / rabbit, r)
        judge("floor", ours / floor, f)
        bad += (cpu > goal)
        printf "ROW receive-peers event_bytes=100 rounds=%d client_cpu_ns=%s goal=%d %s\n", rounds, cpu, goal,
            (cpu > goal) ? "MISSED" : "ok"
        exit bad > 0
    }'
