#!/bin/bash
# A hub that remembers a million idempotent producers: how much memory that takes, how long it takes
# to open, and that it takes batches in as fast as one that remembers none (within 10 %). Batches of
# the quiet ones, repeated after opening, are known.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)

cc -std=c11 -O2 -g -D_POSIX_C_SOURCE=200809L -I"$root/src" -I"$root/include" \
    -o "$TMPDIR/many_producers" "$root/tests/log/many_producers.c" \
    "$BUILD/src/log/libweir_log.a" "$BUILD/src/base/libweir_base.a" -lpthread
mkdir -p "$TMPDIR/logs"
rc=0
"$TMPDIR/many_producers" "$TMPDIR/logs" 1000000 || rc=1
[ $rc -eq 0 ] || echo "MISSED"
exit $rc
