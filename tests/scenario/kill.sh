#!/bin/bash
# Senders that would never end are killed with kill -9 in the middle of their work; the last one
# ends by itself. Of each round the lines 1, 2, 3, ... up to some number are there, in order and
# once, and all of them where the sender said so; inspect finds no damage.
set -euo pipefail

export WEIR_DATA=$TMPDIR/data
ROUNDS=${1:-6} LAST_LINES=5000

fail() { echo "kill.sh: $*"; exit 1; }
is_sound() {
    "$WEIR" inspect "$WEIR_DATA" >"$TMPDIR/inspected" || fail "$(cat "$TMPDIR/inspected")"
}

"$WEIR" hub create h --partitions 1 >/dev/null
for round in $(seq "$ROUNDS"); do
    "$WEIR" send h < <(seq -f "$round %.0f" 1 inf) >/dev/null 2>&1 &
    sender=$!
    sleep "0.0$((RANDOM % 90 + 10))"
    kill -9 "$sender"
    { wait "$sender" && fail "round $round: the sender was not killed"; } 2>/dev/null || true
    is_sound
done
seq -f "last %.0f" "$LAST_LINES" | "$WEIR" send h >"$TMPDIR/sent"
"$WEIR" tail h --from earliest --until-end >"$TMPDIR/all"

for round in $(seq "$ROUNDS") last; do
    sed -n "s/^$round //p" "$TMPDIR/all" >"$TMPDIR/got"
    count=$(wc -l <"$TMPDIR/got")
    seq "$count" | cmp -s - "$TMPDIR/got" || fail "round $round: lines missing, twice or moved"
done
[ "$count" -eq "$LAST_LINES" ] || fail "$count of $LAST_LINES acknowledged lines"
echo "$ROUNDS senders killed, $(wc -l <"$TMPDIR/all") lines in order, none twice"
