#!/bin/bash
# Damage below weir serve: a server stays up, a reader over a connection is told what it does not
# get, and one of a single partition is told which.
. "$(dirname "$0")/serving.bash"

# fill FOLDER: batches of 2 kB in partition 1 of hub h, in several segments.
fill() {
    expect 0 "$WEIR" hub create h --partitions 2 --data "$1"
    for i in $(seq 2000); do printf '%05d%02000d\n' "$i" 0; done |
        "$WEIR" send h --partition 1 --data "$1" >/dev/null
}

# ---- a batch in the middle ----
fill hurt
segment=$(ls hurt/hub-*/*.seg | sed -n 3p)
printf '\377\377' | dd of="$segment" bs=1 seek=20000 conv=notrunc 2>/dev/null
expect 1 "$WEIR" tail h --partition 1 --until-end --data hurt
said 'tail: partition 1: .*damaged: events [0-9]* to [0-9]* of partition 1' err
range=$(sed -n 's/.*damaged: events \([0-9]* to [0-9]*\) of.*/\1/p' err)
start --json --data hurt $free
expect 0 "$WEIR" tail h --until-end --data hurt
said "partition 1: events $range are missing: they expired, or are damaged" err
stop
said "hub 'h', partition 1: events $range are passed over: " log

# ---- the first batch ----
expect 0 "$WEIR" hub create h --partitions 1 --data first
for i in the-first-one second third; do
    echo "$i" | "$WEIR" send h --data first >out
done
segment=$(grep -l the-first-one first/hub-*/*.seg)
at=$(grep -abo the-first-one "$segment" | cut -d : -f 1)
printf '\377\377' | dd of="$segment" bs=1 seek="$at" conv=notrunc 2>/dev/null
start --json --data first $free
expect 0 "$WEIR" tail h --until-end --data first
said 'partition 0: events 0 to 0 are missing: they expired, or are damaged' err
[ "$(wc -l <out)" = 2 ] || fail 'not both others came'
stop

# ---- the last batch: a reader up to the end comes to an end through a server, too ----
fill last
echo the-last-one | "$WEIR" send h --partition 1 --data last >out
offset=$("$WEIR" tail h --partition 1 --from sequence:2000 --count 1 --json --data last |
    sed 's/.*"offset":"\([0-9]*\)".*/\1/')
segment=$(grep -l the-last-one last/hub-*/*.seg)
at=$(grep -abo the-last-one "$segment" | cut -d : -f 1)
printf '\377\377' | dd of="$segment" bs=1 seek="$at" conv=notrunc 2>/dev/null
start --json --data last $free
expect 1 "$WEIR" tail h --until-end --timeout 60s --data last
said 'partition 1: events 2000 to 2000 are missing: they are damaged' err
[ "$(wc -l <out)" = 2000 ] || fail 'not all the others came'
# Nothing comes at all: the number of the first that is missing is not known.
expect 1 "$WEIR" tail h --partition 1 --until-end --timeout 60s --data last --from "offset:$offset"
said 'partition 1: events up to 2000 are missing: they are damaged' err
stop

# ---- the only segment: what was in it is told ----
expect 0 "$WEIR" hub create h --partitions 1 --data only
seq 300 | "$WEIR" send h --data only >out
rm only/hub-*/*.seg
expect 1 "$WEIR" inspect only
range=$(sed -n 's/.*partition 0 sequence \(0 to [0-9]*\): the segment is lost: at least 0 to 299 .*/\1/p' out)
expect 1 "$WEIR" tail h --until-end --data only
said "segment 1 is lost: events $range of partition 0 cannot be read: at least 0 to 299 were stored" err

# ---- the newest segment: publishing goes on behind it ----
fill lost
expect 0 "$WEIR" inspect lost
rm "$(sed -n 's/^  segment *\(.*\.seg\):.*/\1/p' out | tail -1)" # the last file may be the spare
start --json --data lost $free
expect 1 "$WEIR" tail h --partition 1 --until-end --timeout 60s --data lost
first=$(wc -l <out)
said "partition 1: events $first to [0-9]* are missing: they are damaged" err
echo again | "$WEIR" send h --partition 1 --data lost >out 2>err || fail 'publishing does not go on'
stop
