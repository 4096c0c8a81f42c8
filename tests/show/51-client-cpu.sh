#!/bin/bash
# 51-client-cpu - what an event of 100 bytes costs a program that uses the library, over loopback:
# CPU of its process by getrusage, of the sending side in batches of 100 and of the receiving side, in
# `weir bench e2e`. The goal is 150 ns for each, the median of the rounds. Below that, each side alone.
#
#   WEIR_ROUNDS   how many (5)
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/client src/server
# depends: src/cli bench
set -euo pipefail
GOAL=150
EVENTS=2000000
rounds=${WEIR_ROUNDS:-5}
work=$(mktemp -d /var/tmp/client-cpu.XXXXXX)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

"${WEIR:?}" serve --data "$work/data" --hub load:1 --amqp 127.0.0.1:0 --amqps off --http off --json \
    >"$work/ready" 2>"$work/err" &
server=$!
for _ in $(seq 200); do
    [ -s "$work/ready" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
[ -s "$work/ready" ] || { cat "$work/err" && exit 1; }
string=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' "$work/ready")

# bench MODE ARGS...: a line of JSON, kept.
bench() { "$WEIR" bench "$1" load --connect "$string" --json "${@:2}" | tee -a "$work/$1"; }
# costs MODE SIDE: one number for each round, in order of size.
costs() { sed "s/.*\"$2\":{[^}]*\"cpu_ns\":\([0-9.]*\).*/\1/" "$work/$1" | sort -n; }
failed=0
# judge MODE SIDE [GOAL]: the median.
judge() {
    local median least most verdict=
    median=$(costs "$1" "$2" | sed -n "$(((rounds + 1) / 2))p")
    least=$(costs "$1" "$2" | head -n 1)
    most=$(costs "$1" "$2" | tail -n 1)
    if [ $# = 3 ]; then
        verdict=ok
        awk "BEGIN { exit !($median <= $3) }" || verdict=MISSED failed=1
    fi
    echo "ROW client-cpu mode=$1 side=$2 event_bytes=100 rounds=$rounds cpu_ns=$median least=$least" \
        "most=$most${3:+ goal=$3} $verdict"
}

for _ in $(seq "$rounds"); do
    bench e2e --size 100 --batch 100 --count "$EVENTS"
done
for _ in $(seq "$rounds"); do
    bench send --size 100 --batch 100 --count "$EVENTS"
    bench receive --count "$EVENTS"
done
judge e2e sent $GOAL
judge e2e received $GOAL
judge send sent
judge receive received
exit $failed
