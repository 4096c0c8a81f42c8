#!/bin/bash
# A rule is removed, then one is rotated, under 100 busy links: see rights.c for what must happen.
# HTTP: a request that began before is not done after.
# gcc only
# about 15 s
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
links=${RIGHTS_LINKS:-100}

cc -std=c11 -O1 -Wall -Wextra -Werror -I"$here/../../include" "$here/rights.c" -o rights \
    "$BUILD/libweir.so" "-Wl,-rpath,$BUILD" -lpthread

start --data d --hub h:4 --amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0 --json
amqp=$(field amqp) http=$(field http)
# string RULE KEY ADDRESS [MORE]
string() { echo "Endpoint=sb://$3;SharedAccessKeyName=$1;SharedAccessKey=$2;UseDevelopmentEmulator=true;$4"; }
# make RULE: key is its key.
make() {
    expect 0 "$WEIR" key add --name "$1" --rights send --data d
    key=$(sed 's/.*SharedAccessKey=\([^;]*\);.*/\1/' out)
}
# take_away RULE COMMAND
take_away() {
    make "$1"
    ./rights "$links" "$(string "$1" "$key" "$amqp" '')" \
        "$(string "$1" "$key" "$http" 'TransportType=AmqpWebSockets;')" "$spared" "$2" >out 2>err ||
        fail "after $2"
}
make spared
spared=$(string spared "$key" "$amqp" '')
take_away removed "$WEIR key remove --name removed --data d"
take_away rotated "$WEIR key rotate --name rotated --data d && $WEIR key rotate --name rotated --data d"

# ---- HTTP: the body comes after the rule has gone ----
make slow
sr=sb%3A%2F%2Flocalhost%2F se=$(($(date +%s) + 3600))
sig=$(printf '%s\n%s' "$sr" "$se" | openssl dgst -sha256 -hmac "$key" -binary | base64 |
    sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g')
exec 9<>"/dev/tcp/${http%:*}/${http#*:}"
printf 'POST /h/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\nAuthorization: %s\r\n\r\na' \
    "SharedAccessSignature sr=$sr&sig=$sig&se=$se&skn=slow" >&9
expect 0 "$WEIR" key remove --name slow --data d
printf b >&9
cat <&9 >out
exec 9>&-
said '^HTTP/1.1 401 '
stop
