#!/bin/bash
# What weir serve answers in HTTP, asked by curl: health, metrics, sending, administration, keys; and
# who is refused, with which words. WebSockets are in interop-js.sh.
set -eu
cd "$TMPDIR"
command -v curl >/dev/null || { echo "curl is not installed"; exit 77; }
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true' EXIT

fail() { echo "http.sh: $*"; cat body err log; exit 1; }

# start ARGS...: a server in the background, ready when this returns; at is where it speaks HTTP.
start() {
    : >out
    "$WEIR" serve --json --amqp 127.0.0.1:0 --amqps off "$@" >out 2>log &
    server=$!
    for _ in $(seq 1200); do
        [ -s out ] && break
        kill -0 "$server" 2>/dev/null || fail "not ready: weir serve $*"
        sleep 0.05
    done
    at=http://$(sed 's/.*"http":"\([^"]*\)".*/\1/' out)
}
stop() {
    code=0
    kill "-$1" "$server"
    { wait "$server"; } 2>/dev/null || code=$?
    server=
}
# sas RULE KEY RESOURCE [SECONDS]: a token.
sas() {
    local sr se sig
    sr=$(printf %s "$3" | sed 's/:/%3A/g; s,/,%2F,g; s/\$/%24/g')
    se=$(($(date +%s) + ${4:-3600}))
    sig=$(printf '%s\n%s' "$sr" "$se" | openssl dgst -sha256 -hmac "$2" -binary | base64 |
        sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g')
    echo "SharedAccessSignature sr=$sr&sig=$sig&se=$se&skn=$1"
}
# ask STATUS [-t TOKEN] METHOD PATH [CURL OPTIONS...]: what came is in head and body.
ask() {
    local want=$1 token=
    shift
    if [ "$1" = -t ]; then token=$2; shift 2; fi
    local method=$1 path=$2 got
    shift 2
    [ "$method" = HEAD ] && set -- "$@" --head || set -- "$@" -X "$method"
    got=$(curl -sS -m 20 -D head -o body -w '%{http_code}' ${token:+-H "Authorization: $token"} "$@" \
        "$at$path" 2>err) || fail "curl: $method $path"
    [ "$got" = "$want" ] || fail "$method $path gave $got instead of $want"
}
said() { grep -q -- "$1" "${2:-body}" || fail "did not say '$1' but: $(cat "${2:-body}")"; }
batch='Content-Type: application/vnd.microsoft.servicebus.json'

start --data d1 --http 127.0.0.1:0 --hub eh1:2 --http-name proxy.example
root=$(sas RootManageSharedAccessKey SAS_KEY_VALUE sb://localhost/)

# ---- health, and what HTTP itself is asked ----
ask 200 GET /health
said '^{"status":"healthy","message":"Service is healthy."}$'
ask 200 GET /readyz
ask 200 GET /livez
ask 200 HEAD /health
said 'Content-Length: 52' head
ask 204 OPTIONS /health
said '^Allow: GET, HEAD, OPTIONS' head
ask 204 OPTIONS '/$weir/hubs/x'
said '^Allow: GET, HEAD, PUT, DELETE, PATCH, OPTIONS' head
ask 405 POST /health
said '<Error><Code>405</Code><Detail>The method POST is not known here.</Detail></Error>'
said '^Allow: GET, HEAD, OPTIONS' head
for path in / /nothing /eh1 /eh1/messages/x '/$weir' '/health/x' '//health' '/eh1%2Fmessages'; do
    ask 404 GET "$path"
done
ask 405 GET /eh1/messages
# Two requests on one connection.
[ "$(curl -sS -v "$at/livez" "$at/livez" 2>&1 | grep -c 'Re-using existing connection')" = 1 ] ||
    fail "no keep-alive"

# ---- what is no HTTP: one answer, and the end ----
# raw STATUS BYTES: as printf has them.
raw() {
    exec 3<>"/dev/tcp/127.0.0.1/${at##*:}"
    printf "$2" >&3
    timeout 10 cat <&3 >body || fail "still open after: $2"
    exec 3>&-
    [ "$(head -1 body | cut -d' ' -f2)" = "$1" ] || fail "not $1 for: $2"
    [ "$(grep -c '^HTTP/1.1' body)" = 1 ] || fail "two answers to: $2"
}
post='POST /eh1/messages HTTP/1.1\r\nHost: localhost\r\n'
hidden='GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'
raw 400 "${post}Content-Length: 0\r\nContent-Length: 37\r\n\r\n$hidden"
raw 400 "${post}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n$hidden"
raw 400 "${post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n$hidden"
raw 400 "${post}Content-Length: +0\r\n\r\n$hidden"
raw 400 "${post}Content-Length : 0\r\n\r\n$hidden"
raw 400 'GET /livez HTTP/1.1\n\n'
raw 400 'GET /livez HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n'
raw 400 'GET /livez HTTP/1.1\r\n\r\n'
raw 505 'GET /livez HTTP/2.0\r\nHost: localhost\r\n\r\n'
raw 501 'BREW /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'
raw 400 'GET /%%zz HTTP/1.1\r\nHost: localhost\r\n\r\n'
raw 431 "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: $(head -c 20000 /dev/zero | tr '\0' x)\r\n\r\n"
raw 414 "GET /$(head -c 9000 /dev/zero | tr '\0' x) HTTP/1.1\r\nHost: localhost\r\n\r\n"
raw 401 "${post}Content-Length: 1000000\r\n\r\nx" # answered before the body, which nobody wants

# ---- sending ----
ask 201 -t "$root" POST '/eh1/messages?timeout=60&api-version=2014-01' -d '{ "DeviceId":"dev-01" }' \
    -H 'Content-Type: application/atom+xml;type=entry;charset=utf-8' -H 'WindAlert: Strong Winds' \
    -H 'BrokerProperties: {"PartitionKey":"abc"}'
[ ! -s body ] || fail "201 has a body"
ask 201 -t "$root" POST /EH1/partitions/0/messages -d zero
ask 201 -t "$root" POST /eh1/publishers/me/messages/ -d published
ask 201 -t "$root" POST /eh1/partitions/1/messages -H "$batch" \
    -d '[{"Body":"m1","UserProperties":{"Alert":"Wind","n":7}},{"Body":"m2"}]'
head -c 900000 /dev/zero >large
ask 201 -t "$root" POST /eh1/messages --data-binary @large
ask 201 -t "$root" POST /eh1/messages --data-binary @large -H 'Transfer-Encoding: chunked'
ask 400 -t "$root" POST /eh1/partitions/2/messages -d x
said 'It should be between 0 and 1'
ask 400 -t "$root" POST /eh1/messages -H 'BrokerProperties: {' -d x
said '<Code>400</Code><Detail>BrokerProperties: line 1'
ask 400 -t "$root" POST /eh1/messages -H "$batch" -d '[{"Body":1}]'
said 'event 0 of the batch'
ask 404 -t "$root" POST /nothing/messages -d x
said "The messaging entity 'nothing' could not be found"
head -c 1048576 /dev/zero >larger
ask 413 -t "$root" POST /eh1/messages --data-binary @larger
said 'at most 1048576 are allowed'
head -c 3000000 /dev/zero >largest
ask 413 -t "$root" POST /eh1/messages --data-binary @largest
said 'at most 2097152 bytes'
ask 413 -t "$root" POST /eh1/messages --data-binary @largest -H 'Transfer-Encoding: chunked'

# ---- tokens ----
ask 401 POST /eh1/messages -d x
said "<Code>401</Code>"
said "'Send' claim"
said '^WWW-Authenticate: SharedAccessSignature' head
ask 401 -t 'Bearer eyJh' POST /eh1/messages -d x
said "'Send' claim"
ask 401 -t "$(sas RootManageSharedAccessKey wrong sb://localhost/)" POST /eh1/messages -d x
said "InvalidSignature: The token has an invalid signature. 'Send' claim"
ask 401 -t "$(sas RootManageSharedAccessKey SAS_KEY_VALUE sb://localhost/ -5)" POST /eh1/messages -d x
said 'ExpiredToken'
ask 401 -t "$(sas RootManageSharedAccessKey SAS_KEY_VALUE sb://localhost/eh2)" POST /eh1/messages -d x
said 'InvalidAudience'
ask 401 -t nonsense POST /eh1/messages -d x
said 'MalformedToken'
ask 201 -t "$(sas RootManageSharedAccessKey SAS_KEY_VALUE http://localhost/eh1)" POST /eh1/messages -d x

# ---- pages that other people wrote, in a browser on this machine ----
for origin in http://evil.example https://localhost.evil.example http://127.0.0.1.evil.example \
    http://127.0.0.256 http://127.1 http://localhost:1@evil.example 'http://[::1].evil.example' null \
    http:localhost http:/ /; do
    ask 403 -t "$root" POST /eh1/messages -d x -H "Origin: $origin"
    ask 403 GET '/$servicebus/websocket' -H "Origin: $origin"
done
for origin in http://localhost:3000 https://LOCALHOST 'http://[::1]:80' http://127.0.0.1:5300 \
    http://127.8.9.10 http://app.localhost:3000; do
    ask 426 GET '/$servicebus/websocket' -H "Origin: $origin"
done

# ---- and by a name of their own, which suddenly means this machine (DNS rebinding) ----
for host in evil.example evil.example:5300 127.0.0.1.evil.example localhost.evil.example 127.0.0.300 \
    '[::2]' '[::1].evil.example' '[::1]evil.example:80'; do
    ask 403 GET /health -H "Host: $host"
    said 'is no name of this machine; weir serve --http-name NAME'
    ask 403 -t "$root" POST /eh1/messages -d x -H "Host: $host"
    ask 403 -t "$root" GET '/$weir/keys' -H "Host: $host"
done
for host in localhost LocalHost:1 127.0.0.1 127.200.0.1:80 '[::1]' '[::1]:5300' a.localhost \
    "$(uname -n)" proxy.example; do
    ask 200 GET /health -H "Host: $host"
done

# ---- administration ----
new='{"partitions":3,"retain_ms":86400000,"groups":["a"]}'
ask 201 -t "$root" PUT '/$weir/hubs/new' -d "$new"
said '"name":"new","partitions":3,"created_ms":[0-9]*,"retain_ms":86400000,"retain_bytes":0,"groups":\["$Default","a"\]}'
ask 200 -t "$root" PUT '/$weir/hubs/new' -d "$new"
ask 200 -t "$root" PUT '/$weir/hubs/NEW' -d '{}'
ask 412 -t "$root" PUT '/$weir/hubs/new' -d '{"groups":["b"]}' -H 'If-None-Match: *'
said '{"code":412,"detail":".*exists already'
ask 200 -t "$root" GET '/$weir/hubs/new'
said '"groups":\["$Default","a"\],"stored_bytes"' # nothing was changed
ask 409 -t "$root" PUT '/$weir/hubs/new' -d '{"partitions":4}'
said '{"code":409,"detail":".*partitions 3, not 4'
ask 409 -t "$root" PUT '/$weir/hubs/new' -d '{"retain_ms":-1}'
said 'retain_ms 86400000, not -1'
ask 400 -t "$root" PUT '/$weir/hubs/new' -d '{"partition":4}'
said "no member 'partition'"
ask 200 -t "$root" PATCH '/$weir/hubs/new' -d '{"retain_ms":-1,"retain_bytes":1048576}'
said '"partitions":3,.*"retain_ms":-1,"retain_bytes":1048576'
ask 200 -t "$root" PATCH '/$weir/hubs/new' -d '{"retain_bytes":0}'
said '"retain_ms":-1,"retain_bytes":0'
ask 200 -t "$root" PATCH '/$weir/hubs/new' -d '{"retain_ms":0}'
said '"retain_ms":604800000,'
ask 400 -t "$root" PATCH '/$weir/hubs/new' -d '{"partitions":2}'
said 'can only become more'
ask 400 -t "$root" PATCH '/$weir/hubs/new' -d '{"partitions":4294967299}'
ask 400 -t "$root" PATCH '/$weir/hubs/new' -d '{"groups":["x"]}'
ask 404 -t "$root" PATCH '/$weir/hubs/nowhere' -d '{"retain_ms":1}'
ask 200 -t "$root" GET '/$weir/hubs/new'
said '"stored_bytes":[0-9]*,"disk_bytes":[1-9][0-9]*,"disk_bytes_max":[0-9]*,"begin_time_ms":[0-9]*,'
ask 200 -t "$root" GET '/$weir/orphans'
said '^{"orphans":\[\]}'
ask 404 -t "$root" PUT '/$weir/hubs/found' -d '{"adopt":"2a"}'
said 'no orphan hub-000000000000002a'
ask 400 -t "$root" PUT '/$weir/hubs/found' -d '{"adopt":"2a","partitions":1}'
ask 400 -t "$root" PUT '/$weir/hubs/other' -d '{"partitions":0}'
ask 400 -t "$root" PUT '/$weir/hubs/other' -d '{"partitions":4294967300}'
ask 400 -t "$root" PUT '/$weir/hubs/-wrong-'
ask 404 -t "$root" PUT '/$weir/hubs/a%2Fb'
ask 404 -t "$root" GET '/$weir/hubs/other'
said '"detail":"there is no hub'
ask 200 -t "$root" GET '/$weir/hubs'
said '^{"hubs":\[{"name":"eh1".*},{"name":"new".*}\]}$'
ask 201 -t "$root" PUT '/$weir/hubs/new/groups/g1'
ask 200 -t "$root" PUT '/$weir/hubs/new/groups/g1'
ask 200 -t "$root" GET '/$weir/hubs/new/groups/g1'
ask 200 -t "$root" GET '/$weir/hubs/new/groups'
said '^{"groups":\["$Default","a","g1"\]}$'
ask 204 -t "$root" DELETE '/$weir/hubs/new/groups/g1'
ask 404 -t "$root" DELETE '/$weir/hubs/new/groups/g1'
ask 404 -t "$root" GET '/$weir/hubs/new/groups/g1'
ask 403 -t "$root" DELETE '/$weir/hubs/new/groups/$Default'
ask 404 -t "$root" PUT '/$weir/hubs/other/groups/g'
ask 201 -t "$root" POST /new/messages -d 'at once'
ask 201 -t "$root" PUT '/$weir/hubs/gone'
ask 204 -t "$root" DELETE '/$weir/hubs/gone'
ask 404 -t "$root" DELETE '/$weir/hubs/gone'
ask 404 -t "$root" POST /gone/messages -d x

# ---- keys, and what each may do ----
ask 400 -t "$root" PUT '/$weir/keys/till'
said 'rights'
ask 201 -t "$root" PUT '/$weir/keys/till' -d '{"rights":["send"],"primary_key":"till-key-1"}'
said '"rights":\["send"\],"primary_key":"till-key-1","secondary_key":"[^"]*"'
said '"connection_string":"Endpoint=sb://127.0.0.1:[0-9]*;SharedAccessKeyName=till;SharedAccessKey=till-key-1;UseDevelopmentEmulator=true;"'
ask 200 -t "$root" PUT '/$weir/keys/till' -d '{"rights":["send"]}'
grep -q key-1 body && fail "a key was told twice"
ask 409 -t "$root" PUT '/$weir/keys/till' -d '{"rights":["listen","send"]}'
said 'has the rights send, not send, listen'
ask 409 -t "$root" PUT '/$weir/keys/till' -d '{"rights":["send"],"primary_key":"till-key-2"}'
said 'has another primary key'
ask 200 -t "$root" GET '/$weir/keys'
said '^{"keys":\[{"name":"RootManageSharedAccessKey","rights":\["send","listen","manage"\]},{"name":"till","rights":\["send"\]}\]}$'
ask 201 -t "$root" PUT '/$weir/hubs/eh1/keys/boss' -d '{"rights":["manage"],"primary_key":"boss-key"}'
said ';EntityPath=eh1;'
ask 201 -t "$root" PUT '/$weir/hubs/eh1/keys/ear' -d '{"rights":["listen"],"primary_key":"ear-key"}'

till=$(sas till till-key-1 sb://localhost/)
ask 201 -t "$till" POST /eh1/messages -d 'from the till'
for what in 'GET /$weir/hubs' 'GET /$weir/hubs/eh1' 'PUT /$weir/hubs/mine' 'DELETE /$weir/hubs/eh1' \
    'GET /$weir/hubs/eh1/groups' 'PUT /$weir/hubs/eh1/groups/g' 'GET /$weir/keys' 'PUT /$weir/keys/more' \
    'POST /$weir/keys/till?rotate' 'DELETE /$weir/keys/till' 'GET /$weir/hubs/eh1/keys'; do
    ask 401 -t "$till" $what
    said "'Manage' claim(s) are required"
done
ask 401 -t "$(sas ear ear-key sb://localhost/eh1)" POST /eh1/messages -d x
said "Unauthorized access. 'Send' claim(s) are required to perform this operation."
boss=$(sas boss boss-key sb://localhost/eh1) # of this hub, and of nothing else
ask 200 -t "$boss" GET '/$weir/hubs/eh1'
ask 201 -t "$boss" PUT '/$weir/hubs/eh1/groups/by-boss'
ask 401 -t "$boss" GET '/$weir/hubs/new'
said 'InvalidAudience'
ask 401 -t "$boss" GET '/$weir/hubs'
ask 401 -t "$boss" PUT '/$weir/keys/more'
ask 401 -t "$(sas boss boss-key sb://localhost/)" GET '/$weir/hubs'

ask 200 -t "$root" POST '/$weir/keys/till?rotate=primary'
cp body rotated
ask 401 -t "$till" POST /eh1/messages -d x
ask 400 -t "$root" POST '/$weir/keys/till'
said 'rotate=next'
key=$(sas till "$(sed 's/.*"primary_key":"\([^"]*\)".*/\1/' rotated)" sb://localhost/)
ask 200 -t "$root" POST '/$weir/keys/till?rotate=next' # the first key becomes the second
cp body rotated
ask 201 -t "$key" POST /eh1/messages -d x
ask 201 -t "$(sas till "$(sed 's/.*"primary_key":"\([^"]*\)".*/\1/' rotated)" sb://localhost/)" POST /eh1/messages -d x
ask 200 -t "$root" POST '/$weir/keys/till?rotate=next'
ask 401 -t "$key" POST /eh1/messages -d x
ask 412 -t "$root" PUT '/$weir/keys/till' -d '{"rights":["send"]}' -H 'If-None-Match: *'
ask 200 -t "$root" PUT '/$weir/keys/till' -d '{"rights":["send"]}'
ask 404 -t "$root" POST '/$weir/keys/nobody?rotate'
ask 409 -t "$root" DELETE '/$weir/keys/RootManageSharedAccessKey'
said 'the last of the namespace with Manage'
ask 204 -t "$root" DELETE '/$weir/keys/till'
ask 404 -t "$root" GET '/$weir/keys/till'

# ---- metrics ----
ask 200 GET /metrics
said '^Content-Type: text/plain; version=0.0.4' head
said '^weir_hub_events_in_total{hub="eh1"} 11$'
said '^weir_hub_up{hub="new"} 1$'
said '^weir_hub_flush_seconds_bucket{hub="eh1",le="+Inf"} [1-9]'
said '^process_resident_memory_bytes [1-9]'
said '^weir_connections{protocol="http"} 1$'
# Each family is announced once and its samples follow; the histogram's buckets grow.
awk '
    /^# HELP / { if (seen[$3]++) exit 1; name = $3; next }
    /^# TYPE / { if ($3 != name || $4 !~ /^(counter|gauge|histogram)$/) exit 1; type = $4; next }
    !/^[a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? [0-9.e+-]+$/ { exit 1 }
    { family = $1; sub(/\{.*/, "", family); if (type == "histogram") sub(/_(bucket|sum|count)$/, "", family) }
    family != name || (type == "counter" && name !~ /_total$/) { exit 1 }
    /_bucket/ { if (/le="6.4e-05"/) last = 0; if ($2 < last) exit 1; last = $2 }
' body || fail "not Prometheus' format"
if command -v promtool >/dev/null; then promtool check metrics <body >lint || fail "promtool: $(cat lint)"; fi

# ---- what was acknowledged is there after kill -9 ----
ask 201 -t "$root" PUT '/$weir/hubs/last' -d '{"partitions":5,"groups":["g"]}'
ask 201 -t "$root" PUT '/$weir/hubs/last/keys/k' -d '{"rights":["send"],"primary_key":"last-key"}'
ask 201 -t "$root" POST /last/messages -d 'kept'
stop KILL
start --data d1 --http 127.0.0.1:0
ask 403 GET /health -H "Host: evil.example"
ask 403 GET /health -H "Origin: http://evil.example"
said "refused: Host 'evil.example': That is no name of this machine" log
said "refused: Origin 'http://evil.example': Pages of other machines are not answered here" log
ask 200 -t "$root" GET '/$weir/hubs/last'
said '"partitions":5.*"groups":\["$Default","g"\]'
ask 404 -t "$root" GET '/$weir/hubs/gone'
ask 201 -t "$(sas k last-key sb://localhost/last)" POST /last/messages -d 'more'

# ---- a stop in the middle of many sends: each is answered, and what was answered with 201 is there ----
for i in $(seq 20); do
    curl -sS -m 20 -o /dev/null -w '%{http_code}\n' -H "Authorization: $root" -d "many $i" \
        "$at/last/messages" >"code.$i" 2>/dev/null &
    curls="${curls:-} $!"
done
stop TERM
[ "$code" = 0 ] || fail "exit code $code"
wait $curls || true
sent=$(cat code.* | grep -c '^201$' || true)
"$WEIR" tail last --data d1 --from earliest --until-end --json >events
[ "$(grep -c '"body":"many ' events)" -ge "$sent" ] || fail "$sent were answered with 201, fewer are there"
said '"body":"kept"' events
said '"body":"more"' events
"$WEIR" tail eh1 --data d1 --from earliest --until-end --json >events
said '"partition":"1".*"key":"abc","body":"{ \\"DeviceId\\":\\"dev-01\\" }","properties":{"WindAlert":"Strong Winds"}' events
said '"partition":"0".*"body":"zero"' events
said '"partition":"1".*"body":"m1","properties":{"Alert":"Wind","n":7}' events

# ---- other machines: no well-known key by HTTP either ----
code=0
"$WEIR" serve --data d1 --amqp 127.0.0.1:0 --amqps off --http 0.0.0.0:0 >out 2>err </dev/null || code=$?
[ "$code" = 1 ] || fail "the well-known key on every address"
said 'allow-development-key' err
