#!/bin/bash
# 23-many-hubs - a thousand hubs with one event each in one process: how many threads and how much
# memory they take, what they cost while nothing happens, how long they take to open, and how much of
# the disk they hold. That is the disk that the build lies on, unless WEIR_BENCH_DIR names another.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
HUBS=${HUBS:-1000} IDLE_S=${IDLE_S:-60} ROUNDS=3
dir=$(mktemp -d "${WEIR_BENCH_DIR:-$BUILD}/many-hubs.XXXXXX")
trap 'rm -rf "$dir"' EXIT

[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge $((HUBS * 8)) ] ||
    { echo "not enough descriptors: $(ulimit -Hn)"; exit 77; }
cc -std=c11 -O2 -g -D_GNU_SOURCE -I"$root/src" -I"$root/include" -o "$TMPDIR/many_hubs" \
    "$root/tests/show/scale/many_hubs.c" "$BUILD/src/hub/libweir_hub.a" \
    "$BUILD/src/log/libweir_log.a" "$BUILD/src/amqp/libweir_amqp.a" \
    "$BUILD/src/base/libweir_base.a" -lpthread -lcrypto

"$TMPDIR/many_hubs" "$dir/data" "$HUBS" 0 make
for ((i = 0; i < ROUNDS; i++)); do # the last one idles for as long as is asked for
    row=$("$TMPDIR/many_hubs" "$dir/data" "$HUBS" $((i + 1 < ROUNDS ? 1 : IDLE_S)) open)
    opens+=$(sed 's/open_ms=\([0-9]*\).*/\1 /' <<<"$row")
done

rc=0
# verdict NAME VALUE GOAL: at most.
verdict() {
    local word=ok
    awk "BEGIN { exit !($2 <= $3) }" || { word=MISSED rc=1; }
    echo "ROW many-hubs hubs=$HUBS $1=$2 goal=$3 $word"
}
field() { sed "s/.*$1=\([0-9.]*\).*/\1/" <<<"$row"; }

verdict open_ms "$(tr ' ' '\n' <<<"$opens" | sed '/^$/d' | sort -n | head -1)" 1000
verdict threads "$(field threads)" 16
verdict resident_kb "$(field resident_kb)" 40000
verdict idle_percent "$(field idle_percent)" 0.5
verdict disk_kb "$(du -sk "$dir/data" | cut -f 1)" 100000
exit $rc
