#!/bin/bash
# examples/simple_processor: what it says of four partitions, and that it goes on where it was.
set -eu
cd "$TMPDIR"

fail() { echo "examples.sh: $*"; cat said; exit 1; }
trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT
example=$BUILD/examples/simple_processor

"$WEIR" hub create homes --partitions 4 --data d >/dev/null
seq 1 10 | "$WEIR" send homes --key home-7 --data d >/dev/null

# run WANTED: until so many messages were said, then the enter key.
run() {
    rm -f keys
    mkfifo keys
    "$example" d homes store.db <keys >said 2>&1 &
    exec 3>keys
    for _ in $(seq 600); do
        [ "$(grep -c message said)" -lt "$1" ] || break
        sleep 0.1
    done
    echo >&3
    exec 3>&-
    wait $! || fail "exit code $?"
    [ "$(grep -c message said)" = "$1" ] || fail "not $1 messages"
    [ "$(grep -c opened said)" = 4 ] || fail "not four opened"
    [ "$(grep -c 'closed: shutdown' said)" = 4 ] || fail "not four closed"
    ! grep -q error said || fail "an error"
}
run 10
echo 11 | "$WEIR" send homes --key home-7 --data d >/dev/null
run 1
grep -q 'message 10: 11$' said || fail "another message"

code=0
"$example" d nothing store.db >said 2>&1 </dev/null || code=$?
[ "$code" = 1 ] && grep -q nothing said || fail "no word about the hub that is missing"
