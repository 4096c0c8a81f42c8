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
timeout 30 "$WEIR" tail homes --connect "$connect" --count 3 >lines 2>err || fail "tail --count"
[ "$(wc -l <lines)" = 3 ] || fail "not three lines"

# ---- and what is wrong ----
expect 3 "$WEIR" tail nothing --connect "$connect" --until-end
expect 2 "$WEIR" tail homes --connect "Endpoint=nonsense" --until-end
wrong=$(echo "$connect" | sed 's/SharedAccessKey=[^;]*/SharedAccessKey=wrong/')
expect 1 "$WEIR" tail homes --connect "$wrong" --until-end
! grep -q wrong err || fail "the key is printed"
stop
expect 4 "$WEIR" tail homes --connect "$connect" --until-end
