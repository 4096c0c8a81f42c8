#!/bin/bash
# A folder of the tree before opens with this weir: every event is there as it was, an idempotent
# producer's last batch is known, publishing works, and inspect finds no damage before and after. It
# may be killed at any call of its first opening. The other way round is refused with the version
# named, hub by hub and then as a whole; a folder that was only looked at is as good as before.
# WEIR_OLD_TREE names a built tree of that commit, to save the building.
# depends: src tests/show/upgrade
set -eu

BEFORE=b9d27af KILLS=${KILLS:-20}
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/tests/show/upgrade
cd "$TMPDIR"
: >out
: >err
hubs='one four p165 p1024 days recycled killed empty'

fail() { echo "29-upgrade: $*"; tail -n 20 out err; exit 1; }
expect() { # expect CODE COMMAND...
    local want=$1 code=0
    shift
    "$@" >out 2>err </dev/null || code=$?
    [ "$code" = "$want" ] || fail "exit code $code instead of $want from: $*"
}
said() { grep -q -- "$1" "${2:-out}" || fail "did not say '$1'"; }
copy() { rm -rf "$2" && cp -a --sparse=always "$1" "$2"; }
# Everything in the folder's files; the lock file has the pid of the last that had it.
sum() { (cd "$1" && find . -type f ! -name lock -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
# events WEIR DIR HUB: one line each, in the order of partition and sequence number.
events() { "$1" tail "$3" --data "$2" --from earliest --until-end --json 2>err | sort; }
# partitions WEIR DIR HUB: where each begins and ends.
partitions() { "$1" hub show "$3" --data "$2" 2>err | sed -n '/^ *[0-9]/p'; }

# ---- the tree before ----
tree=${WEIR_OLD_TREE:-}
if [ -z "$tree" ]; then
    git -C "$root" cat-file -e $BEFORE^{commit} 2>/dev/null ||
        { echo "commit $BEFORE is not in this clone's history"; exit 77; }
    tree=$TMPDIR/tree
    mkdir "$tree"
    git -C "$root" archive $BEFORE | tar x -C "$tree"
    { cmake -S "$tree" -B "$tree/build" && cmake --build "$tree/build" -j"$(nproc)" --target weir; } \
        >build.log 2>&1 || { tail -n 20 build.log; exit 1; }
fi
OLD=$tree/build/weir
compile() { # compile OUT SOURCE TREE BUILD
    local rooms=() room
    for room in client tunnel hub http io amqp log base; do rooms+=("$4/src/$room/libweir_$room.a"); done
    cc -std=c11 -O2 -g -D_GNU_SOURCE -I"$3/src" -I"$3/include" -o "$1" "$tools/$2" "${rooms[@]}" \
        -luv -lwslay -lssl -lcrypto -lpthread
}
compile fill fill.c "$tree" "$tree/build"
compile repeat-old repeat.c "$tree" "$tree/build"
compile repeat repeat.c "$root" "$BUILD"
cc -std=c11 -O2 -fPIC -shared -o stop_at.so "$tools/stop_at.c" -ldl

# ---- a rich folder, made by the weir before ----
make() { "$OLD" hub create --data data "$@" >/dev/null; }
make one --partitions 1 --groups a,b
make four --partitions 4 --groups readers --retention-age 30d
make p165 --partitions 165
make p1024 --partitions 1024 --groups x
make days --partitions 4 --retention-age 1d
make recycled --partitions 4 --retention-bytes 3M
make killed --partitions 4
make empty --partitions 7
make gone --partitions 2
"$OLD" key add four --data data >out 2>err || fail "key add"
"$OLD" hub delete --data data gone >/dev/null
./fill data events one
./fill data events p165
./fill data events p1024
seq 3000 | "$OLD" send four --data data --property 'colour=blue' >/dev/null
for i in 1 2 3 4 5; do seq 100 | "$OLD" send four --data data --key "home-$i" >/dev/null; done
seq 1200 | "$OLD" send p165 --data data >/dev/null
for i in 0 163 164; do seq 50 | "$OLD" send p165 --data data --partition $i >/dev/null; done
for i in $(seq 0 100 1023) 1023; do seq 3 | "$OLD" send p1024 --data data --partition "$i" >/dev/null; done
./fill data producers four >four.producers
./fill data producers p165 >p165.producers
./fill data days days >days.producers
./fill data recycle recycled
yes "$(printf '%0400d' 7)" | head -n 20000 | "$OLD" send one --data data >/dev/null # rolls by size
# feed I: lines without end; the file fed is there when thousands of them have been read.
feed() {
    local n pad
    pad=$(printf '%0300d' 0)
    for ((n = 1; ; n++)); do
        echo "$1 $n $pad" || return 0
        ((n != 4000)) || : >fed
    done 2>/dev/null
}
for i in 1 2 3; do # the last one is not opened again by the weir before
    rm -f fed
    "$OLD" send killed --data data < <(feed $i) >/dev/null 2>&1 &
    until [ -e fed ]; do kill -0 $! || fail "the sender ended by itself"; sleep 0.01; done
    sleep "0.0$((RANDOM % 90 + 10))"
    kill -9 $!
    wait $! 2>/dev/null || true
done
name=$(basename "$(ls data/hub-0000000000000006/*.seg | tail -n 1)" .seg)
number=$(od -An -tu8 -j24 -N8 "data/hub-0000000000000006/$name.seg" | tr -d ' ')
[ "$((10#$name))" != "$number" ] || fail "no segment of 'recycled' was used again"

copy data sparse # what was only reserved costs time at every copy
rm -rf data
mv sparse data

# What it has, as the weir before sees it: from copies, for an opening changes things.
copy data seen
for hub in $hubs; do
    events "$OLD" seen $hub >$hub.events
    partitions "$OLD" seen $hub >$hub.partitions
    [ -s $hub.partitions ] || fail "nothing of $hub"
done
for hub in four p165 days; do ./repeat-old seen $hub <$hub.producers >/dev/null; done
total=$(cat ./*.events | wc -l)
for hub in days recycled; do
    grep -q '"sequence":0,' $hub.events && fail "nothing of $hub has expired"
    [ "$(ls data/hub-000000000000000$([ $hub = days ] && echo 5 || echo 6)/*.seg | wc -l)" -gt 2 ] ||
        fail "too few segments in $hub"
done

# check DIR: everything is there, as it was.
check() {
    local hub
    for hub in $hubs; do
        events "$WEIR" "$1" $hub >now
        cmp -s $hub.events now || { diff $hub.events now | head -n 6; fail "$1: $hub is not the same"; }
    done
}
inspect() { expect 0 "$WEIR" inspect "$1" && said 'no damage'; }

# ---- looked at only: as good as before ----
before=$(sum data)
inspect data
expect 0 "$WEIR" hub list --data data
expect 0 "$WEIR" backup data backup
[ "$(sum data)" = "$before" ] || fail "inspect, hub list or backup changed something"
copy data seen
for hub in $hubs; do
    events "$OLD" seen $hub >now
    cmp -s $hub.events now || fail "$hub is not the same for the weir before, once it was looked at"
done

# ---- opened ----
copy data new
check new
inspect new
for hub in $hubs; do
    partitions "$WEIR" new $hub >now
    awk '{ print $1, $2, $3, $4 }' now >now.short
    awk '{ print $1, $2, $3, $4 }' $hub.partitions | cmp -s - now.short ||
        { diff $hub.partitions now | head -n 6; fail "hub show $hub"; }
done
expect 0 "$WEIR" hub show four --data new
said '^groups .*readers'
said '^retention  *30d'
expect 0 "$OLD" key list --data data four
cp out keys
expect 0 "$WEIR" key list --data new four
cmp -s keys out || fail "the keys are not the same"
for hub in four p165 days; do
    n=$(./repeat new $hub <$hub.producers) || fail "a last batch of $hub is not known"
    echo "ROW upgrade hub=$hub producers=$n known=$n ok"
done
check new # nothing of the repeats was stored
for again in 1 2; do
    for hub in $hubs; do echo "more $again" | "$WEIR" send $hub --data new >/dev/null 2>err || fail "send $hub"; done
done
inspect new
for hub in $hubs; do
    events "$WEIR" new $hub >now
    [ "$(grep -c '"body":"more [12]"' now)" = 2 ] || fail "$hub: what was sent is not there"
    grep -v '"body":"more [12]"' now | cmp -s $hub.events - || fail "$hub: not the same behind a publish"
done
echo "ROW upgrade hubs=$(wc -w <<<"$hubs") events=$total equal=$total ok"

# ---- the weir before on it: refused hub by hub, the catalogue being as it was ----
before=$(sum new)
expect 0 "$OLD" hub list --data new
refused() { # refused COMMAND...
    expect 1 "$@"
    said 'log format version 2 is not known here' err
}
for hub in $hubs; do
    refused "$OLD" tail $hub --data new --until-end
    refused "$OLD" hub show $hub --data new
    refused "$OLD" send $hub --data new
done
expect 1 "$OLD" inspect new
[ "$(grep -c 'log format version 2 is not known here' out)" = "$(wc -w <<<"$hubs")" ] ||
    fail "inspect does not name the version of each hub"
[ "$(sum new)" = "$before" ] || fail "the weir before changed something"
# ---- and as a whole, once the catalogue is new ----
expect 0 "$WEIR" upgrade new
said '^new: the catalogue upgraded to format version 2; 8 hubs were already of it; older releases refuse the folder'
expect 0 "$WEIR" upgrade new
said 'nothing to do'
before=$(sum new)
for command in 'hub list' 'hub create more' 'hub delete four' 'tail four' 'send four'; do
    expect 1 "$OLD" $command --data new
    said 'catalogue version 2' err
done
expect 1 "$OLD" inspect new
said 'catalogue version 2' err
[ "$(sum new)" = "$before" ] || fail "the weir before changed something"
inspect new

# ---- killed at calls of the first opening ----
copy data full
LD_PRELOAD=./stop_at.so STOP_COUNT=calls "$WEIR" upgrade full >out 2>err || fail "upgrade"
said '^full: 8 of 8 hubs and the catalogue upgraded'
check full
calls=$(cat calls) went_on=0 late=0 all=$hubs
for ((i = 0; i < KILLS; i++)); do
    at=$((1 + (RANDOM * 32768 + RANDOM) % calls))
    code=0
    copy data cut
    LD_PRELOAD=./stop_at.so STOP_AT=$at "$WEIR" upgrade cut >out 2>err &
    wait $! 2>/dev/null || code=$?
    if [ $code = 0 ] && ((late < KILLS)); then # upkeep takes more calls at one time than at another
        late=$((late + 1)) i=$((i - 1))
        continue
    fi
    [ $code = 137 ] || fail "not killed at $at of $calls: exit code $code"
    inspect cut
    hub=$(tr ' ' '\n' <<<"$all" | shuf -n 1) more=0
    if ((i % 2)); then # somebody goes back to the weir before: it refuses, or goes on
        if echo back | "$OLD" send $hub --data cut >out 2>err; then
            more=1 went_on=$((went_on + 1))
        else
            grep -q 'version 2' err || fail "killed at $at: the weir before does not name the version"
        fi
    fi
    events "$WEIR" cut $hub >now
    [ "$(grep -c '"body":"back"' now)" = $more ] ||
        fail "killed at $at: $hub: what the weir before published is gone"
    grep -v '"body":"back"' now | cmp -s $hub.events - || fail "killed at $at: $hub is not the same"
    hubs=$(sed "s/\\b$hub\\b//" <<<"$all") check cut
    inspect cut
done
echo "ROW upgrade kills=$KILLS of_calls=$calls old_went_on=$went_on lost=0 ok"
