#!/bin/bash
# One copy that owns 1,024 partitions with nothing to read, over the wire and on a folder, of hubs that
# never had an event and of hubs whose events it has just handled: at most 16 KB of memory for a
# partition, 1 % of a core, and 2 calls of the store (SQLite) a beat, none of them a renewal of a
# partition. Memory is what is resident after malloc_trim(3), more than of the same program with a hub
# of one partition; beside it, in kb_with_free, the same with what is free and kept by the C library.
#
#   SECONDS_IDLE   that it is watched (30), after it has been quiet for 5
# depends: src tests/show/processor
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
PARTITIONS=1024 KB_EACH=16 CPU_PERCENT=1 CALLS=2 EVENTS=102400
work=$(mktemp -d /var/tmp/processor-idle.XXXXXX)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
fail() { echo "67-processor-idle.sh: $*" && cat "$work/err" && exit 1; }

cc -std=c11 -O2 -Wall -Wextra -Werror "-I$here/../../include" -o "$work/measure" \
    "$here/processor/measure.c" "-L${BUILD:?}" "-Wl,-rpath,$BUILD" -lweir

# A folder for each kind of run, so that a hub on a folder costs what it costs.
make() {
    mkdir "$work/$1"
    for hub in one:1 many:$PARTITIONS; do
        "${WEIR:?}" hub create "${hub%:*}" --partitions "${hub#*:}" --data "$work/$1/${hub%:*}" >/dev/null
        [ "$1" = empty ] || "$WEIR" bench send "${hub%:*}" --batch 10 \
            --count $((EVENTS * ${hub#*:} / PARTITIONS)) --data "$work/$1/${hub%:*}" >/dev/null
    done
}
start() {
    : >"$work/ready"
    "$WEIR" serve --data "$1" --amqp 127.0.0.1:0 --amqps off --http off --json >"$work/ready" 2>"$work/err" &
    server=$!
    for _ in $(seq 400); do
        [ -s "$work/ready" ] && return
        sleep 0.05
    done
    fail "weir serve is not ready"
}
# number NAME FILE
number() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/" "$2"; }
# watch PLACE KIND HUB: one copy, its line in PLACE.KIND.HUB.
watch() {
    local where=$work/$2/$3 line=$work/$1.$2.$3
    if [ "$1" = wire ]; then
        start "$where"
        where=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' "$work/ready")
    fi
    "$work/measure" idle "$where" "$3" "$line.db" "${SECONDS_IDLE:-30}" >"$line" 2>"$work/err" ||
        fail "the copy failed"
    sed "s/^/$1 $2 $3 /" "$line"
    [ -z "$server" ] || { kill "$server" && wait "$server"; }
    server=
}
# each NAME: of a partition, in $place and $kind.
each() {
    local many one
    many=$(number "$1" "$work/$place.$kind.many")
    one=$(number "$1" "$work/$place.$kind.one")
    awk "BEGIN { printf \"%.2f\", ($many - $one) / ($PARTITIONS - 1) }"
}
failed=0
# judge PLACE KIND WHAT VALUE GOAL
judge() {
    local verdict=ok
    awk "BEGIN { exit !($4 <= $5) }" || verdict=MISSED failed=1
    echo "ROW processor-idle place=$1 hub=$2 partitions=$PARTITIONS $3=$4 at_most=$5 $verdict"
}
for kind in empty handled; do
    make $kind
    for place in wire folder; do
        watch $place $kind one
        watch $place $kind many
        line=$work/$place.$kind.many
        [ "$(number owned "$line")" = $PARTITIONS ] || fail "not all partitions are owned"
        judge $place $kind kb_each "$(each trimmed_kb)" $KB_EACH
        echo "ROW processor-idle place=$place hub=$kind partitions=$PARTITIONS kb_with_free=$(each rss_kb)"
        judge $place $kind cpu_percent "$(number cpu_percent "$line")" $CPU_PERCENT
        judge $place $kind calls_per_beat "$(number calls_per_beat "$line")" $CALLS
        judge $place $kind renewals "$(number claims "$line")" 0
    done
done
exit $failed
