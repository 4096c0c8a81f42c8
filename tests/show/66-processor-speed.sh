#!/bin/bash
# One processor over the wire beside Azure's own for JavaScript, on the same server and the same events
# of 100 bytes in 16 partitions, one process each, in turns: events/s between the first and the last
# one handled, medians. Ours marks each batch in SQLite, the other one in memory. Ours is to be 25 times
# as fast, and 8 million events/s. A run counts when each event came once and in order: all of them for
# ours, and for the other all up to where it was after its time.
#
#   WEIR_ROUNDS   how many (3)
#   EVENTS        in the hub (8000000)
#   SECONDS_JS    that the other one has (20)
# depends: src tests/show/processor tests/interop/js tests/scenario/node.bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../scenario/node.bash"
install "$interop/js"
FASTER=25 LEAST=8000000
rounds=${WEIR_ROUNDS:-3}
work=$(mktemp -d /var/tmp/processor-speed.XXXXXX)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
fail() { echo "66-processor-speed.sh: $*" && cat "$work/err" && exit 1; }

cc -std=c11 -O2 -Wall -Wextra -Werror "-I$here/../../include" -o "$work/measure" \
    "$here/processor/measure.c" "-L${BUILD:?}" "-Wl,-rpath,$BUILD" -lweir
"${WEIR:?}" serve --data "$work/data" --hub load:16 --amqp 127.0.0.1:0 --amqps off --http off --json \
    >"$work/ready" 2>"$work/err" &
server=$!
for _ in $(seq 400); do
    [ -s "$work/ready" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
[ -s "$work/ready" ] || fail "weir serve is not ready"
string=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' "$work/ready")

"$WEIR" bench send load --connect "$string" --size 100 --batch 100 --count "${EVENTS:-8000000}" --json
# What is there, and the sum of all sequence numbers.
read -r events sum <<<"$("$WEIR" hub show load --connect "$string" | awk '
    /^ *[0-9]+ +[0-9]/ { n += $2; sum += $2 * ($2 - 1) / 2 } END { printf "%d %.0f\n", n, sum }')"

# number NAME FILE: of its last line of JSON.
number() { sed -n "\$s/.*\"$1\":\([0-9.]*\).*/\1/p" "$2"; }
# kept NAME COMMAND...: its line is one more of NAME's.
kept() {
    "${@:2}" >"$work/line" 2>"$work/err" || { cat "$work/line" && fail "$1 did not get every event once"; }
    sed "s/^/$1 /" "$work/line"
    cat "$work/line" >>"$work/$1"
}
# ours NAME WHERE: everything, checked.
ours() {
    rm -f "$work"/store.db*
    kept "$1" "$work/measure" drain "$2" load "$work/store.db" "$events"
    [ "$(number sum "$work/$1")" = "$sum" ] && [ "$(number bytes "$work/$1")" = $((events * 100)) ] ||
        fail "$1 did not get every event once"
}
for _ in $(seq "$rounds"); do
    ours wire "$string"
    kept js "$node" "$interop/js/subscribe.mjs" "$string" load "$events" "${SECONDS_JS:-20}"
done
kill "$server" && wait "$server"
server=
for _ in $(seq "$rounds"); do
    ours folder "$work/data"
done

# rates NAME: in order of size.
rates() { sed 's/.*"events_per_s":\([0-9]*\).*/\1/' "$work/$1" | sort -n; }
median() { rates "$1" | sed -n "$(((rounds + 1) / 2))p"; }
row() {
    echo "ROW processor-speed system=$1 event_bytes=100 partitions=16 events=$(number events "$work/$1")" \
        "rounds=$rounds events_per_s=$(median "$1") least=$(rates "$1" | head -n 1)" \
        "most=$(rates "$1" | tail -n 1) cpu_ns=$(number cpu_ns "$work/$1")"
}
failed=0
row wire
row js
row folder
for goal in "$LEAST eight-million" "$(($(median js) * FASTER)) $FASTER-times-js"; do
    verdict=ok
    [ "$(median wire)" -ge "${goal% *}" ] || verdict=MISSED failed=1
    echo "ROW processor-speed goal=${goal#* } at_least=${goal% *} events_per_s=$(median wire) $verdict"
done
awk "BEGIN { printf \"ROW processor-speed times_js=%.1f\n\", $(median wire) / $(median js) }"
exit $failed
