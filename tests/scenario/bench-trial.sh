#!/bin/bash
# weir bench send, receive and e2e: on a folder and over a connection, what they count and time, what
# they leave alone, and what they say when they cannot work. How fast it is belongs to tests/show.
# gcc only
# about 20 s
. "$(dirname "$0")/serving.bash"
unset WEIR_CONNECT WEIR_DATA

# number NAME, or SIDE.NAME: of the JSON object that was printed.
number() {
    case $1 in
    *.*) sed -n "s/.*\"${1%.*}\":{\([^}]*\)}.*/\1/p" out ;;
    *) cat out ;;
    esac | sed -n "s/.*\"${1##*.}\":\"\{0,1\}\([^,}\"]*\).*/\1/p"
}
# is NAME VALUE
is() { [ "$(number "$1")" = "$2" ] || fail "$1 is $(number "$1"), not $2"; }
# in_order SIDE...: percentiles grow, and each side took time and CPU.
in_order() {
    for name in p50_us p90_us p99_us p99_9_us max_us; do number $name; done |
        awk '$1 <= 0 || $1 < last { exit 1 } { last = $1; n++ } END { if (n != 5) exit 1 }' ||
        fail "percentiles are out of order"
    for side in "$@"; do
        for name in cpu_ns seconds events_per_s; do number "$side.$name"; done |
            awk '$1 <= 0 { exit 1 } { n++ } END { if (n != 3) exit 1 }' || fail "what $side took"
    done
}
bench() { expect "$want" "$WEIR" bench "$@"; }

# ---- a folder ----
want=0
bench send h --data folder --create --partitions 3 --count 2550 --size 50 --batch 20 --json
is mode send && is partitions 3 && is sent.events 2550 && is sent.bytes 127500 && is failed 0
in_order sent
[ ! -s err ] || fail "a progress bar without a terminal"
bench receive h --data folder --json
is received.events 2551 && is received.bytes 127550 # with the one that goes before all others
in_order received
bench receive h --data folder --partitions 1 --count 100 --json
[ "$(number received.events)" -ge 100 ] || fail "less than was asked for"
bench e2e h --data folder --count 1000 --json
is sent.events 1000 && is received.events 1000 && is missing 0 && is others 0
in_order sent received
bench send h --data folder --rate 2000 --batch 10 --seconds 1 --json
is sent.events 2000
bench receive h --data folder
said '^received  5553 events, .* 3 partitions, .* events/s'
said 'ns an event (.* user, .* system)'
said '^from one receive to the next: p50 .* p99.9 .* max '

# ---- a connection ----
start $free --data served --hub one:1 --hub other:2 --json
string=$(field connection_string) http=http://$(field http)
bench send one --connect "$string" --count 3000 --json
is sent.events 3000
in_order sent
WEIR_CONNECT=$string bench receive one --json
is received.events 3001
in_order received
# Others' events are passed over: those that were there, and those that come meanwhile.
(while [ ! -e enough ]; do seq 100 | "$WEIR" send other --connect "$string"; done) >sent 2>&1 &
others=$!
for _ in $(seq 600); do # a minute, for a loaded machine
    [ ! -s sent ] || break
    sleep 0.1
done
[ -s sent ] || fail "nobody else sends"
bench e2e other --connect "$string" --rate 400 --batch 5 --seconds 5 --json
touch enough
wait "$others"
is sent.events 2000 && is received.events 2000 && is missing 0
[ "$(number others)" -gt 0 ] || fail "nobody else sent"
in_order sent received
bench e2e other --connect "$string" --count 500
said '^sent  *500 events'
said '^received  *500 events'
said '^from sending to receiving: p50 '
# Ctrl-C ends it, and what was measured is told.
"$WEIR" bench e2e other --connect "$string" --rate 100 --batch 1 --seconds 60 >out 2>err &
trial=$!
timeout 30 "$WEIR" tail other --connect "$string" --from latest --count 1 >sent 2>&1 || fail "nothing is sent"
kill -INT "$trial"
wait "$trial" || fail "exit code $? after an interrupt"
said '^sent  *[0-9]* events'
# A hub of its own, and never twice.
bench send mine --connect "$string" --admin "$http" --create --partitions 2 --count 10 --json
is partitions 2
want=1
bench send mine --connect "$string" --admin "$http" --create --count 10
said 'exists' err

# ---- what cannot be ----
want=2
bench send one
said '--connect CONNSTR' err
said '--data DIR' err
bench e2e one --connect "$string" --partitions 2
said 'the hub has 1' err
bench send one --connect "$string" --size 15
said 'size must be 16 to' err
bench send one --connect "$string" --size 64K --batch 17
said 'at most 1048576 bytes' err
bench send one --connect Endpoint=nonsense
want=3
bench receive nothing --connect "$string"
want=1
bench send one --connect "${string/SAS_KEY_VALUE/wrong}" --count 1
stop
want=4
bench e2e one --connect "$string" --count 1

# ---- and it was all there ----
[ "$("$WEIR" tail one --data served --from earliest --until-end --json | wc -l)" = 3001 ] || fail "events are missing"
