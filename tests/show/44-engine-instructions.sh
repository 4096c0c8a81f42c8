#!/bin/bash
# Instructions that the AMQP engine takes for one 100-byte event in a transfer of its own, counted by
# callgrind: out, composed with its annotations; in, up to its outcome; and what it takes to see that
# it is a message. The difference of two runs, so that connecting is not in it, and without what the
# measuring program itself does.
# depends: src/base src/amqp tests/amqp/instructions.c
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
FEW=20000 MANY=120000

[ -e /usr/include/valgrind/callgrind.h ] || { echo "valgrind is not installed"; exit 77; }
cc -std=c11 -O2 -g -D_POSIX_C_SOURCE=200809L -I"$root/src" -I"$root/include" -o "$TMPDIR/instructions" \
    "$root/tests/amqp/instructions.c" "$BUILD/src/amqp/libweir_amqp.a" "$BUILD/src/base/libweir_base.a"

# counted WAY MESSAGES: instructions of the server's side.
counted() {
    valgrind -q --tool=callgrind --collect-atstart=no --callgrind-out-file="$TMPDIR/callgrind.$1" \
        "$TMPDIR/instructions" "$1" "$2"
    callgrind_annotate --auto=no --threshold=100 --show-percs=no "$TMPDIR/callgrind.$1" |
        awk '/^ *[0-9,]+ / && !/PROGRAM TOTALS|instructions\.c:/ { gsub(",", "", $1); sum += $1 }
             END { printf "%d\n", sum }'
}

rc=0
while read -r way goal; do
    each=$((($(counted "$way" $MANY) - $(counted "$way" $FEW)) / (MANY - FEW)))
    verdict=ok
    [ $each -le "$goal" ] || verdict=MISSED rc=1
    echo "ROW engine-instructions way=$way event_bytes=100 instructions=$each goal=$goal $verdict"
done <<'END'
out 300
in 300
check 100
END
exit $rc
