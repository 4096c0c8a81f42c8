#!/bin/bash
# weir serve is ready in less than 100 ms with an empty folder: from before the process exists to its
# ready line, TLS included; the median of 21 starts of each kind. With hubs it is told, not judged:
# each is flushed to disk before the server is ready.
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/server src/cli
set -eu
cd "$TMPDIR"
export XDG_DATA_HOME=$TMPDIR/xdg
starts=21 bad=0

# start_once ARGS...: prints the microseconds.
start_once() {
    local began=$EPOCHREALTIME line
    exec 9< <(exec "$WEIR" serve --json --amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http 127.0.0.1:0 "$@")
    local server=$!
    read -r line <&9
    local ended=$EPOCHREALTIME
    [[ $line == '{"ready":true,"amqp":"127'*'"amqps":"127'* ]] || { echo "said: $line" >&2; exit 1; }
    kill "$server"
    wait "$server"
    echo $((${ended/[.,]/} - ${began/[.,]/}))
}
# measure WHAT LIMIT_US CLEAN ARGS...: CLEAN is removed before each start. No limit: "".
measure() {
    local what=$1 limit_us=$2 clean=$3 sorted median
    shift 3
    sorted=$(for _ in $(seq $starts); do
        [ -z "$clean" ] || rm -rf $clean
        start_once "$@"
    done | sort -n)
    median=$(sed -n "$((starts / 2 + 1))p" <<<"$sorted")
    awk -v what="$what" -v m="$median" -v limit="$limit_us" '
        NR == 1 { first = $1 } { last = $1 }
        END { printf "%-28s median %.1f ms, fastest %.1f, slowest %.1f%s\n", what, m / 1000,
                     first / 1000, last / 1000, limit ? sprintf(" (at most %d)", limit / 1000) : "" }
        ' <<<"$sorted"
    [ -z "$limit_us" ] || [ "$median" -lt "$limit_us" ] || bad=1
}
measure "new folder, new authority" 100000 "d xdg" --data d
measure "new folder" 100000 d --data d
measure "in memory" 100000 "" --in-memory
measure "new folder, 8 new hubs" "" d --data d $(seq -f '--hub h%g:4' 8)
measure "folder with 8 hubs" "" "" --data d
exit $bad
