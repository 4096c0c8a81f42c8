#!/bin/bash
# weir serve as a person or a script starts it: its ready line, its ports, its keys, its end. What
# clients see is in interop-js.sh.
set -eu
cd "$TMPDIR"
server=

fail() { echo "serve.sh: $*"; cat out err; exit 1; }
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true' EXIT

# start ARGS...: a server in the background, ready when this returns.
start() {
    "$WEIR" serve "$@" >out 2>err &
    server=$!
    for _ in $(seq 200); do
        [ -s out ] && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    fail "not ready: weir serve $*"
}
# stop [SIGNAL]: it must end with 0.
stop() {
    kill "-${1:-TERM}" "$server"
    code=0
    wait "$server" || code=$?
    server=
    [ "$code" = 0 ] || fail "exit code $code after ${1:-TERM}"
}
# expect CODE COMMAND...
expect() {
    want=$1
    shift
    code=0
    "$@" >out 2>err </dev/null || code=$?
    [ "$code" = "$want" ] || fail "exit code $code instead of $want from: $*"
}
said() { grep -q -- "$1" "${2:-out}" || fail "did not say '$1'"; }
free='--amqp 127.0.0.1:0 --http 127.0.0.1:0'

# ---- ready, as JSON and for people ----
start --data d1 $free --hub orders:2:a,b --json
[ "$(wc -l <out)" = 1 ] || fail "more than one line"
said '^{"ready":true,"amqp":"127.0.0.1:[0-9]*","amqps":null,"http":"127.0.0.1:[0-9]*","connection_string":"Endpoint=sb://localhost:[0-9]*;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"}$'
amqp=$(sed 's/.*"amqp":"\([^"]*\)".*/\1/' out) http=$(sed 's/.*"http":"\([^"]*\)".*/\1/' out)

# ---- a taken port, a taken folder ----
expect 1 "$WEIR" serve --data d2 --amqp "$amqp" --http 127.0.0.1:0
said "pid $server" err
said 'choose another port with --amqp' err
expect 1 "$WEIR" serve --data d2 --amqp 127.0.0.1:0 --http "$http"
expect 4 "$WEIR" serve --data d1 $free
stop TERM

start --data d1 $free
said 'weir is ready'
said 'connection string for every Event Hubs client'
said 'Endpoint=sb://localhost:'
stop INT

# ---- hubs ----
expect 0 "$WEIR" hub show orders --data d1
said 'groups      $Default a b'
start --data d1 $free --hub orders:2:c --json
stop
expect 0 "$WEIR" hub show orders --data d1
said 'groups      $Default a b c'
expect 1 "$WEIR" serve --data d1 $free --hub orders:3
said "hub 'orders' has 2 partitions, not 3" err
for wrong in orders orders: orders:x :2; do
    expect 1 "$WEIR" serve --data d2 $free --hub "$wrong"
done

# ---- the environment ----
WEIR_AMQP=127.0.0.1:0 WEIR_HTTP=127.0.0.1:0 WEIR_JSON=1 WEIR_DATA=d3 WEIR_HUB="h:1 i:2" start
said '"ready":true'
stop
expect 0 "$WEIR" hub show h --data d3
expect 0 "$WEIR" hub show i --data d3

# ---- keys ----
expect 1 "$WEIR" serve --data d1 --amqp 0.0.0.0:0 --http 127.0.0.1:0
said 'allow-development-key' err
start --data d1 --amqp 0.0.0.0:0 --http 127.0.0.1:0 --allow-development-key --json
stop
start --data d4 --amqp 0.0.0.0:0 --http 127.0.0.1:0 --json
grep -q SAS_KEY_VALUE out && fail "the well-known key on every address"
said 'SharedAccessKey=[A-Za-z0-9+/]*=;'
stop
