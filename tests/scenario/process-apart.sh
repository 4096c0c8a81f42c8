#!/bin/bash
# Three groups of copies in one store: two hubs with a group of the same name and copies of the same
# names, and a second group on one of the hubs. Nobody sees another's members, partitions or marks, and
# what happens in one group moves nothing in the others. On SQLite, and on PostgreSQL where it is.
# about 6 s
set -eu
show=$(cd "$(dirname "$0")/../show/fleet" && pwd)
. "$(dirname "$0")/serving.bash"

# await WORDS...: until a condition holds; a minute, for a loaded machine.
await() {
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    fail "in vain, with $kind: $*"
}
# Copies: a letter for their group, and a number. s: homes/storage, r: homes/routing, c: cars/storage.
run() { # COPY HUB GROUP
    "$WEIR" process "$2" --group "$3" --store "$store" --name "copy-${1#?}" --json >"$kind.$1" 2>"err.$1" &
    eval "pid_$1=$!"
}
lines() { cat "$kind.$2"? | grep "\"type\":\"$1\"" || true; } # TYPE GROUP
count() { [ "$(lines "$1" "$2" | wc -l)" = "$3" ]; }           # TYPE GROUP WANTED
of_copy() { grep -c "\"type\":\"$1\"" "$kind.$2" || true; }              # TYPE COPY
has() { [ $(($(of_copy open "$1") - $(of_copy close "$1"))) = "$2" ]; }    # COPY PARTITIONS
moves() { echo "$(lines open "$1" | wc -l) $(lines close "$1" | wc -l)"; } # GROUP
once() { [ "$(lines event "$1" | sed 's/.*"partition":"\([0-9]*\)".*"sequence":\([0-9]*\).*/\1 \2/' |
    sort -u | wc -l)" = "$(lines event "$1" | wc -l)" ]; }
members() { # HUB/GROUP WANTED
    expect 0 "$WEIR" group describe "$1" --store "$store"
    [ "$(grep -c '^member' out)" = "$2" ] || fail "$kind: $1 has not $2 members"
}
marks() { # HUB/GROUP: how many events they say are done
    "$WEIR" checkpoint list "$1" --store "$store" --json |
        sed 's/.*"sequence":\([0-9]*\).*/\1/' | awk '{ n += $1 + 1 } END { print n + 0 }'
}
marked() { [ "$(marks "$1")" = "$2" ]; }

live_apart() {
    start --json --data "d-$kind" --amqp 127.0.0.1:0 --amqps off --http off \
        --hub homes:4:storage,routing --hub cars:4:storage
    export WEIR_CONNECT=$(field connection_string)
    run s1 homes storage
    run s2 homes storage
    run c1 cars storage
    run c2 cars storage
    run r1 homes routing
    for copy in s1 s2 c1 c2; do await has $copy 2; done
    await has r1 4
    seq 1 400 | "$WEIR" send homes >out
    seq 1 300 | "$WEIR" send cars >out
    await count event s 400
    await count event r 400
    await count event c 300
    await marked homes/storage 400
    await marked homes/routing 400
    await marked cars/storage 300
    members homes/storage 2
    members homes/routing 1
    members cars/storage 2

    # One leaves and one group begins anew: only they notice.
    before="$(moves c), $(moves r)"
    kill -TERM "$pid_s1"
    expect 0 "$WEIR" checkpoint delete homes/routing --store "$store" --all
    await has s2 4
    await count event r 800
    [ "$(moves c), $(moves r)" = "$before" ] || fail "$kind: others moved: $before, then $(moves c), $(moves r)"
    count event s 400 && count event c 300 || fail "$kind: others were given events again"
    once s && once c || fail "$kind: an event was given twice"
    await marked homes/routing 400
    marked homes/storage 400 && marked cars/storage 300 || fail "$kind: others' marks changed"
    for i in s2 c1 c2 r1; do eval "kill -TERM \$pid_$i"; done
    for i in s1 s2 c1 c2 r1; do eval "wait \$pid_$i" || fail "$kind: exit code $? of $i"; done
    stop
}

kind=sqlite store=sqlite:$TMPDIR/store.db
live_apart

# ---- PostgreSQL, of our own and gone with us ----
exec 3< <(PYTHONPATH=$show exec /usr/bin/python3 -B - 2>/dev/null <<'PY'
import signal
import sys
from postgres import Missing, Postgres
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
try:
    with Postgres("127.0.0.1") as server:
        print(server.url, flush=True)
        signal.pause()
except Missing as why:
    print(why)
PY
)
database=$!
trap 'kill -9 $(jobs -p) 2>/dev/null || true; kill -TERM $database 2>/dev/null || true' EXIT
read -r store <&3 || store="nothing said"
case $store in
postgres:*) ;;
*) echo "on SQLite only: $store" && exit 0 ;;
esac
kind=postgres
live_apart
