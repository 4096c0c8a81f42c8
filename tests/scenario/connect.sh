#!/bin/bash
# weir send and weir tail over a connection: what one sends the other prints, and each says what is
# wrong when it cannot.
# about 15 s
set -eu
. "$(dirname "$0")/serving.bash"

start --json --data d --amqp 127.0.0.1:0 --amqps off --http off --hub homes:4
connect=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' out)
seq 1 500 | "$WEIR" send homes --connect "$connect" >sent 2>err || fail "send"
[ "$(cat sent)" = "acknowledged 500 events" ] || fail "send said $(cat sent)"
echo late | WEIR_CONNECT=$connect "$WEIR" send homes --key home-7 --property a=b >sent 2>err || fail "send"

timeout 30 "$WEIR" tail homes --connect "$connect" --until-end >lines 2>err || fail "tail"
[ "$(sort -n lines | tail -n 500 | md5sum)" = "$(seq 1 500 | md5sum)" ] || fail "other lines came"
[ "$(wc -l <lines)" = 501 ] || fail "$(wc -l <lines) lines"
timeout 30 "$WEIR" tail homes --connect "$connect" --until-end --json >lines 2>err || fail "tail --json"
grep -q '"key":"home-7","body":"late","properties":{"a":"b"}' lines || fail "no key, no property"
timeout 30 "$WEIR" tail homes --connect "$connect" --from latest --until-end >lines 2>err || fail "tail"
[ ! -s lines ] || fail "events behind the end"
# The present end of a partition is known before anything comes, however the place is named.
echo last | "$WEIR" send homes --partition 2 --connect "$connect" >sent 2>err || fail "send"
timeout 30 "$WEIR" tail homes --partition 2 --connect "$connect" --until-end --json >lines 2>err || fail "tail"
last=$(tail -n 1 lines)
sequence=$(echo "$last" | sed 's/.*"sequence":\([0-9]*\).*/\1/')
offset=$(echo "$last" | sed 's/.*"offset":"\([0-9]*\)".*/\1/')
for from in "sequence:$sequence" "offset:$offset"; do
    timeout 30 "$WEIR" tail homes --partition 2 --connect "$connect" --until-end --from "$from" >lines 2>err || fail "tail --from $from"
    [ "$(cat lines)" = last ] || fail "not the last event from $from"
done
for from in "sequence:$((sequence + 1)) --partition 2" "sequence:$((sequence + 1))" "offset:$((offset + 1))" time:2199-01-01; do
    # shellcheck disable=SC2086
    timeout 30 "$WEIR" tail homes --connect "$connect" --until-end --from $from >lines 2>err || fail "tail --from $from"
    ! grep -q last lines || fail "an event in front of $from"
done
timeout 30 "$WEIR" tail homes --connect "$connect" --count 3 >lines 2>err || fail "tail --count"
[ "$(wc -l <lines)" = 3 ] || fail "not three lines"

# ---- the place alone, with the usual key ----
address=$(echo "$connect" | sed 's|.*sb://\(localhost:[0-9]*\).*|\1|')
for place in "$address" "sb://$address" "sb://$address/" "SB://$address"; do
    expect 0 "$WEIR" tail homes --connect "$place" --count 1
    expect 0 env WEIR_CONNECT="$place" "$WEIR" hub show homes
done
for nothing in localhost folder:x ./d secret '' "$address/x"; do
    expect 2 "$WEIR" send homes --connect "$nothing"
    silent secret err
done
[ "$(ls)" = "$(ls -d d err lines log out sent xdg 2>/dev/null)" ] || fail "a folder was made: $(ls)"

# ---- and what is wrong ----
expect 3 "$WEIR" tail nothing --connect "$connect" --until-end
expect 2 "$WEIR" tail homes --connect "Endpoint=nonsense" --until-end
wrong=$(echo "$connect" | sed 's/SharedAccessKey=[^;]*/SharedAccessKey=wrong/')
expect 1 "$WEIR" tail homes --connect "$wrong" --until-end
! grep -q wrong err || fail "the key is printed"
[ "$(wc -l <err)" = 1 ] || fail "it is said more than once"
grep -q "the key 'RootManageSharedAccessKey' was refused: InvalidSignature" err || fail "whose key is not said"
stop

# ---- nobody is there: one line, at once ----
# at_once COMMAND...: it ends with 4 long before the time that a patient client takes.
at_once() {
    SECONDS=0
    expect 4 "$@"
    [ "$SECONDS" -lt 5 ] || fail "took $SECONDS s: $*"
    [ "$(wc -l <err)" = 1 ] || fail "not one line: $*"
}
for command in 'tail homes --until-end' 'send homes' 'hub show homes' 'process homes --store memory:x'; do
    # shellcheck disable=SC2086
    at_once "$WEIR" $command --connect "$connect"
    said 'Connection refused' err
    # shellcheck disable=SC2086
    at_once "$WEIR" $command --connect "${connect%%;UseDevelopmentEmulator*}"
    said 'UseDevelopmentEmulator=true may be missing' err
done

# ---- unless it is waited for ----
address=$(echo "$connect" | sed 's|.*sb://localhost\(:[0-9]*\).*|127.0.0.1\1|')
: >waiting
echo waited | timeout 60 "$WEIR" send homes --wait --connect "$connect" >sent 2>waiting &
sender=$!
until grep -q refused waiting; do sleep 0.02; done
start --json --data d --amqp "$address" --amqps off --http off
wait $sender || fail "send --wait: $?"
[ "$(cat sent)" = "acknowledged 1 event" ] || fail "send --wait said $(cat sent)"
[ "$(wc -l <waiting)" = 1 ] || fail "$(cat waiting)"
stop
