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
