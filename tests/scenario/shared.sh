#!/bin/bash
# One folder, many commands: through weir serve all of them work at the same time, with the store in
# the folder; without it the second one says what to do.
# about 8 s
. "$(dirname "$0")/serving.bash"
export WEIR_DATA=d

# await WORDS...: until a condition holds; a minute, for a loaded machine.
await() {
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    fail "in vain: $*"
}
lines() { [ "$(cat $2 | wc -l)" -ge "$1" ]; }

expect 0 "$WEIR" hub create homes --partitions 4 --groups alarms

# ---- two terminals, no server: the second is told what to type ----
"$WEIR" tail homes >tailed 2>tail_err &
tail=$!
await grep -qs '^[0-9]' d/lock
for command in 'send homes' 'tail homes' 'process homes/alarms' 'group describe homes/alarms' \
    'checkpoint list homes/alarms' 'hub list' 'key list'; do
    # shellcheck disable=SC2086
    expect 4 "$WEIR" $command
    said "in use by process $tail; .*'weir serve --data d'" err
done
kill -INT $tail
wait $tail || fail "tail: $?"

# ---- as it says: then both work, and any number of copies ----
start --json --data d --amqp 127.0.0.1:0 --amqps off --http off
"$WEIR" tail homes >tailed 2>tail_err &
tail=$!
for i in 1 2; do
    "$WEIR" process homes --group alarms --name "copy-$i" >"copy$i" 2>"err$i" &
    copy[$i]=$!
done
opened() { [ "$(grep -hc opened "$1")" -ge 2 ]; }
await opened err1
await opened err2
for p in 0 1 2 3; do seq 1 25 | "$WEIR" send homes --partition $p >sent 2>err || fail "send"; done
await lines 100 tailed
await lines 100 'copy1 copy2'
[ -s copy1 ] && [ -s copy2 ] || fail "one copy has all the work"
expect 0 "$WEIR" group describe homes/alarms
[ "$(grep -c '^member' out)" = 2 ] || fail "not two members"
for job in $tail "${copy[@]}"; do kill -INT "$job"; done
for job in $tail "${copy[@]}"; do wait "$job" || fail "one of them ended with $?"; done
[ -e d/processor.db ] || fail "the store is elsewhere"
"$WEIR" checkpoint list homes/alarms --json >through 2>err || fail "checkpoint list"
[ "$(wc -l <through)" = 4 ] || fail "not four checkpoints"
expect 0 "$WEIR" checkpoint set homes/alarms --partition 1 --sequence 0
stop

# ---- and they are the same records when nobody serves it ----
"$WEIR" checkpoint list homes/alarms --json >alone 2>err || fail "checkpoint list"
drop() { grep -v '"partition":"1"' "$1" | sed 's/"modified":"[^"]*",//'; }
[ "$(drop alone)" = "$(drop through)" ] || fail "other checkpoints: $(cat through alone)"
grep -q '"partition":"1","sequence":0,' alone || fail "what was set through the server is not there"
