#!/bin/bash
# weir key: rules come and go, and a running client survives a rotation.
. "$(dirname "$0")/serving.bash"
free='--amqp 127.0.0.1:0 --amqps off --http off'
key_of() { sed 's/.*SharedAccessKey=\([^;]*\);.*/\1/' "$1"; }

expect 0 "$WEIR" key add --data d # also makes the folder
said '^Endpoint=sb://localhost;SharedAccessKeyName=send-listen;SharedAccessKey=[A-Za-z0-9+/]\{43\}=;UseDevelopmentEmulator=true;$'
expect 0 "$WEIR" hub create orders --data d
expect 0 "$WEIR" key add orders --rights send --data d
said 'SharedAccessKeyName=send;.*;EntityPath=orders;$'
cp out send
expect 0 "$WEIR" key add orders --rights manage,send --name boss --data d

expect 0 "$WEIR" key list --data d
[ "$(tr -s ' ' <out)" = "(all) send-listen send,listen
orders send send
orders boss send,listen,manage" ] || fail "another list"
silent "$(key_of send)"
expect 0 "$WEIR" key list orders --show-keys --data d
said "$(key_of send)"
[ "$(grep -c 'second key' out)" = 2 ] || fail "another list"

# ---- a rotation: the key before works once more ----
expect 0 "$WEIR" key rotate orders --name SEND --data d # names have no case
cp out fresh
[ "$(key_of fresh)" != "$(key_of send)" ] || fail "the same key"
expect 0 "$WEIR" key list orders --show-keys --data d
grep -A 2 '^orders *send' out >rule
said "$(key_of fresh)" rule
said "second key $(key_of send)" rule

# publish_with FILE CODE: one event with its connection string.
publish_with() {
    string=$(sed "s|sb://localhost;|sb://localhost:${amqp#*:};|" "$1")
    code=0
    "$WEIR" bench wire publish --connect "$string" --events 1 --batch 1 >wire 2>&1 || code=$?
    [ "$code" = "$2" ] || { cat wire; fail "exit code $code instead of $2 with the key in $1"; }
}
start --data d $free --json
silent SAS_KEY_VALUE # it has keys of its own
said 'SharedAccessKeyName=send-listen'
amqp=$(field amqp)
publish_with send 0
publish_with fresh 0
expect 4 "$WEIR" key add --data d
said "process $server" err
expect 4 "$WEIR" key list --data d
stop
expect 0 "$WEIR" key rotate orders --name send --data d
cp out newest
start --data d $free --json
amqp=$(field amqp)
publish_with newest 0
publish_with fresh 0
publish_with send 1
stop

# ---- removing ----
expect 0 "$WEIR" key remove orders --name send --data d
expect 3 "$WEIR" key remove orders --name send --data d
said "no access rule 'send'; 'weir key list' shows" err
expect 3 "$WEIR" key rotate orders --name send --data d
expect 0 "$WEIR" key remove --name send-listen --data d
start --data d $free --json # a hub's own key is enough: nobody gets the well-known one
silent SAS_KEY_VALUE
said 'SharedAccessKeyName=boss;.*EntityPath=orders;'
stop
expect 0 "$WEIR" key remove orders --name boss --data d
start --data d $free --json
said SAS_KEY_VALUE
stop

# ---- usage ----
expect 3 "$WEIR" key list --data none
expect 3 "$WEIR" key add missing --data d
expect 1 "$WEIR" key add --name RootManageSharedAccessKey --data d
expect 2 "$WEIR" key add --name 'a b' --data d
expect 2 "$WEIR" key remove --data d
said '--name is missing' err
for wrong in '' read send, ,send 'send listen' sendlisten; do
    expect 2 "$WEIR" key add --rights "$wrong" --data d
done
