#!/bin/bash
# weir bench wire: every mode against a server of its own, and what it says when it cannot work. How
# fast it is belongs to tests/show.
set -eu
cd "$TMPDIR"
server=

fail() { echo "bench-wire.sh: $*"; cat out err; exit 1; }
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true' EXIT

"$WEIR" serve --data data --amqp 127.0.0.1:0 --http 127.0.0.1:0 --hub h:4 --json >ready 2>err &
server=$!
for _ in $(seq 1200); do
    [ -s ready ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
[ -s ready ] || { touch out && fail "the server is not ready"; }
amqp=$(sed 's/.*"amqp":"\([^"]*\)".*/\1/' ready)
string=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' ready)

# expect CODE ARGS...
expect() {
    want=$1
    shift
    code=0
    "$WEIR" bench wire "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "exit code $code instead of $want from: $*"
}
said() { grep -q -- "$1" "${2:-out}" || fail "did not say '$1'"; }
# row SYSTEM MODE SIZE EVENTS [RSS]: one line of fourteen fields, numbers that agree.
row() {
    awk -F, -v who="$1" -v mode="$2" -v size="$3" -v events="$4" -v rss="${5:-1}" '
        /^ROW,/ {
            rows++
            ok = NF == 14 && $2 == who && $3 == mode && $4 == size && $5 == events && $7 > 0
            ok = ok && ($7 - 1) * ($6 - 0.001) <= $5 && ($7 + 1) * ($6 + 0.001) >= $5
            ok = ok && $8 >= 0 && ($13 > 0) == rss
            for (i = 9; i <= 12; i++) if ($i !~ /^[0-9]+$/) ok = 0
        }
        END { exit !(rows == 1 && ok) }' out || fail "not one row of $*"
}
# times SYSTEM MODE SIZE N: the line of percentiles, in order.
times() {
    said "^LAT $1 $2 sz=$3 n=$4 "
    awk '/^LAT/ { last = 0
        for (i = 6; i <= NF; i++) { split($i, v, "="); if (v[2] + 0 < last || v[2] !~ /us$/) exit 1; last = v[2] + 0 } }' out ||
        fail "percentiles out of order"
}
wire="--connect $amqp --hub h --server-pid $server"

# ---- with a server ----
expect 0 publish $wire --events 20000
row weir pub-b100-w382 100 20000
expect 0 publish $wire --events 3000 --size 1K --batch 1 --partitions 4 --in-flight 64
row weir pub-b1-w64 1024 3000
expect 0 publish --connect "$string" --hub h --events 64 --size 16K --batch 16
row weir pub-b16-w16 16384 64 0
expect 0 receive $wire --events 23064 --partitions 4
row weir consume 100 23064
expect 0 receive --connect "${string}EntityPath=h" --server-pid "$server" --events 20000 --in-flight 100
row weir consume 100 20000
expect 0 sync $wire --events 20
row weir pub-sync 1024 20
times weir pub-sync 1024 20
expect 0 e2e $wire --events 500 --rate 2000
row weir e2e@2000 256 500
times weir e2e@2000 256 500
expect 0 publish $wire --events 100 --json
said '^{"system":"weir","mode":"pub-b100-w382","size":100,"events":100,"seconds":'

# ---- without ----
expect 0 loopback --events 200
row loopback stream 262144 200 0
expect 0 trip --events 100
row loopback trip 64 100 0
times loopback trip 64 100
expect 0 flush --events 10 --data .
row disk flush 4096 10 0
[ -z "$(ls | grep weir-bench)" ] || fail "flush left its folder"

# ---- what cannot be ----
expect 2 nonsense
said 'publish, receive, sync, e2e, loopback, trip or flush' err
expect 2 publish --hub h
said 'HOST:PORT' err
expect 2 publish $wire --size 7
said 'size must be 8 to' err
expect 2 publish $wire --size 64K --batch 17
said 'at most 1048576 bytes' err
expect 1 publish --connect "$amqp" --hub nowhere
said 'could not be found' err
expect 1 publish --connect "${string/SAS_KEY_VALUE/wrong}" --hub h
said 'token was refused with 401' err
expect 1 receive $wire --partitions 5 --events 1
said 'should be between 0 and 3' err
expect 1 receive $wire --events 1 --size 1000
said 'none has less than 1000' err

# ---- and it was all there ----
kill "$server"
wait "$server" || fail "the server ended with $?"
server=
[ "$("$WEIR" tail h --data data --from earliest --until-end --json | wc -l)" = 23684 ] || fail "events are missing"
expect 4 publish --connect "$amqp" --hub h
