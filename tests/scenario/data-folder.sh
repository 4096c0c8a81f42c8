#!/bin/bash
# Folders that are not what they seem: with links in the place of files, open to everybody, or
# somebody else's.
. "$(dirname "$0")/serving.bash"
: >out
: >err

# ---- what a link points to is not touched ----
echo precious >victim
mkdir linked
ln -s ../victim linked/lock
expect 1 "$WEIR" hub create q --data linked
said 'linked/lock: .*symbolic link' err
[ "$(cat victim)" = precious ] || fail "the lock was written elsewhere"

expect 0 "$WEIR" hub create q --data d
rm d/catalog.0
ln -s ../victim d/catalog.0
expect 1 "$WEIR" hub create another --data d
said 'd/catalog.0: .*symbolic link' err
[ "$(cat victim)" = precious ] || fail "the catalogue was written elsewhere"

mkdir elsewhere
echo precious >elsewhere/file
expect 0 "$WEIR" hub create q --data swapped
rm -r swapped/hub-*1
ln -s ../elsewhere swapped/hub-0000000000000001
expect 0 "$WEIR" hub delete q --data swapped
[ "$(cat elsewhere/file)" = precious ] || fail "a hub was deleted elsewhere"
[ ! -L swapped/hub-0000000000000001 ] || fail "the link is there still"

# ---- others may write to it: it is used, and told ----
mkdir open
chmod 777 open
expect 0 "$WEIR" hub create q --data open
said "anybody on this machine may change or remove what is stored in open: 'chmod o-w'" err
start --data open --json --amqp 127.0.0.1:0 --amqps off --http off
stop
said 'anybody on this machine may change' err
chmod 755 open
expect 0 "$WEIR" hub list --data open
silent 'anybody' err
if [ "$(id -u)" = 0 ]; then
    mkdir foreign
    chown 12345 foreign
    expect 0 "$WEIR" hub create q --data foreign
    said 'foreign belongs to another user (12345)' err
fi

# ---- somebody else's: nothing is made there ----
mkdir etc
: >etc/passwd
for command in 'serve --amqp 127.0.0.1:0 --amqps off --http off' 'hub create q'; do
    # shellcheck disable=SC2086
    expect 2 timeout 20 "$WEIR" $command --data etc
    said 'etc has no hubs, but files of others, like passwd' err
    [ "$(ls -A etc)" = passwd ] || fail "made: $(ls -A etc)"
done
# What every folder may have is nobody's, and a folder with hubs may have anything.
mkdir mount mount/lost+found
: >mount/.hidden
expect 0 "$WEIR" hub create q --data mount
: >mount/notes
expect 0 "$WEIR" hub create r --data mount
