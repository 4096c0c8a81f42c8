#!/bin/bash
# kill -9 of the server in the middle of a JavaScript producer's and consumer's work, 50 times: no
# acknowledged event is lost, none is missing in between, none out of order, no batch in part.
# Without TLS and with it, at once.
# depends: src tests/interop tests/scenario/interop-js.sh tests/scenario/node.bash
set -eu
cd "$(dirname "$0")/../.."

rc=0
export ROUNDS=${ROUNDS:-50} TESTS=crash.test.mjs LIMIT_MS=1800000
tests/scenario/interop-js.sh >"$TMPDIR/js.log" 2>&1 || rc=$?
[ $rc = 0 ] || { tail -n 40 "$TMPDIR/js.log"; exit $rc; }
grep -oE '[0-9]+ kills, .*' "$TMPDIR/js.log"
