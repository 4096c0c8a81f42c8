#!/bin/bash
# weir hub and weir key on a server that runs: by its connection string, and by the folder that it
# holds; who may not, and why; and what is wrong with the place.
. "$(dirname "$0")/serving.bash"
unset WEIR_DATA WEIR_CONNECT WEIR_ADMIN
free='--amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0'
# As in serving.bash, but apart from what the server says meanwhile.
expect() {
    want=$1
    shift
    code=0
    "$@" >out 2>complaint </dev/null || code=$?
    [ "$code" = "$want" ] || { cat complaint; fail "exit code $code instead of $want from: $*"; }
}
# complained PATTERN: in a line that begins as all do.
complained() { said "^weir: .*$1" complaint; }

start --json --data d $free --hub homes:2
root=$(field connection_string) admin=http://$(field http)
to="--connect $root" # the server tells where its HTTP is

# ---- by a connection string ----
expect 0 "$WEIR" hub create orders --partitions 3 --groups a,b --retention-age 12h $to
said '^created hub orders with 3 partitions$'
[ ! -s complaint ] || fail "it says where, and was told where"
seq 1 100 | "$WEIR" send orders --connect "$root" >out 2>complaint || fail "a hub that was just made"
expect 0 "$WEIR" tail orders --group b --until-end --connect "$root"
[ "$(sort -n out | md5sum)" = "$(seq 1 100 | md5sum)" ] || fail "other events"
expect 0 "$WEIR" hub list $to
[ "$(tr -s ' ' <out | cut -d' ' -f1-5)" = "homes 2 partitions 1 group
orders 3 partitions 3 groups" ] || fail "another list"
said 'retention 12h$'
expect 1 "$WEIR" hub create ORDERS --groups c $to
complained "hub create: .*exists already; choose another name"
expect 0 "$WEIR" hub show orders --connect "$root"
said '^hub  *orders$'
[ "$(awk '$1 ~ /^[0-2]$/ { n += $2 } END { print n }' out)" = 100 ] || fail "another number of events"
said '^groups      $Default a b$'
said '^retention   12h$'
expect 0 env WEIR_CONNECT="$root" WEIR_ADMIN="$admin" "$WEIR" hub delete homes
said '^deleted hub homes'
expect 3 "$WEIR" hub delete homes $to
complained "hub delete: .*there is no hub 'homes'; 'weir hub list' "
expect 3 "$WEIR" hub show homes --connect "$root"

expect 0 "$WEIR" key add --rights send --name till $to
said "^Endpoint=sb://localhost:[0-9]*;SharedAccessKeyName=till;SharedAccessKey=[^;]*;"
till=$(cat out)
expect 1 "$WEIR" key add --rights send --name till $to
complained "'till' exists already"
expect 0 "$WEIR" key add orders --rights manage --name boss $to
boss=$(cat out)
expect 0 "$WEIR" key list $to
[ "$(tr -s ' ' <out)" = "(all) RootManageSharedAccessKey send,listen,manage
(all) till send
orders boss send,listen,manage" ] || fail "another list of keys"
expect 1 "$WEIR" key list --show-keys $to
complained 'a server shows a key once'
# A rotation: the key before works once more.
expect 0 "$WEIR" key rotate --name TILL $to
fresh=$(cat out)
for string in "$till" "$fresh"; do
    echo x | "$WEIR" send orders --connect "$string" >out 2>complaint || fail "not in after one rotation"
done
expect 0 "$WEIR" key rotate --name till $to
newest=$(cat out)
for string in "$fresh" "$newest"; do
    echo x | "$WEIR" send orders --connect "$string" >out 2>complaint || fail "not in after two rotations"
done
expect 1 "$WEIR" send orders --connect "$till"
complained InvalidSignature
till=$newest
expect 3 "$WEIR" key rotate --name nobody $to
complained "'nobody' could not be found"
expect 1 "$WEIR" key remove --name RootManageSharedAccessKey $to
complained 'the last of the namespace with Manage: make another one first'

# ---- a key that may send, and nothing else ----
for what in 'hub list' 'hub create more' 'hub delete orders' 'key list' 'key list orders' 'key add' \
    'key rotate --name till' 'key remove --name till'; do
    expect 1 "$WEIR" $what --connect "$till" --admin "$admin"
    complained "'Manage' claim(s) are required to perform this operation"
    [ ! -s out ] || fail "a refused $what prints something"
done
expect 1 "$WEIR" tail orders --until-end --connect "$till"
complained "'Listen' claim(s) are required to perform this operation"
expect 0 "$WEIR" key add --rights listen --name ear $to
ear=$(cat out)
expect 1 "$WEIR" send orders --connect "$ear"
complained "'Send' claim(s) are required to perform this operation"
# One of a hub is for that hub.
expect 0 "$WEIR" key list orders --connect "$boss" --admin "$admin"
said '^orders  *boss '
expect 2 "$WEIR" hub list --connect "$boss" --admin "$admin"
complained "the connection string is for hub 'orders' only"
expect 2 "$WEIR" key list other --connect "$boss" --admin "$admin"
complained "for hub 'orders' only, not 'other'"
expect 0 "$WEIR" key remove orders --name boss $to
expect 1 "$WEIR" key list orders --connect "$boss" --admin "$admin"
complained 'InvalidSignature'

# ---- what is wrong ----
expect 2 "$WEIR" hub list --connect 'Endpoint=nonsense'
complained 'Endpoint is malformed: expected sb://HOST'
expect 2 "$WEIR" hub list --connect 'Endpoint=sb://h;SharedAccessKeyName=n'
complained 'there is no SharedAccessKey:'
for url in nonsense h ftp://h h:5300 http:// http:///x http://h/x 'http://a b' http://u@h 'http://h?x'; do
    expect 2 "$WEIR" hub list --connect "$root" --admin "$url"
    complained "admin: '$url' is not http://HOST"
done
for url in http://h:x http://h:70000 'http://[::1' http://a:b:1; do
    expect 2 "$WEIR" hub list --connect "$root" --admin "$url"
    complained "$(echo "$url" | sed 's/\[/\\[/')"
done
expect 2 "$WEIR" hub list --admin "$admin"
complained '--admin goes with --connect'
expect 2 "$WEIR" hub list --data d --connect "$root"
complained 'exclude each other'
expect 4 "$WEIR" hub list --connect "$root" --admin http://no-such-host.invalid:1
complained 'resolving no-such-host.invalid'
expect 4 "$WEIR" hub list --connect "$root" --admin http://127.0.0.1:1 # and not where it is told
complained 'http://127.0.0.1:1: .*refused'
amqp=$(echo "$root" | sed 's/.*localhost:\([0-9]*\);.*/\1/')
expect 1 "$WEIR" hub list --connect "$root" --admin "http://127.0.0.1:$amqp"
complained 'is not the administration of weir serve (HTTP 400: This port speaks AMQP 1.0. HTTP is spoken at'
expect 1 "$WEIR" hub list --connect "$root" --admin "https://${admin#http://}"
complained 'TLS'
wrong=$(echo "$root" | sed 's/SharedAccessKey=[^;]*/SharedAccessKey=wrong/')
expect 1 "$WEIR" hub list --connect "$wrong" --admin "$admin"
complained InvalidSignature
silent wrong complaint
expect 2 "$WEIR" hub create 'a/b' $to
complained "'/' at position 2"
expect 2 "$WEIR" hub create "$(head -c 300 /dev/zero | tr '\0' x)" $to
expect 2 "$WEIR" hub create '' $to
expect 2 "$WEIR" key add --name 'a b' $to

# ---- by the folder that the server holds ----
[ "$(stat -c %a d/serving)" = 600 ] || fail "others can read the sign"
[ "$(stat -c %a d/owner)" = 600 ] || fail "others can read the owner's key"
expect 0 "$WEIR" hub create here --partitions 1 --data d
said '^created hub here with 1 partition$'
said "^weir: d is served by process $server: going through that server$" complaint
expect 0 env WEIR_DATA=d "$WEIR" hub list
[ "$(cut -d' ' -f1 out | tr '\n' ' ')" = 'orders here ' ] || fail "another list"
(mkdir -p away && cd away && ln -sfn ../d weir-data && "$WEIR" hub list) >out 2>complaint || fail "./weir-data"
said "^weir: ./weir-data is served by process $server: " complaint
seq 1 10 | "$WEIR" send here --data d >out 2>complaint || fail "send through the server of the folder"
said '^acknowledged 10 events$'
expect 0 "$WEIR" tail here --until-end --data d
[ "$(cat out)" = "$(seq 1 10)" ] || fail "other events"
expect 0 "$WEIR" hub show here --data d
said '^groups  *\$Default$'
said '^retention  *7d$'
expect 0 "$WEIR" key add here --rights send --data d
expect 0 "$WEIR" key list --data d
said '^here  *send  *send$'
silent owner # nobody's rule
string=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' d/serving)
expect 0 "$WEIR" tail here --until-end --connect "$string"

# ---- with TLS, and where AMQP is inside a WebSocket: there is HTTP, too ----
stop
key='SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE'
start --json --data d --amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http 127.0.0.1:0 --https 127.0.0.1:0
http=$(field http) https=$(field https) amqps=$(field amqps)
tls="Endpoint=sb://localhost:${amqps#*:};$key"
expect 1 "$WEIR" hub list --connect "$tls" --admin "https://localhost:${https#*:}"
complained 'the certificate is not good'
export SSL_CERT_FILE=$XDG_DATA_HOME/weir/authority/ca.pem
expect 0 "$WEIR" hub list --connect "$tls" --admin "https://localhost:${https#*:}"
said '^orders '
expect 0 "$WEIR" hub show orders --connect "$tls"
expect 0 "$WEIR" hub list --connect "$tls" # at HTTP with TLS, which the server tells
expect 0 "$WEIR" hub list --connect "Endpoint=sb://localhost:${https#*:};$key;TransportType=AmqpWebSockets"
expect 0 "$WEIR" hub list --connect "Endpoint=sb://$http;$key;UseDevelopmentEmulator=true;TransportType=AmqpWebSockets"
said '^here '
unset SSL_CERT_FILE
string=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' d/serving)

# ---- after kill -9: the folder again, and the sign goes ----
kill -9 "$server"
wait "$server" 2>/dev/null || true
[ -e d/serving ] || fail "who was killed could not take it down"
cp d/serving stale
expect 0 "$WEIR" hub list --data d
[ ! -s complaint ] || fail "a folder that is free is not the folder itself"
[ "$(cut -d' ' -f1 out | tr '\n' ' ')" = 'orders here ' ] || fail "another list after kill -9"
[ ! -e d/serving ] || fail "the sign of the dead stays"
expect 0 "$WEIR" tail here --until-end --data d
[ "$(wc -l <out)" = 10 ] || fail "other events after kill -9"
# Somebody else has it, and the sign is of the dead.
"$WEIR" tail here --data d >followed 2>&1 &
tail=$!
until [ "$(wc -l <followed)" = 10 ]; do kill -0 $tail || fail "tail ended"; sleep 0.02; done
cp stale d/serving
expect 4 "$WEIR" hub list --data d
complained "process $tail"
echo '{"version":1,"pid":' >d/serving
expect 1 "$WEIR" hub list --data d
complained 'd/serving: line'
echo "{\"version\":2,\"pid\":$tail}" >d/serving
expect 1 "$WEIR" hub list --data d
complained 'd/serving: version 2'
kill -INT $tail
wait $tail || fail "tail"

# ---- a server without HTTP: what needs none works ----
start --json --data d --amqp 127.0.0.1:0 --amqps off --http off
# The key of the last server's sign is the owner's, still.
expect 0 "$WEIR" tail here --until-end --connect "$(sed "s,sb://[^;]*,sb://$(field amqp)," <<<"$string")"
echo 11 | "$WEIR" send here --data d >out 2>complaint || fail "send without HTTP"
expect 0 "$WEIR" hub show here --data d
silent '^groups'
expect 4 "$WEIR" key list --data d
complained "served by process $server, without HTTP: start it with --http"
stop
[ ! -e d/serving ] || fail "the sign is still up"

# ---- on every address it is found by this machine's own ----
start --json --data d --amqp 0.0.0.0:0 --amqps off --http 0.0.0.0:0 --allow-development-key
expect 0 "$WEIR" hub list --data d
said '"admin":"http://127.0.0.1:' d/serving
stop INT
