#!/bin/bash
# Azure's own JavaScript client against the server with the address and undefined-behaviour
# sanitizers in it: the whole suite, without TLS and with it, three times in a row.
# depends: src tests/interop tests/scenario/interop-js.sh tests/scenario/node.bash
set -eu
cd "$(dirname "$0")/../.."
RUNS=${RUNS:-3}

cmake -S . -B build/asan -DWEIR_SANITIZE=address,undefined >"$TMPDIR/build.log" &&
    cmake --build build/asan -j"${JOBS:-$(nproc)}" --target weir >>"$TMPDIR/build.log" 2>&1 ||
    { tail -n 20 "$TMPDIR/build.log"; exit 1; }
export ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export WEIR=$PWD/build/asan/weir BUILD=$PWD/build/asan
for run in $(seq "$RUNS"); do
    rc=0
    tests/scenario/interop-js.sh >"$TMPDIR/js.log" 2>&1 || rc=$?
    [ $rc = 0 ] || { tail -n 40 "$TMPDIR/js.log"; exit $rc; }
    awk -v run="$run" '/^# pass / { passed += $3 } /^# fail / { failed += $3 }
        END { printf "run %d: %d passed, %d failed\n", run, passed, failed }' "$TMPDIR/js.log"
done
