#!/bin/bash
# 28-moments - a server under load runs out of file descriptors, of memory and of threads, for
# SECONDS_EACH (5) seconds each, while segments roll and expire and hubs are made and first used.
# Threads run out once before the first hub is there, when the logs have none yet. Calls may fail
# meanwhile, and a hub that was refused is not made. Behind each moment every hub takes the first publish
# of a new client within a second, and those who publish and receive go on by themselves; in the end every
# acknowledged event is there, in order, none twice, none of a batch that was refused, and no damage.
# depends: src tests/show/scale/moments.c
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
SECONDS_EACH=${SECONDS_EACH:-5} HUBS="h0 h1 h2" UID_ALONE=54321
MOMENTS=${MOMENTS:-"descriptors no-descriptor memory threads"}
cd "$TMPDIR"
server=
trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT
fail() { echo "28-moments: $*"; tail -n 20 err; exit 1; }

cc -std=c11 -O1 -g -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -I"$here/../../include" \
    "$here/scale/moments.c" -o moments "$BUILD/libweir.so" "-Wl,-rpath,$BUILD" -lpthread

# Root may have as many threads as it likes: the server is somebody who is nobody else.
as=() made=0 fresh= not_made=
mkdir data
cp "$WEIR" server && chmod 755 server
if [ "$(id -u)" = 0 ]; then
    chmod 711 . && chown $UID_ALONE data
    as=(setpriv --reuid $UID_ALONE --regid $UID_ALONE --clear-groups)
fi

# start: a server, ready when this returns.
start() {
    : >out
    "${as[@]}" ./server serve --json --data data --amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0 \
        >out 2>>err &
    server=$!
    for _ in $(seq 1200); do
        ! grep -qs '}$' out || break
        kill -0 $server 2>/dev/null || fail "not ready"
        sleep 0.05
    done
    connection=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' out)
    admin=http://$(sed 's/.*"http":"\([^"]*\)".*/\1/' out)
}
create() {
    timeout 5 "$WEIR" hub create "$1" --connect "$connection" --admin "$admin" --partitions 3 \
        --retention-bytes 16M
}
status() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$server/status"; }
# limit NAME VALUE: soft, so that it can be raised again.
limit() { "${as[@]}" prlimit --pid $server "--$1=$2:"; }
soft() { "${as[@]}" prlimit --pid $server "--$1" --output SOFT --noheadings; }

# What is left of each thing. `descriptors`: those below the number that are in use.
take_descriptors() { limit nofile "$(ls "/proc/$server/fd" | wc -l)"; }
take_no-descriptor() { limit nofile 3; }
take_memory() {
    limit as $(($(status VmSize) * 1024))
    limit data $(($(status VmData) * 1024))
}
take_threads() { limit nproc 1; }
give_back() { limit nofile "$nofile" && limit as unlimited && limit data unlimited && limit nproc "$nproc"; }

# strangers SECONDS: new clients make hubs and publish to them until the time is over.
strangers() {
    local until=$((SECONDS + $1)) served=0 refused=0
    fresh= not_made=
    while [ $SECONDS -lt $until ]; do
        made=$((made + 1))
        fresh+=" n$made"
        if create n$made >/dev/null 2>strange; then served=$((served + 1)); else refused=$((refused + 1)); fi
        ! grep -q throttled strange || not_made+=" n$made" # no answer: it may be there
        if publish n$made 2>strange; then served=$((served + 1)); else refused=$((refused + 1)); fi
    done
    echo "ROW moments during=$moment strangers_served=$served strangers_refused=$refused"
    [ $refused -gt 0 ] || [ "$moment" = threads ] || fail "$moment: nothing ran out"
}
publish() {
    head -c 900000 /dev/zero | tr '\0' x |
        timeout 5 "$WEIR" send "$1" --connect "$connection" --partition 0 --timeout 1s >/dev/null
}
# make_all: the hubs of the strangers that are not there.
make_all() {
    local hub
    for hub in $fresh; do
        create "$hub" >/dev/null 2>strange && continue
        grep -q exists strange || { cat strange; rc=1; }
        [[ " $not_made " != *" $hub "* ]] || { echo "MISSED: $hub was refused and made"; rc=1; }
    done
}
ask() { # ask LINE: until its ROW
    local line
    echo "$1" >&"${load[1]}"
    while read -r -t 60 line <&"${load[0]}"; do
        echo "$line"
        [[ $line != *MISSED* ]] || rc=1
        [[ $line != ROW* ]] || return 0
    done
    fail "no answer to: $1"
}

rc=0
start
nofile=$(soft nofile) nproc=$(soft nproc)
moment=first-threads
take_threads
strangers "$SECONDS_EACH"
give_back
make_all
for hub in $HUBS; do create $hub >/dev/null; done
coproc load { exec ./moments "$connection" $HUBS; }
ask "first $fresh $HUBS"
ask resume
ask "mark before"
for moment in $MOMENTS; do
    "take_$moment"
    strangers "$SECONDS_EACH"
    kill -0 $server 2>/dev/null || fail "$moment: the server is gone"
    give_back
    make_all
    ask "first $HUBS $fresh"
    ask "mark $moment"
    ask resume
    ask "mark after-$moment"
done
ask end
kill $server
wait $server || fail "the server ended with $?"
"$WEIR" inspect data >inspected || { cat inspected; fail "inspect"; }
tail -n 1 inspected
grep -q 'no damage' inspected || rc=1
exit $rc
