#!/bin/bash
# Five `weir process` share 16 partitions of a server through one SQLite file: who has what, what a
# kill -9 and a SIGTERM do to that, and what CMD and the checkpoints can do.
# about 10 s
set -eu
. "$(dirname "$0")/serving.bash"

store=sqlite:$TMPDIR/store.db
start --json --data d --amqp 127.0.0.1:0 --amqps off --http off --hub homes:16
connect=$(field connection_string)
export WEIR_CONNECT=$connect

# opened FILE: the partitions that a copy has open, by its own lines.
opened() {
    sed -n 's/.*"type":"\(open\|close\)".*"partition":"\([0-9]*\)".*/\1 \2/p' "$1" |
        awk '$1 == "open" { n[$2]++ } $1 == "close" { n[$2]-- }
             END { for (p in n) if (n[p] > 0) c++; print c + 0 }'
}
# shares COPIES...: what they have open, sorted.
shares() { for i in "$@"; do opened "copy$i"; done | sort -n | tr '\n' ' '; }
# await WORDS...: until a condition holds; a minute, for a loaded machine.
await() {
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    fail "in vain: $* ($(shares 1 2 3 4 5))"
}
shared() { [ "$(shares $2)" = "$1 " ]; }
seen() { cat copy? | grep '"type":"event"' | sed 's/.*"partition":"\([0-9]*\)".*"sequence":\([0-9]*\).*/\1 \2/'; }
all_seen() { [ "$(seen | sort -u | wc -l)" = "$1" ]; }

run() {
    "$WEIR" process homes --store "$store" --name "copy-$1" --json >"copy$1" 2>"err$1" &
    pid[$1]=$!
}

# ---- 3/3/3/3/4, without a single move in vain ----
# spread_ms: between the first partitions that two copies opened, at most. Copies that a loaded machine
# starts apart have not started at once: partitions move to the late ones.
spread_ms() {
    for i in 1 2 3 4 5; do
        date -d "$(sed -n '/"type":"open"/{s/.*"time":"\([^"]*\)".*/\1/p;q}' "copy$i")" +%s%3N
    done | sort -n | awk 'NR == 1 { first = $1 } END { print $1 - first }'
}
for i in 1 2 3 4 5; do run $i; done
await shared "3 3 3 3 4" "1 2 3 4 5"
[ "$(cat copy? | grep -c '"type":"open"')" = 16 ] || [ "$(spread_ms)" -gt 300 ] ||
    fail "partitions moved at the start: $(spread_ms) ms"
seq 1 3000 | "$WEIR" send homes >sent 2>err || fail "send"
await all_seen 3000
[ "$(cat copy? | sed -n 's/.*"type":"event".*"key":null,"body":"\([0-9]*\)","properties":{}}$/\1/p' | sort -nu |
    md5sum)" = "$(seq 1 3000 | md5sum)" ] || fail "events without their bodies"
expect 0 "$WEIR" group describe homes --store "$store"
[ "$(grep -c '^member' out)" = 5 ] || fail "not five members"
silent "unowned"
all_alive() {
    "$WEIR" group describe homes --store "$store" --json >out && [ "$(grep -c '"alive":true' out)" = 5 ]
}
await all_alive

# ---- kill -9: the others have its partitions soon, and go on behind its marks ----
# stored EVENTS: the checkpoints have come so far.
stored() {
    [ "$("$WEIR" checkpoint list homes --store "$store" --json |
        sed 's/.*"sequence":\([0-9]*\).*/\1/' | awk '{ n += $1 + 1 } END { print n + 0 }')" = "$1" ]
}
await stored 3000
had=$(opened copy3)
kill -9 "${pid[3]}"
wait "${pid[3]}" 2>/dev/null || true
await shared "4 4 4 4" "1 2 4 5"
seq 3001 6000 | "$WEIR" send homes >sent 2>err || fail "send"
await all_seen 6000
[ "$(seen | wc -l)" = 6000 ] || fail "$(($(seen | wc -l) - 6000)) events were given twice"
[ "$had" -ge 3 ] || fail "the dead copy had $had partitions"

# ---- SIGTERM: handed over, every open closed, nothing twice ----
kill -TERM "${pid[4]}"
wait "${pid[4]}" || fail "exit code $? after SIGTERM"
[ "$(opened copy4)" = 0 ] || fail "an open without its close"
grep -q '"reason":"shutdown"' copy4 || fail "no reason"
await shared "5 5 6" "1 2 5"
seq 6001 7000 | "$WEIR" send homes >sent 2>err || fail "send"
await all_seen 7000
[ "$(seen | wc -l)" = 7000 ] || fail "events were given twice"

# ---- a name is taken once, and mistakes are named ----
expect 1 "$WEIR" process homes --store "$store" --name copy-1
said copy-1 err
expect 2 "$WEIR" process homes
expect 2 "$WEIR" process homes --store nonsense:x
expect 3 "$WEIR" process nothing --store "$store"
expect 3 "$WEIR" process homes --group nobody --store "$store"
for i in 1 2 5; do kill -TERM "${pid[$i]}"; done
for i in 1 2 5; do wait "${pid[$i]}" || fail "exit code $?"; done

# ---- checkpoints by hand ----
expect 0 "$WEIR" checkpoint list homes --store "$store" --json
[ "$(wc -l <out)" -ge 1 ] || fail "no checkpoints"
partition=$(sed -n '1s/.*"partition":"\([0-9]*\)".*/\1/p' out)
last=$(sed -n '1s/.*"sequence":\([0-9]*\).*/\1/p' out)
expect 3 "$WEIR" checkpoint set homes --store "$store" --partition 99 --sequence 1
expect 2 "$WEIR" checkpoint set homes --store "$store" --partition "$partition" --sequence 99999999
expect 0 "$WEIR" checkpoint set homes --store "$store" --partition "$partition" --sequence 4
expect 0 "$WEIR" checkpoint list homes --store "$store" --json
said "\"partition\":\"$partition\",\"sequence\":4,"

# ---- a command for each partition: what it prints is marked ----
cat >cmd <<'CMD'
while read -r line; do echo "$line" >>"fed.$WEIR_PARTITION"
    echo "$line" | sed 's/.*"sequence":\([0-9]*\).*/\1/'; done
CMD
"$WEIR" process homes --store "$store" --exec 'sh cmd' --json >copy6 2>err6 &
pid[6]=$!
fed() { [ -e "fed.$partition" ] && [ "$(wc -l <"fed.$partition")" = $((last - 4)) ]; }
await fed
kill -TERM "${pid[6]}"
wait "${pid[6]}" || fail "exit code $?"
[ "$(opened copy6)" = 0 ] || fail "an open without its close"
expect 0 "$WEIR" checkpoint list homes --store "$store" --json
said "\"partition\":\"$partition\",\"sequence\":$last,"

# ---- one that fails: how it ended is told ----
expect 0 "$WEIR" checkpoint delete homes --store "$store" --all
"$WEIR" process homes --store "$store" --exec 'read -r line; exit 3' >copy7 2>err7 &
pid[7]=$!
await grep -q 'the command of partition [0-9]* ended with exit code 3$' err7
kill -TERM "${pid[7]}"
wait "${pid[7]}" || fail "exit code $?"
expect 0 "$WEIR" checkpoint delete homes --store "$store" --all
expect 0 "$WEIR" checkpoint list homes --store "$store" --json
[ ! -s out ] || fail "checkpoints were left"
stop
