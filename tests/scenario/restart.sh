#!/bin/bash
# Restarts a server under commands that came to it through its folder. They go on by themselves.
# about 11 s
here=$(dirname "$0")
. "$here/serving.bash"

# came LINES FILE: until the file has so many.
came() {
    for _ in $(seq 1200); do
        [ "$(grep -c . "$2")" -lt "$1" ] || return 0
        sleep 0.05
    done
    fail "$2 has $(grep -c . "$2") lines instead of $1: $(tail -n 3 "$2".err)"
}

start --json --data d --hub orders:1:display $free
at=$(field amqp)
cp d/owner key
"$WEIR" tail orders --group display --data d >tail 2>tail.err &
"$WEIR" process orders --data d >process 2>process.err &
echo one | "$WEIR" send orders --data d >/dev/null 2>&1 || fail "send"
came 1 tail
came 1 process
for signal in TERM KILL; do
    before=$(grep -c . tail)
    kill "-$signal" "$server"
    wait "$server" || [ $signal = KILL ] || fail "exit code $?"
    start --json --data d --amqp "$at" --amqps off --http off
    cmp -s d/owner key || fail "another key of the owner"
    echo "after $signal" | "$WEIR" send orders --data d >/dev/null 2>err || fail "send after $signal"
    came $((before + 1)) tail
    came $((before + 1)) process
    [ "$(tail -n 1 tail)" = "after $signal" ] || fail "other events"
done

# ---- the owner's key is replaced when it is removed, and when a crash left a part of it ----
stop
for what in '' 'abc'; do
    rm d/owner
    [ -z "$what" ] || printf %s "$what" >d/owner
    start --json --data d $free
    [ "$(grep -c . d/owner)" = 1 ] && ! cmp -s d/owner key || fail "no new key"
    expect 0 "$WEIR" tail orders --until-end --data d
    stop
done

# ---- a sign that cannot be written is written when it can be ----
mkdir d/serving.new
start --json --data d $free
said 'do not find this server yet' log
expect 4 "$WEIR" tail orders --until-end --data d
rmdir d/serving.new
for _ in $(seq 1200); do
    [ ! -e d/serving ] || break
    sleep 0.05
done
expect 0 "$WEIR" tail orders --until-end --data d
stop

# ---- a command that has the folder for a moment is waited for, and not longer ----
mkfifo lines
"$WEIR" send orders --data d <lines >sent 2>err &
send=$!
exec 9>lines # it reads until this is closed
until grep -qsw "$send" d/lock; do
    kill -0 $send || fail "send ended by itself"
    sleep 0.02
done
: >out
"$WEIR" serve --json --data d $free >out 2>log 9>&- &
server=$!
until grep -q "in use by process $send; waiting up to 5 s" log; do
    kill -0 $server || fail "it did not wait"
    sleep 0.02
done
exec 9>&-
wait $send || fail "send: $?"
until grep -q '}$' out; do
    kill -0 $server || fail "it did not start behind the command"
    sleep 0.02
done
[ "$(grep -c waiting log)" = 1 ] || fail "it said more than once that it waits"
stop
"$WEIR" tail orders --data d >tailed 2>err &
tail=$!
until grep -qsw "$tail" d/lock; do
    kill -0 $tail || fail "tail ended by itself"
    sleep 0.02
done
expect 4 "$WEIR" serve --data d $free
said "weir: data folder: .*in use by process $tail; stop that process" err
kill -INT $tail
wait $tail || fail "tail: $?"
