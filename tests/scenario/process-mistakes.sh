#!/bin/bash
# What people get wrong with `weir process`, and what becomes of it: names and keys, stores, and
# checkpoints that are beyond the end, older than what is kept, or not to be understood. Each is told
# with what to do, does nothing by halves, and the other partitions go on.
set -eu
. "$(dirname "$0")/serving.bash"
python=/usr/bin/python3
[ -x $python ] || { echo "python3 is not installed" && exit 77; }

# await WORDS...: until a condition holds; a minute, for a loaded machine.
await() {
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    grep -m 3 '"type":"event"' copy
    grep -v '"type":"event"' copy
    tail -n 2 copy
    fail "in vain: $*"
}
# run HUB ARGS...: a copy that says everything, in the file copy.
run() {
    "$WEIR" process "$@" --json >copy 2>err &
    pid=$!
}
# leave: it must end well, with a close for each open.
leave() {
    kill -TERM $pid
    kill -INT $pid # in the same moment: it is one, as from timeout(1), which tells a group, too
    wait $pid || fail "exit code $? after SIGTERM"
    [ "$(grep -c '"type":"open"' copy)" = "$(grep -c '"type":"close"' copy)" ] || fail "an open without its close"
}
# told PATTERN: an error line of the copy says it.
told() { grep '"type":"error"' copy | grep -q -- "$1"; }
# given PARTITION: the sequence numbers of it, in a row.
given() { sed -n "s/.*\"type\":\"event\".*\"partition\":\"$1\".*\"sequence\":\([0-9]*\).*/\1/p" copy | tr '\n' ' '; }
has() { [ "$(given "$1")" = "$2" ]; }

: >out && : >err && : >copy
"$WEIR" hub create homes --partitions 4 --data d >out
"$WEIR" hub create short --partitions 1 --retention-bytes 1M --data d >out
for i in 0 1 2 3; do seq 1 5 | "$WEIR" send homes --partition $i --data d >out; done
only_send=$("$WEIR" key add homes --rights send --data d)
all=$("$WEIR" key add --rights manage --data d)

# ---- a checkpoint older than what is kept: the oldest that is there, and how many are gone ----
seq 1 5 | "$WEIR" send short --data d >out
"$WEIR" bench send short --size 1000 --batch 100 --count 2000 --data d >out
first=$("$WEIR" hub show short --data d | awk '$1 == "0" { print $3 }')
last=$(($("$WEIR" hub show short --data d | awk '$1 == "0" { print $4 }') - 1))
[ "$first" -gt 3 ] || fail "nothing was dropped"
"$WEIR" hub show short --data d | awk '$1 == "0" { n = $4 - $3 - $2 } END { exit n != 0 }' ||
    fail "another count than what is kept"
gone_is_told() {
    expect 0 "$WEIR" checkpoint set short --partition 0 --sequence 2 --store sqlite:old.db "$@"
    expect 0 "$WEIR" group describe short --store sqlite:old.db --json "$@"
    behind=$(sed -n 's/.*"lag":\([0-9]*\),.*/\1/p' out)
    [ "$behind" -le $((last + 1 - first)) ] || fail "a lag of $behind, and $first to $last are kept"
    run short --store sqlite:old.db "$@"
    await told '"partition":"0".*"action":"receiving".*[0-9]* events of partition 0 are gone.*going on at [0-9]*'
    # Retention works beside this, so more may have gone meanwhile.
    at=$(sed -n 's/.*are gone.*going on at \([0-9]*\).*/\1/p' copy)
    [ "$at" -ge "$first" ] || fail "going on at $at, and the oldest is $first"
    told "\"$((at - 3)) events of partition 0 are gone" || fail "not $((at - 3)) are gone"
    all_given() { has 0 "$(seq "$at" "$last" | tr '\n' ' ')"; }
    await all_given
    leave
    [ "$(grep -c 'are gone' copy)" = 1 ] || fail "it was told more than once"
}
gone_is_told --data d

# ---- the same over the wire, and names and keys ----
start --json --data d --amqp 127.0.0.1:0 --amqps off --http off
port=$(field amqp | sed 's/.*://')
at() { grep -o 'Endpoint=.*' <<<"$1" | sed "s/localhost/localhost:$port/"; }
only_send=$(at "$only_send")
export WEIR_CONNECT=$(at "$all")
gone_is_told

expect 3 "$WEIR" process nothing --store sqlite:new.db
said "hub 'nothing'.*not be found.*weir hub list" err
expect 3 "$WEIR" process homes --group nobody --store sqlite:new.db
said "group 'nobody' of hub 'homes'.*not be found.*weir hub show" err
expect 1 "$WEIR" process homes --connect "$only_send" --store sqlite:new.db
said "'Listen' claim.*weir key add --rights listen" err
expect 3 "$WEIR" group describe homes/nobody --store sqlite:new.db
expect 3 "$WEIR" checkpoint set homes/nobody --partition 0 --sequence 1 --store sqlite:new.db
[ ! -e new.db ] || fail "a store was made for nothing"
expect 3 "$WEIR" checkpoint list homes/nobody --store sqlite:other.db

# ---- stores ----
expect 4 "$WEIR" process homes --store postgres://nobody@127.0.0.1:1/nothing
said 'PostgreSQL.*"127.0.0.1", port 1 failed: Connection refused; see that it runs' err
expect 3 "$WEIR" process homes --store sqlite:nowhere/store.db
said "store 'nowhere/store.db'.*No such file or directory; --store names another" err
[ ! -e nowhere ] || fail "a folder was made"
seq 1 100 >text.db
cp text.db before.db
expect 2 "$WEIR" process homes --store sqlite:text.db
said "store 'text.db': file is not a database" err
cmp text.db before.db || fail "somebody's file was changed"
mkdir closed && chmod 555 closed
if ! touch closed/x 2>/dev/null; then
    expect 1 "$WEIR" process homes --store sqlite:closed/store.db
    said "store 'closed/store.db'.*Permission denied" err
fi

# ---- one checkpoint beyond the end, one record that is rubbish: the others go on ----
store=sqlite:store.db
for i in 0 1 2 3; do
    expect 0 "$WEIR" checkpoint set homes --store $store --partition $i --sequence 2
done
$python - <<'PY'
import sqlite3
db = sqlite3.connect("store.db")
db.execute("UPDATE record SET mark_sequence = 1000000 WHERE partition = 1")
db.execute("UPDATE record SET epoch = 'rubbish' WHERE partition = 2")
db.commit()
PY
run homes --store $store
await has 0 "3 4 "
await has 3 "3 4 "
await told '"partition":"1".*"action":"opening".*WEIR_EINVAL.*checkpoint at 1000000 of partition 1 is not in the hub (weir checkpoint set.*last sequence number in the system is .4'
await told 'WEIR_ECORRUPT.*record of partition 2 cannot be understood.*(weir checkpoint delete'
expect 0 "$WEIR" checkpoint list homes --store $store
said "2 (the record cannot be understood)"
for i in 0 1 2 3; do echo 6 | "$WEIR" send homes --partition $i >out; done
await has 0 "3 4 5 "
await has 3 "3 4 5 "
[ "$(given 1)$(given 2)" = "" ] || fail "events of a partition whose place is not known"
# What it says to do puts it right while it runs.
expect 0 "$WEIR" checkpoint set homes --store $store --partition 1 --sequence 3
await has 1 "4 5 "
expect 0 "$WEIR" checkpoint delete homes --store $store --partition 2
await has 2 "0 1 2 3 4 5 "
leave
expect 0 "$WEIR" checkpoint list homes --store $store --json
[ "$(grep -c '"sequence":5,' out)" = 4 ] || fail "not all marks were stored"
stop
