#!/bin/bash
# weir serve as a person or a script starts it: its ready line, its ports, its options, its first
# key. What clients see is in interop-js.sh.
. "$(dirname "$0")/alone.bash"
. "$(dirname "$0")/serving.bash"

# ---- ready, as JSON and for people ----
start --data d1 $free --hub orders:2:a,b --json
[ "$(wc -l <out)" = 1 ] || fail "more than one line"
said '^{"ready":true,"amqp":"127.0.0.1:[0-9]*","amqps":"127.0.0.1:[0-9]*","http":"127.0.0.1:[0-9]*","connection_string":"Endpoint=sb://localhost:[0-9]*;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"}$'
amqp=$(field amqp) amqps=$(field amqps) http=$(field http)
[ -s log ] && fail "it complained"

# ---- TLS by the local authority, without doing anything for it ----
if command -v openssl >/dev/null; then
    for host in localhost 127.0.0.1; do
        expect 0 openssl s_client -connect "$amqps" -CAfile xdg/weir/authority/ca.pem \
            -verify_return_error $([ $host = localhost ] && echo -verify_hostname || echo -verify_ip) $host
        said 'Verify return code: 0'
    done
    expect 1 openssl s_client -connect "$amqps" -CAfile xdg/weir/authority/ca.pem \
        -verify_return_error -verify_hostname example.org
fi

# ---- a port that was asked for and is taken, a folder that is taken ----
for option in amqp amqps http; do
    expect 1 "$WEIR" serve --data d2 $free --$option "${!option}"
    said "listening on ${!option}: weir (pid $server) holds port" err
    said 'stop that process, or choose another port with --amqp' err
done
expect 4 "$WEIR" serve --data d1 $free
said "process $server" err
silent waiting err # a server does not end by itself
other=$server

# ---- ports that nobody asked for: amqp's must be had, others are done without ----
# beside ARGS...: one more server, ready or over when this returns.
beside() {
    rm -f out3
    "$WEIR" serve --data d3 "$@" --json >out3 2>err3 &
    third=$!
    until grep -qs '}$' out3 || ! kill -0 $third 2>/dev/null; do sleep 0.05; done
}
beside --amqp 127.0.0.1:0 # has the default ones for the others, or somebody else has
start --data d2 --amqp 127.0.0.1:0 --json
said '"amqps":null,"http":null,"connection_string":"[^"]*","warnings":\["listening on 127.0.0.1:5671: .* holds port 5671; going on without it","listening on 127.0.0.1:5300: .*"\]}$'
said 'listening on 127.0.0.1:5300: .* going on without it' log
stop
start --data d2 --amqp 127.0.0.1:0
said 'amqps   not served'
stop
kill $third && wait $third
beside --amqps off --http off # has 5672, or somebody else has
expect 1 timeout 20 "$WEIR" serve --data d2 --amqps off --http off
said 'listening on 127.0.0.1:5672: .* holds port 5672' err
if [ -s out3 ]; then
    said "(pid $third) holds" err
    said 'sb://localhost;Shared' out3 # the port that clients take by themselves is left out
    kill $third && wait $third
fi
server=$other
stop TERM

start --data d1 $free
said 'weir is ready, after [0-9]* ms'
said 'hubs    1'
said 'connection string for every Event Hubs client'
said 'Endpoint=sb://localhost:'
said '^try:  curl http://127.0.0.1:[0-9]*/health$'
stop INT

# ---- hubs ----
expect 0 "$WEIR" hub show orders --data d1
said 'groups      $Default a b'
start --data d1 $free --hub orders:2:c,c,A --json
stop
expect 0 "$WEIR" hub show orders --data d1
said 'groups      $Default a b c'
expect 2 "$WEIR" serve --data d1 $free --hub new:1 --hub orders:3
said "hub 'orders' has 2 partitions, and 3 are asked for" err
expect 3 "$WEIR" hub show new --data d1 # nothing was made
for wrong in orders orders: orders:x orders:0 orders:1025 :2 a/b:2 'x:1:bad group'; do
    expect 2 "$WEIR" serve --data d2 $free --hub "$wrong"
    said '--hub' err
done

# ---- every option is a variable too ----
printf '{"UserConfig":{"NamespaceConfig":[{"Entities":[{"Name":"c","PartitionCount":1}]}]}}' >c.json
WEIR_AMQP=127.0.0.1:0 WEIR_AMQPS=127.0.0.1:0 WEIR_HTTP=127.0.0.1:0 WEIR_JSON=1 WEIR_DATA=d4 \
    WEIR_HUB="h:1 i:2" WEIR_CONFIG=c.json WEIR_AUTHORITY=$PWD/ca WEIR_TRACE=1 start
said '"ready":true'
[ -s ca/ca.pem ] || fail "WEIR_AUTHORITY is not where the authority is"
(exec 9<>"/dev/tcp/127.0.0.1/$(field amqp | cut -d: -f2)" && printf 'AMQP\0\1\0\0' >&9 &&
    head -c 8 <&9 >/dev/null)
stop
said ' DEBUG amqp #[0-9]* 127.0.0.1:[0-9]*: -> ' log
for hub in h i c; do expect 0 "$WEIR" hub show $hub --data d4; done
WEIR_IN_MEMORY=1 WEIR_MEMORY_MAX=64M WEIR_TLS_CERTIFICATE=ca/server.pem WEIR_TLS_KEY=ca/server.key \
    WEIR_JSON=false start $free
said 'in memory, at most 64 MiB: nothing is kept'
silent 'weir trust'
stop
WEIR_IN_MEMORY=1 start --data d4 $free # the command line outdoes the environment
said 'data    d4'
stop
for wrong in 5672 localhost :5672 127.0.0.1: 127.0.0.1:x 127.0.0.1:65536 off; do
    expect 2 "$WEIR" serve --data d6 --amqp "$wrong"
    said "HOST:PORT, not '$wrong'" err
done
[ ! -e d6 ] || fail "a slip of the pen made a folder"
for on in true TRUE yes on; do
    WEIR_IN_MEMORY=$on WEIR_DATA=d6 start $free
    said 'in memory'
    stop
done
[ ! -e d6 ] || fail "a folder was made for what is in memory"
for unsure in maybe 2 -; do
    WEIR_IN_MEMORY=$unsure expect 2 "$WEIR" serve --data d6
    said "WEIR_IN_MEMORY must be 1 or 0, .* not '$unsure'" err
done
expect 2 "$WEIR" serve --data d6 --memory-max 64M
said '--memory-max goes with --in-memory' err
WEIR_MEMORY_MAX=64M expect 2 "$WEIR" serve --data d6
WEIR_MEMORY_MAX=lots expect 2 "$WEIR" serve
said 'WEIR_MEMORY_MAX must be a size like' err
expect 2 "$WEIR" serve --data d4 --in-memory
expect 2 "$WEIR" serve --data d4 $free --tls-key ca/server.key
said 'belong together' err
expect 1 "$WEIR" serve --data d4 $free --authority c.json
said 'local authority' err

# ---- the key that everybody knows is for this machine ----
elsewhere='--amqp 0.0.0.0:0 --amqps off --http off'
expect 1 "$WEIR" serve --data d1 $elsewhere
said 'the well-known key SAS_KEY_VALUE' err
said 'allow-development-key' err
expect 1 "$WEIR" serve --data d1 --amqp 127.0.0.1:0 --amqps 0.0.0.0:0 --http off
for name in 127.example.org:0 '[::]:0'; do
    expect 1 "$WEIR" serve --data d1 --amqp "$name" --amqps off --http off
    said 'allow-development-key' err
done
WEIR_ALLOW_DEVELOPMENT_KEY=1 start --data d1 $elsewhere --json
said 'WHOEVER CAN REACH 0.0.0.0:0 CAN READ AND WRITE EVERY HUB' log
said '"warnings":\["WHOEVER CAN REACH'
stop
start --data d5 $elsewhere --json
silent SAS_KEY_VALUE
said 'SharedAccessKey=[A-Za-z0-9+/]*=;'
stop
start --data d5 $free --json # and keeps it
silent SAS_KEY_VALUE
stop
for i in 1 2; do # the second of a rule's keys lets people in, too
    expect 1 "$WEIR" serve --data d1 $elsewhere
    expect 0 "$WEIR" key rotate --name RootManageSharedAccessKey --data d1
done
start --data d1 $elsewhere --json
stop
