#!/bin/bash
# Backups of a folder that weir serve holds, while several senders publish, segments are rolled and
# expire, backups are killed with kill -9 and so is the server. Every backup that says it is one is
# restored and compared: of each sender the lines up to some number are there, in order and once,
# and all that had been acknowledged when the backup began. First the walk through of
# docs/operations.md.
golden=$(cd "$(dirname "$0")/../golden/1" && pwd)
. "$(dirname "$0")/serving.bash"
SENDERS=3 BURST=400 ROUNDS=${1:-2} KILLS=${2:-5} HUBS=${3:-20}

# ---- the walk through ----
"$WEIR" hub create homes --partitions 4 --data data >/dev/null
seq 1000 | "$WEIR" send homes --data data >/dev/null
start --data data --hub other:2 $free
expect 0 "$WEIR" backup data backup
said 'backed up 2 hubs with 1000 events'
seq 1001 1500 | "$WEIR" send homes --data data >/dev/null 2>&1
expect 0 "$WEIR" backup data backup
said '1 segment copied .*, 1 reused .*, 1 removed'
expect 0 "$WEIR" backup --check backup
said 'good: 2 hubs with 1500 events'
expect 0 "$WEIR" inspect backup
said 'no damage'
stop
expect 0 "$WEIR" restore backup restored
said 'restored 2 hubs with 1500 events'
expect 0 "$WEIR" tail homes --data restored --from earliest --until-end
seq 1500 | cmp -s - <(sort -n out) || fail 'the restored folder has other events'
start --data restored $free # goes on where the backup ends
expect 0 "$WEIR" send homes --data restored
stop

# ---- what is refused ----
expect 3 "$WEIR" backup nowhere b
expect 1 "$WEIR" backup out b
expect 2 "$WEIR" backup data nowhere/b
said 'the folder around it is missing' err
expect 2 "$WEIR" restore backup nowhere/r
said 'the folder around it is missing' err
expect 2 "$WEIR" backup backup b
said 'this is a backup' err
silent 'choose' err
expect 2 "$WEIR" backup data data/backup
expect 2 "$WEIR" backup data
[ ! -e data/backup ] && [ ! -e b ] || fail 'something was made'
mkdir full && echo x >full/letter
expect 2 "$WEIR" backup data full
said 'not empty and not a backup' err
expect 2 "$WEIR" backup data restored
said 'is a data folder, not a backup' err
expect 1 "$WEIR" restore backup restored
said 'not empty' err
expect 3 "$WEIR" restore data r
said 'not a backup' err
expect 2 "$WEIR" tail homes --data backup --from earliest --until-end
said 'weir restore' err
expect 0 "$WEIR" backup data backup --json
said '"bytes_copied":0,.*"damaged":0,"left_out":0'

# ---- a flipped bit is found ----
cp -r backup rotten
segment=$(ls -S rotten/hub-*1/*.seg | head -1)
printf '\377' | dd of="$segment" bs=1 seek=9000 conv=notrunc 2>/dev/null
expect 1 "$WEIR" backup --check rotten
said 'is not what was backed up' err
expect 1 "$WEIR" restore rotten r
[ ! -e r ] || fail 'a restore that failed left something'
rm "$segment" # what the message says
expect 0 "$WEIR" backup data rotten
expect 0 "$WEIR" backup --check rotten

# ---- damage of the folder is in the backup, and every command says so ----
cp -r restored hurt
printf '\377' | dd of="$(ls -S hurt/hub-*1/*.seg | head -1)" bs=1 seek=9000 conv=notrunc 2>/dev/null
expect 1 "$WEIR" backup hurt hurt-backup
said '^1 damaged place in the backup'
expect 1 "$WEIR" backup --check hurt-backup
said '^as it was made: '
silent 'good'
expect 1 "$WEIR" restore hurt-backup hurt-restored
said "'weir inspect hurt-restored' shows what is lost"

# ---- a catalogue that may be an old one does not make the backup forget hubs ----
"$WEIR" hub create first --data lapse >/dev/null
cp lapse/catalog.1 stale
"$WEIR" hub create second --data lapse >/dev/null
seq 20 | "$WEIR" send second --data lapse >/dev/null
expect 0 "$WEIR" backup lapse lapse-backup
cp stale lapse/catalog.1
printf x | dd of=lapse/catalog.0 bs=1 seek=50 conv=notrunc 2>/dev/null
expect 1 "$WEIR" backup lapse lapse-backup
said 'a copy of the catalogue in lapse is bad' err
expect 0 "$WEIR" hub list --data lapse # takes the old one for good: the second is an orphan now
said '(orphan)'
expect 2 "$WEIR" backup lapse lapse-backup
said 'is an orphan in lapse and a hub of the backup' err
expect 0 "$WEIR" backup --check lapse-backup
said 'good: 2 hubs with 20 events'
expect 1 "$WEIR" backup lapse other-backup
said '^1 hub is left out'
expect 0 "$WEIR" hub adopt hub-0000000000000002 second --data lapse
expect 0 "$WEIR" backup lapse lapse-backup
said '^backed up 2 hubs with 20 events'

# ---- a catalogue that is gone can be taken from the backup ----
rm lapse/catalog.*
for words in 'hub list --data' 'hub create third --data' 'inspect' 'serve --data'; do
    expect 1 "$WEIR" $words lapse
    said 'no good catalogue: lapse/catalog.0: ' err
done
expect 1 "$WEIR" backup lapse lapse-backup
said 'there are hubs, but' err
cp lapse-backup/catalog.? lapse/
expect 0 "$WEIR" tail second --until-end --data lapse
[ "$(wc -l <out)" = 20 ] || fail "$(wc -l <out) events of 20"

# ---- a folder of the first format ----
cp -r "$golden" old && cp -r "$golden" old-used
hub=$("$WEIR" hub list --data old-used | sed -n '2s/ .*//p;1s/ .*//p' | tail -1)
expect 0 "$WEIR" backup old old-backup
expect 0 "$WEIR" restore old-backup old-restored
"$WEIR" tail "$hub" --data old-used --from earliest --until-end --json >want
"$WEIR" tail "$hub" --data old-restored --from earliest --until-end --json >got
[ -s want ] && cmp -s want got || fail 'a folder of format 1 is not the same after a restore'

# ---- many hubs ----
for i in $(seq "$HUBS"); do echo "--hub many$i:2"; done >hubs
start --data many $(cat hubs) $free
for i in 1 "$HUBS"; do seq 10 | "$WEIR" send "many$i" --data many >/dev/null 2>&1; done
expect 0 "$WEIR" backup many many-backup --json
said "\"hubs\":$HUBS,\"events\":20,"
cat out
expect 0 "$WEIR" backup many many-backup --json
said '"segments_copied":0,'
cat out
stop

# ---- under load ----
pad=$(printf '%0300d' 0)
# sender I: bursts of numbered lines into partition I; acked.I is the last that was acknowledged.
sender() {
    local n=0
    echo 0 >"acked.$1"
    while [ ! -e enough ]; do
        if seq -f "$1 %.0f $pad" $((n + 1)) $((n + BURST)) |
            "$WEIR" send load --data live --partition "$1" >/dev/null 2>&1; then
            n=$((n + BURST))
            echo "$n" >"acked.$1.new" && mv "acked.$1.new" "acked.$1"
        else
            echo "$n" >"lost.$1" # what was in flight may be there or not: this sender is done
            return
        fi
    done
}
acked() { for i in $(seq 0 $((SENDERS - 1))); do cat "acked.$i"; done; }

# compare BACKUP BEFORE: what it restores to, against what was acknowledged before it began. Line N
# of a sender has sequence number N - 1 of its partition, so the partition tells how far it came,
# also when all its lines have expired.
compare() {
    local i=0 first next least
    rm -rf r && expect 0 "$WEIR" restore "$1" r
    "$WEIR" hub show load --data r >shown
    "$WEIR" tail load --data r --from earliest --until-end >all
    for least in $2; do
        read -r first next < <(awk -v p="$i" '$1 == p && NF >= 6 { print $3, $4 }' shown)
        [ "$next" -ge "$least" ] || fail "sender $i: $least acknowledged, $next restored"
        sed -n "s/^$i \([0-9]*\) $pad\$/\1/p" all >got
        seq $((first + 1)) "$next" | cmp -s - got || fail "sender $i: lines missing, twice or moved"
        i=$((i + 1))
    done
}

"$WEIR" hub create load --partitions $SENDERS --retention-bytes 1M --data live >/dev/null
start --data live $free
rm -f enough
for i in $(seq 0 $((SENDERS - 1))); do sender "$i" & senders="${senders:-} $!"; done
until [ "$(acked | sort -n | head -1)" -ge $((2 * BURST)) ]; do sleep 0.05; done
for round in $(seq "$ROUNDS"); do
    before=$(acked)
    expect 0 "$WEIR" backup live live-backup
    compare live-backup "$before"
done

# kill -9 of backups: the one before, or the one that was killed, is there and whole
for kill in $(seq "$KILLS"); do
    "$WEIR" backup live live-backup >/dev/null 2>&1 &
    backup=$!
    sleep "0.0$((RANDOM % 60 + 1))"
    kill -9 "$backup" 2>/dev/null || true
    wait "$backup" 2>/dev/null || true
    expect 0 "$WEIR" backup --check live-backup
    compare live-backup "$before"
done

# kill -9 of a first one: it is one or it is none, and the next one is
for kill in $(seq 3); do
    rm -rf first
    "$WEIR" backup live first >/dev/null 2>&1 &
    backup=$!
    sleep "0.0$((RANDOM % 30 + 1))"
    kill -9 "$backup" 2>/dev/null || true
    wait "$backup" 2>/dev/null || true
    before=$(acked)
    expect 0 "$WEIR" backup live first
    compare first "$before"
done

# kill -9 of the server during a backup
before=$(acked)
"$WEIR" backup live live-backup >backup.out 2>&1 &
backup=$!
kill -9 "$server"
wait "$server" 2>/dev/null || true
wait "$backup" || fail "the backup fell with the server: $(cat backup.out)"
compare live-backup "$before"
grep -q '^ *0 *[0-9]* *[1-9]' shown || fail 'nothing expired: the load was too small to show anything'
touch enough
wait $senders 2>/dev/null || true
before=$(acked)
expect 0 "$WEIR" backup live live-backup # of a folder that nobody closed
compare live-backup "$before"
echo "$ROUNDS backups under load, $((KILLS + 3)) killed, $(cat acked.0) lines of a sender: all compared"
