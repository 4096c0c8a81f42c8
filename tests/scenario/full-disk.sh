#!/bin/bash
# A disk that becomes full under a server: `weir send` stops and says where, what was acknowledged is
# there, nothing behind the line that it names is, and publishing goes on when there is room again.
if [ "${1:-}" != inside ]; then
    unshare -rm true 2>/dev/null || { echo "skipped, because nothing can be mounted here" && exit 77; }
    exec unshare -rm "$0" inside
fi
. "$(dirname "$0")/serving.bash"
mkdir disk && mount -t tmpfs -o size=24m tmpfs disk || fail "no disk"
start --json --data disk/d --hub homes:1 $free
seq 1 200000 | awk '{ printf "%d %0*d\n", $1, $1 % 3 ? 10 : 900, 0 }' >lines
"$WEIR" send homes --data disk/d <lines >sent 2>err && fail "there was room for everything"
said 'events were not acknowledged: .*No space left on device' err
last=$(sed -n 's/^weir: send: nothing behind line \([0-9]*\) was sent$/\1/p' err)
[ -n "$last" ] || fail "it does not say where it stopped"
[ "$last" -lt 200000 ] || fail "it read on to line $last"
"$WEIR" tail homes --until-end --data disk/d 2>err | cut -d ' ' -f 1 | sort -n >got
[ "$(sed -n 's/^acknowledged \([0-9]*\) events$/\1/p' sent)" = "$(wc -l <got)" ] || fail "not what was said"
[ "$(tail -n 1 got)" -le "$last" ] || fail "something behind line $last is there"

# ---- room ----
expect 0 "$WEIR" hub update homes --retention-bytes 4M --data disk/d
for _ in $(seq 200); do
    echo again | "$WEIR" send homes --data disk/d >sent 2>err && break
    sleep 0.05
done
said '^acknowledged 1 event$' sent
stop

# ---- a folder without a server ----
rm -r disk/d
expect 0 "$WEIR" hub create homes --partitions 1 --data disk/d
"$WEIR" send homes --data disk/d <lines >sent 2>err && fail "there was room for everything in the folder"
last=$(sed -n 's/^weir: send: nothing behind line \([0-9]*\) was sent$/\1/p' err)
[ -n "$last" ] || fail "it does not say where it stopped in the folder"
"$WEIR" tail homes --until-end --data disk/d 2>err | cut -d ' ' -f 1 >got
[ "$(sed -n 's/^acknowledged \([0-9]*\) events$/\1/p' sent)" = "$(wc -l <got)" ] || fail "not what was said"
[ "$(tail -n 1 got)" -le "$last" ] || fail "something behind line $last is there"

# ---- a server that was started on a full disk: commands reach it by --connect alone ----
cat /dev/zero >disk/filler 2>/dev/null || true
start --json --data disk/d $free
string=$(field connection_string)
expect 4 "$WEIR" hub show homes --data disk/d
said "if it is 'weir serve', it could not leave its address in the folder, .*: name it with --connect" err
expect 0 "$WEIR" hub show homes --connect "$string"
stop
