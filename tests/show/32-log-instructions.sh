#!/bin/bash
# Instructions that the log takes for one event of 100 bytes, counted by callgrind: published in
# batches of 100, published alone, and read. The goals are what the first format version took.
# depends: src/base src/log tests/log/instructions.c tests/show/callgrind.bash
set -eu
. "$(dirname "$0")/callgrind.bash"

compile log "$BUILD/src/log/libweir_log.a" "$BUILD/src/base/libweir_base.a" -lpthread
judge log-instructions 100000 600000 <<'END'
batch 344
single 1785
read 133
END
