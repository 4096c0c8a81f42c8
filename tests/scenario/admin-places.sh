#!/bin/bash
# The same administration in a folder, in a folder that a server holds, over a connection, and over
# one with TLS or inside a WebSocket: the commands say the same everywhere. And what they print for
# programs is JSON.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
unset WEIR_DATA WEIR_CONNECT WEIR_ADMIN
cc -std=c11 -Wall -Wextra -Werror -o json_check "$here/json_check.c"
# As in serving.bash, but apart from what the server says meanwhile.
expect() {
    want=$1
    shift
    code=0
    timeout 60 "$@" >out 2>complaint </dev/null || code=$?
    [ "$code" = "$want" ] || { cat complaint; fail "exit code $code instead of $want from: $*"; }
}
: >err
complained() { said "^weir: .*$1" complaint; }
is() { [ "$(cat out)" = "$1" ] || fail "not '$1'"; }

# administer PLACE...: options that name a place without hubs.
administer() {
    expect 0 "$WEIR" hub create homes --partitions 2 --groups a "$@"
    is 'created hub homes with 2 partitions'
    expect 0 "$WEIR" hub create usual "$@"
    is 'created hub usual with 4 partitions'

    # ---- groups ----
    expect 0 "$WEIR" group create homes/late "$@"
    is 'created group late of hub homes'
    expect 0 "$WEIR" group create homes later "$@"
    expect 1 "$WEIR" group create HOMES/LATE "$@"
    complained "group create: .*exists already; choose another name"
    expect 3 "$WEIR" group create nowhere/g "$@"
    complained "'weir hub list' and 'weir group list HUB' show what is there"
    expect 2 "$WEIR" group create 'homes/a b' "$@"
    complained 'byte 0x20 at position 2'
    for wrong in homes /g homes/ / 'homes/g more'; do
        expect 2 "$WEIR" group create $wrong "$@"
        complained 'is not HUB/GROUP'
    done
    expect 0 "$WEIR" group list homes "$@"
    is '$Default
a
late
later'
    expect 0 "$WEIR" group list homes --json "$@"
    is '{"hub":"homes","name":"$Default"}
{"hub":"homes","name":"a"}
{"hub":"homes","name":"late"}
{"hub":"homes","name":"later"}'
    expect 3 "$WEIR" group list nowhere "$@"
    expect 0 "$WEIR" group delete homes/late "$@"
    is 'deleted group late of hub homes'
    expect 3 "$WEIR" group delete homes/late "$@"
    expect 1 "$WEIR" group delete 'homes/$Default' "$@"
    expect 0 "$WEIR" group delete homes later "$@"

    # ---- what a hub keeps, and its partitions ----
    expect 0 "$WEIR" hub update homes --partitions 3 --retention-age 2h --retention-bytes 64M "$@"
    is 'changed hub homes'
    expect 2 "$WEIR" hub update homes --partitions 2 "$@"
    expect 3 "$WEIR" hub update nowhere --partitions 2 "$@"
    expect 0 "$WEIR" hub show homes --json "$@"
    said '"retain_ms":7200000,"retain_bytes":67108864,"groups":\["$Default","a"\],"stored_bytes":0,"disk_bytes":[0-9]'
    said '{"id":"2","begin_sequence":0,"next_sequence":0,"last_offset":null'
    expect 0 "$WEIR" hub show homes "$@"
    said '^retention   2h, 64'
    said '^groups      $Default a$'
    said '^on disk  *[0-9].* segment'
    expect 0 "$WEIR" hub list --json "$@"
    ./json_check name created partition_count group_count retain_ms retain_bytes <out || fail "not JSON"
    sed 's/"created":"[^"]*"/-/' out >hubs
    [ "$(cat hubs)" = '{"name":"homes",-,"partition_count":3,"group_count":2,"retain_ms":7200000,"retain_bytes":67108864}
{"name":"usual",-,"partition_count":4,"group_count":1,"retain_ms":604800000,"retain_bytes":0}' ] || fail "another list"

    # ---- keys ----
    expect 0 "$WEIR" key add homes --rights send --name till "$@"
    cp out till
    expect 0 "$WEIR" key list homes --json "$@"
    is '{"hub":"homes","name":"till","rights":["send"]}'
    expect 0 "$WEIR" key rotate homes --name till "$@"
    ! cmp -s out till || fail "the same key"
    expect 0 "$WEIR" key remove homes --name till "$@"
    expect 3 "$WEIR" key remove homes --name till "$@"
    expect 0 "$WEIR" hub delete homes "$@"
    expect 0 "$WEIR" hub delete usual "$@"
    expect 0 "$WEIR" hub list --json "$@"
    is ''
}

administer --data d
expect 0 "$WEIR" key add --rights manage --name boss --data d
expect 0 "$WEIR" key list --json --show-keys --data d
said '^{"hub":null,"name":"boss","rights":\["send","listen","manage"\],"primary_key":"[^"]*","secondary_key":"[^"]*","connection_string":"Endpoint=sb://localhost;'
key="SharedAccessKeyName=boss;SharedAccessKey=$(sed 's/.*"primary_key":"\([^"]*\)".*/\1/' out)"
start --json --data d --amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http 127.0.0.1:0 --https 127.0.0.1:0
amqp=$(field amqp) amqps=$(field amqps) http=$(field http) https=$(field https)
plain=UseDevelopmentEmulator=true ws=TransportType=AmqpWebSockets
export SSL_CERT_FILE=$XDG_DATA_HOME/weir/authority/ca.pem
administer --data d
administer --connect "Endpoint=sb://$amqp;$key;$plain"
administer --connect "Endpoint=sb://localhost:${amqps#*:};$key"
administer --connect "Endpoint=sb://$http;$key;$plain;$ws"
administer --connect "Endpoint=sb://localhost:${https#*:};$key;$ws"

# A key that was made is for the place that was named, in the way it was named.
expect 0 "$WEIR" hub create homes --data d
expect 0 "$WEIR" key add homes --connect "Endpoint=sb://localhost:${https#*:};$key;$ws"
said "^Endpoint=sb://localhost:${https#*:};SharedAccessKeyName=send-listen;SharedAccessKey=[^;]*;EntityPath=homes;TransportType=AmqpWebSockets;\$"
string=$(cat out)
echo x | "$WEIR" send homes --connect "$string" >out 2>complaint || fail "a key that was made"
# Who may not manage sees the hub, and not how much it keeps.
expect 0 "$WEIR" hub show homes --connect "$string"
said '^retention   7d$'
silent '^groups\|^kept'
[ ! -s complaint ] || fail "it complains"
expect 1 "$WEIR" group list homes --connect "$string"
complained "'Manage' claim"
stop

# ---- a server without HTTP says what it lacks ----
start --json --data d --amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http 127.0.0.1:0 --https off
amqps=$(field amqps)
expect 1 "$WEIR" group list homes --connect "Endpoint=sb://localhost:${amqps#*:};$key"
complained "group list: weir serve at localhost:${amqps#*:} has no HTTP with TLS: start it with --https"
stop
start --json --data d --amqp 127.0.0.1:0 --amqps off --http off
amqp=$(field amqp)
expect 1 "$WEIR" hub list --connect "Endpoint=sb://$amqp;$key;$plain"
complained "weir serve at $amqp has no HTTP: start it with --http"
stop

# ---- the rest for programs ----
expect 0 "$WEIR" version --json
./json_check version <out || fail "not JSON"
expect 0 "$WEIR" inspect --json --data d
./json_check kind <out || fail "not JSON"
said '^{"kind":"hub","name":"homes","partition_count":4,"group_count":1,"created":"20'
said '^{"kind":"segment","hub":"homes","file":"'
[ "$(tail -n 1 out)" = '{"kind":"sum","hubs":1,"segments":1,"damaged":0,"orphans":0,"torn":0,"unread":0}' ] || fail "another sum"
cp -r d spoilt
segment=$(ls spoilt/hub-*/*.seg* 2>/dev/null | head -1)
[ -n "$segment" ] || segment=$(ls -S spoilt/hub-*/* | head -1)
at=$(grep -obUa x "$segment" | tail -1 | cut -d: -f1)
printf '\377\377\377\377' | dd of="$segment" bs=1 seek="$at" conv=notrunc 2>/dev/null
expect 1 "$WEIR" inspect spoilt --json
./json_check kind <out || fail "not JSON"
said '^{"kind":"damage","hub":"homes","file":"'
said '"kind":"sum".*"damaged":[1-9]'
