#!/bin/bash
# A hub with a limit in bytes keeps every event that is within it, however fast they come, and its
# folder stays within what hub and limit allow.
#
#   retention.sh [LIMIT EVENTS BYTES]...     e.g. 256M 16000 10000
set -euo pipefail

[ $# -gt 0 ] || set -- 2M 1200 1000 1M 60 9000
fail() { echo "retention.sh: $*"; exit 1; }

number=0
while [ $# -gt 0 ]; do
    limit=$1 events=$2 bytes=$3
    shift 3
    number=$((number + 1))
    export WEIR_DATA=$TMPDIR/data$number
    "$WEIR" hub create h --partitions 4 --retention-bytes "$limit" >/dev/null
    line=$(head -c $((bytes - 8)) /dev/zero | tr '\0' x)
    { # and upkeep has its turn before the sender leaves
        seq -f "%07.0f $line" "$events"
        sleep 2
    } | "$WEIR" send h >/dev/null
    "$WEIR" tail h --from earliest --until-end | cut -c1-7 | sort >"$TMPDIR/got"
    seq -f "%07.0f" "$events" | cmp -s - "$TMPDIR/got" ||
        fail "limit $limit: of $events events of $bytes bytes $(wc -l <"$TMPDIR/got") are kept"
    allowed=$(numfmt --from=iec "$limit")
    used=$(du -sB1 "$WEIR_DATA" | cut -f1)
    [ "$used" -le $((allowed * 7 / 4 + (8 << 20))) ] || fail "limit $limit: $used bytes on disk"
    echo "limit $limit: all of $events events of $bytes bytes are kept, $((used >> 10)) KiB on disk"
    rm -rf "$WEIR_DATA"
done
