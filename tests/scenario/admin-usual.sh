#!/bin/bash
# Commands that nobody told where to work: ./weir-data, or weir serve on its usual ports, and they say
# which.
. "$(dirname "$0")/alone.bash"
. "$(dirname "$0")/serving.bash"
unset WEIR_DATA WEIR_CONNECT WEIR_ADMIN
for port in 5672 5300; do
    ! (exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "port $port is taken"; exit 77; }
done
mkdir -p empty full
cd empty

# ---- nothing at all ----
for what in 'hub list' 'hub show homes' 'hub delete homes' 'send homes' 'tail homes' 'key list'; do
    expect 3 "$WEIR" $what
    said '^weir: there is no ./weir-data, and no weir serve at 127.0.0.1:5300; --data names a folder, --connect a server$' err
done
expect 0 "$WEIR" hub list --help
[ -z "$(ls | grep -v '^out$\|^err$')" ] || fail "something was made by looking for it"

# ---- a server, and no folder ----
start --json --in-memory --amqps off --hub homes:2
found='^weir: there is no ./weir-data: using the server at 127.0.0.1:5672$'
expect 0 "$WEIR" hub list
said '^homes  *2 partitions'
said "$found" err
seq 1 5 | "$WEIR" send homes --partition 0 >out 2>err || fail send
said "$found" err
expect 0 "$WEIR" tail homes --until-end
said "$found" err
[ "$(cat out)" = "$(seq 1 5)" ] || fail "other events"
expect 0 "$WEIR" hub show homes
said '^groups  *\$Default$'
expect 0 "$WEIR" hub create more --partitions 1
said "$found" err
expect 0 "$WEIR" key add more
said "$found" err
[ ! -e weir-data ] || fail "a folder beside the server"

# A folder that was named is that folder, or nothing.
expect 3 "$WEIR" hub delete homes --data nowhere
expect 3 env WEIR_DATA=nowhere "$WEIR" hub delete homes
expect 3 env WEIR_DATA=nowhere "$WEIR" tail homes --until-end
said 'there are no hubs' err
expect 0 env WEIR_DATA=../named "$WEIR" hub create own
[ ! -s err ] || fail "it was told where"
# And one that is there is taken.
(cd ../full && "$WEIR" hub create mine --data weir-data) >out 2>err || fail "a folder"
(cd ../full && "$WEIR" hub list) >out 2>err || fail "the folder"
said '^weir: using the folder ./weir-data$' err
said '^mine '
expect 0 "$WEIR" hub list
[ "$(cut -d' ' -f1 out | tr '\n' ' ')" = 'homes more ' ] || fail "another list"
stop

# ---- a server that has another key ----
expect 0 "$WEIR" key add --rights manage --data ../keys
string=$(cat out)
start --json --data ../keys --amqps off
expect 1 "$WEIR" hub list
said '^weir: there is no ./weir-data, and the server at 127.0.0.1:5300 wants a key of its own; --connect names it$' err
expect 0 "$WEIR" hub create homes --connect "$string"
expect 0 env WEIR_CONNECT="$string" "$WEIR" hub list
said '^homes '
[ ! -s err ] || fail "it was told where"
stop
expect 4 "$WEIR" hub list --connect "$string"
said '^weir: hub list: .*localhost:5672.* refused' err

# ---- and nothing again: the folder is made ----
expect 0 "$WEIR" hub create first
said '^weir: using a new folder, ./weir-data$' err
expect 0 "$WEIR" hub list
said '^weir: using the folder ./weir-data$' err
