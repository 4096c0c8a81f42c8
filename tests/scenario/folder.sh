#!/bin/bash
# A data folder in rough hands: its lock file is removed, its catalogue is old or bad. Nothing that
# was acknowledged may go.
. "$(dirname "$0")/serving.bash"

# ---- one writer, lock file or not ----
expect 0 "$WEIR" hub create --data held eh1 --partitions 2
printf 'a\nb\nc\n' | "$WEIR" send --data held eh1 >out 2>err
"$WEIR" tail --data held eh1 --from earliest >tailed 2>tail_err &
tail=$!
until [ "$(wc -l <tailed)" -eq 3 ]; do
    kill -0 $tail || fail "tail ended by itself"
    sleep 0.02
done
rm held/lock
expect 4 "$WEIR" send --data held eh1
said 'in use by' err
if grep -q "^[0-9]*: FLOCK .* $tail " /proc/locks 2>/dev/null; then said "process $tail" err; fi
expect 4 "$WEIR" inspect held
said 'in use by' err
[ ! -e held/lock ] || fail "who was refused made a lock file"
kill -INT $tail
wait $tail || fail "tail was interrupted and said $?"
expect 0 "$WEIR" inspect held
said 'no damage'

# ---- an old catalogue beside a bad one: nothing with events goes ----
expect 0 "$WEIR" hub create --data old homes --partitions 1
cp old/catalog.1 stale
expect 0 "$WEIR" hub create --data old meters --partitions 3
seq 30 | "$WEIR" send --data old meters >out 2>err
cp stale old/catalog.1
printf x | dd of=old/catalog.0 bs=1 seek=50 conv=notrunc 2>/dev/null
expect 1 "$WEIR" inspect old
said 'DAMAGE: a copy of the catalogue is bad'
said 'orphan hub-0000000000000002: no hub has this folder'
said '1 orphan:'
for _ in 1 2 3; do
    expect 0 "$WEIR" hub list --data old
    said '^homes '
    silent '^meters '
    said "^(orphan)  *3 partitions  without a hub: 'weir hub adopt 2 NAME'"
    said 'orphan old/hub-0000000000000002: no hub has this folder' err
done
expect 0 "$WEIR" hub create --data old meters --partitions 1 # has another id
[ -d old/hub-0000000000000003 ] || fail "an id was given again"
expect 1 "$WEIR" hub adopt --data old 2 meters
said "'meters' exists already" err
expect 2 "$WEIR" hub adopt --data old hub-2 found
expect 3 "$WEIR" hub adopt --data old hub-0000000000000007 found
expect 3 "$WEIR" hub adopt --data old 7 found
expect 0 "$WEIR" hub adopt --data old 2 found
said '^adopted hub found'
expect 0 "$WEIR" tail --data old found --until-end
[ "$(wc -l <out)" = 30 ] || fail "$(wc -l <out) events of 30"
expect 0 "$WEIR" hub list --data old
silent orphan
silent orphan err

# ---- changing a hub ----
expect 2 "$WEIR" hub update --data old found
said 'nothing to change' err
expect 2 "$WEIR" hub update --data old found --partitions 0
expect 2 "$WEIR" hub update --data old found --retention-age 0s
expect 3 "$WEIR" hub update --data old none --retention-age 1h
expect 0 "$WEIR" hub update --data old found --retention-age 12h
expect 0 "$WEIR" hub update --data old found --retention-bytes 1M
expect 0 "$WEIR" hub show --data old found
said '^retention  *12h, 1M$'
expect 2 "$WEIR" hub update --data old found --partitions 2
said 'can only become more' err
expect 0 "$WEIR" hub show --data old found --json
cp out shown
python3 -m json.tool shown >/dev/null || fail "this is not JSON"
for want in '"name":"found"' '"retain_ms":43200000' '"retain_bytes":1048576' '"groups":\["\$Default"\]' \
    '"stored_bytes":' '"disk_bytes":[1-9]' '"next_expiry_ms":' '"partitions":\[{"id":"0",'; do
    said "$want" shown
done

# ---- the same through a server ----
expect 0 "$WEIR" hub delete --data old meters
mv old/catalog.1 kept.1
cp stale old/catalog.1
rm old/catalog.0
start --json --data old $free
said 'the other, which is used, may be older' log
expect 0 "$WEIR" hub list --data old
said "^(orphan)  *3 partitions"
expect 0 "$WEIR" hub adopt --data old 2 again
expect 0 "$WEIR" hub update --data old again --retention-age 1d --retention-bytes 2M
expect 0 "$WEIR" hub show --data old again
said '^retention  *1d, 2M$'
said '^on disk  *[1-9][0-9.]* KiB'
said '^kept  *[1-9][0-9.]* [a-zKM]* of events since 2'
said '^next expiry .* in 1d 2h, or when the limit in bytes is passed$'
expect 0 "$WEIR" hub update --data old again --retention-bytes 0
expect 0 "$WEIR" hub show --data old again --json
python3 -m json.tool out >/dev/null || fail "this is not JSON"
said '"retain_ms":86400000,"retain_bytes":0'
said '"stored_bytes":'
expect 2 "$WEIR" hub update --data old again --partitions 1
said 'can only become more' err
expect 3 "$WEIR" hub update --data old none --retention-age 1d
expect 0 "$WEIR" tail --data old again --until-end
[ "$(wc -l <out)" = 30 ] || fail "$(wc -l <out) events of 30"
stop
