#!/bin/bash
# Durable appending and reading beside the raw disk and beside the floor: every case, every goal. On
# the disk that the build lies on, unless WEIR_BENCH_DIR names another.
# depends: src/base src/log src/cli bench
exec "$WEIR" bench log --data "${WEIR_BENCH_DIR:-$BUILD}" --rounds 9 --strict
