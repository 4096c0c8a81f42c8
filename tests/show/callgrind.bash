# callgrind.bash - counts the instructions of an event; the proofs that do that source it. They are
# the difference of a long and a short run, so that what is done once is not in them.
[ -e /usr/include/valgrind/callgrind.h ] || { echo "valgrind is not installed"; exit 77; }
root=$(cd "$(dirname "$0")/../.." && pwd)

# compile ROOM LIBRARY...: tests/ROOM/instructions.c, which says what it does.
compile() {
    local room=$1
    shift
    cc -std=c11 -O2 -g -D_POSIX_C_SOURCE=200809L -I"$root/src" -I"$root/include" \
        -o "$TMPDIR/instructions" "$root/tests/$room/instructions.c" "$@"
}

# counted WAY EVENTS: of one run, without what the measuring program itself does.
counted() {
    valgrind -q --tool=callgrind --collect-atstart=no --callgrind-out-file="$TMPDIR/callgrind.$1" \
        "$TMPDIR/instructions" "$1" "$2"
    callgrind_annotate --auto=no --threshold=100 --show-percs=no "$TMPDIR/callgrind.$1" |
        awk '/^ *[0-9,]+ / && !/PROGRAM TOTALS|instructions\.c:/ { gsub(",", "", $1); sum += $1 }
             END { printf "%d\n", sum }'
}

# judge NAME FEW MANY: a row for each line `WAY GOAL` of standard input. Fails when a goal is missed.
judge() {
    local way goal each verdict rc=0
    while read -r way goal; do
        each=$((($(counted "$way" "$3") - $(counted "$way" "$2")) / ($3 - $2)))
        verdict=ok
        [ $each -le "$goal" ] || verdict=MISSED rc=1
        echo "ROW $1 way=$way event_bytes=100 instructions=$each goal=$goal $verdict"
    done
    return $rc
}
