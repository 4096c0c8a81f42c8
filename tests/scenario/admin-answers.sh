#!/bin/bash
# weir hub and weir key, when what answers there is not weir serve, or not well.
# about 15 s
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
cc -std=gnu11 -Wall -Wextra -Werror -o http_say "$here/http_say.c"
string='Endpoint=sb://127.0.0.1;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true'

# say BYTES [hold]: in at, who says so, to everybody; BYTES as printf has them.
files=0
say() {
    files=$((files + 1))
    printf "$1" >"says.$files"
    serve "says.$files" ${2:-}
}
serve() {
    : >port
    ./http_say "$@" >port &
    until [ -s port ]; do kill -0 $! || fail "http_say ended"; sleep 0.01; done
    at=http://127.0.0.1:$(cat port)
}
# hears CODE [PATTERN]: a list of hubs from there, and one line of complaint or none.
hears() {
    expect "$1" "$WEIR" hub list --connect "$string" --admin "$at"
    [ "$(wc -l <err)" = $(($# - 1)) ] || fail "another number of complaints"
    [ $# = 1 ] || said "$2" err
}
ok='HTTP/1.1 200 OK\r\n'
hub='{"name":"homes","partitions":4,"created_ms":1700000000000,"retain_ms":-1,"retain_bytes":5,"groups":["$Default","g"]}'

# Nobody answers: the longest of all, beside the others.
say '' hold
"$WEIR" hub list --connect "$string" --admin "$at" >late.out 2>late.err &
late=$!

# ---- what is understood ----
say "${ok}Content-Length: 11\r\n\r\n{\"hubs\":[]}"
hears 0
[ ! -s out ] || fail "hubs out of nothing"
for say in "${ok}\r\n{\"hubs\":[$hub]}" "HTTP/1.0 200\r\ncontent-length: 127\r\n\r\n{\"hubs\":[$hub]}and more"; do
    say "$say"
    hears 0
    said '^homes  *4 partitions  2 groups  created 2023-11-14T22:13:20.000Z  retention for ever, 5 bytes$'
done
say "${ok}Content-Length: 11\r\n\r\n{\"hubs\":[]}" hold # who has all of it does not wait for the end
hears 0
say "${ok}\r\n{\"hubs\":[{\"name\":\"n\",\"new\":[{}],\"partitions\":1}],\"more\":1}"
hears 0
said '^n  *1 partition '

# ---- and what is not ----
say "${ok}Content-Length: 100\r\n\r\n{\"hubs\":[]}"
hears 4 'the connection ended before the answer did'
say "${ok}Content-"
hears 4 'the connection ended before the answer did'
say ''
hears 4 'the connection ended before the answer did'
for say in 'SSH-2.0-OpenSSH\r\n' 'HTTP/1.1 OK\r\n\r\n' 'HTTP/2.0 200 OK\r\n\r\n' 'HTTP/1.1 200 OK\n\n' \
    "${ok}Content-Length: 1x\r\n\r\n" "${ok}Content-Length: 99999999999999999999\r\n\r\n" "${ok} folded: x\r\n\r\n"; do
    say "$say"
    hears 1 'what answers there does not speak HTTP$'
done
for say in '' '<html>' '[]' '{}' '{"hub":[]}' '{"hubs":{}}' '{"hubs":[1]}' '{"hubs":[' '{"hubs":[{"name":1}]}' \
    '{"hubs":[{"partitions":"4"}]}' '{"hubs":[{"partitions":1.5}]}' '{"hubs":[{"created_ms":1e400}]}' \
    '{"hubs":[{"groups":[1]}]}' '{"hubs":[{"name":"\\u001b[2J"}]}' '{"hubs":[{"name":""}]}' '{"hubs":[{}]}' "{\"hubs\":[{\"name\":\"$(head -c 300 /dev/zero | tr '\0' x)\"}]}" \
    "$(head -c 100 /dev/zero | tr '\0' '[')"; do
    say "${ok}\r\n$say"
    hears 1 '^weir: hub list: what http://127.0.0.1:[0-9]* says is not understood: '
    [ ! -s out ] || fail "half a hub"
done
for status in 302 404 500; do
    say "HTTP/1.1 $status Words\r\n\r\n<html>\033[2J"
    hears 1 "is not the administration of weir serve (HTTP $status: <html>)$"
done
say 'HTTP/1.1 401 No\r\n\r\n{"code":403,"detail":"of another answer"}'
hears 1 'is not the administration of weir serve (HTTP 401'
say 'HTTP/1.1 503 No\r\n\r\n{"code":503,"detail":"come again"}'
hears 1 'hub list: come again'
say 'HTTP/1.1 418 No\r\n\r\n{"code":418,"detail":"a teapot"}'
hears 1 'hub list: HTTP 418: a teapot'
{ printf "$ok\r\n"; head -c 7000000 /dev/zero | tr '\0' ' '; } >long
serve long
hears 1 'the answer is too long'
# A change that was sent and not answered may have been made, and that is said.
say ''
expect 1 "$WEIR" hub delete homes --connect "$string" --admin "$at"
said 'whether it was done is unknown: the connection ended before the answer did' err

# A key that was made is shown, or it is an error.
say 'HTTP/1.1 201 Made\r\n\r\n{"name":"send-listen"}'
expect 1 "$WEIR" key add --connect "$string" --admin "$at"
[ ! -s out ] || fail "a key out of nothing"

code=0
wait $late || code=$?
cp late.err err
[ "$code" = 4 ] || fail "exit code $code, for an answer that does not come"
said '^weir: hub list: http://127.0.0.1:[0-9]*: no answer within 15 s$' err
