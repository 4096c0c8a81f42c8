#!/bin/bash
# The speed of the wire, in interleaved rounds with other systems on this machine: a private server
# on a real disk, our load client, and the peers' own. Prints a line for each goal and exits 1 when
# one is missed, unless WEIR_FIGURES_REPORT is set.
#
#   WEIR_PEERS    the script that runs the peers (../shared/bench/peers beside the project); its
#                 result lines are of the form that `weir bench wire` prints too
#   WEIR_ROUNDS   rounds of each comparison (3)
#   WEIR_FIGURES  a folder for the single rows; what it holds already is judged and not run again
#
# One connection on each side of every comparison. Ours is durable before it is acknowledged, into
# segments that are written over again. Receiving is judged by this library; what a client gets that
# wants one event to a transfer is among the rows.
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/server src/cli bench
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
peers=${WEIR_PEERS:-$root/../shared/bench/peers}
rounds=${WEIR_ROUNDS:-3}

# ---- our part of a round: called by peers, once for each size ----

wire() { "$WEIR" bench wire "$@" --connect "$AMQP" --server-pid "$SERVER"; }

ours() {
    local batch=100 events
    case $SIZE in
    100) events=6000000 ;;
    1024) events=1000000 ;;
    16384) events=50000 batch=16 ;;
    esac
    case $1 in
    publish)
        wire publish --hub figures --size "$SIZE" --batch "$batch" --events "$events"
        [ "$SIZE" = 100 ] || return 0
        wire publish --hub figures --size 100 --partitions 256 --events "$events" |
            sed 's/,pub-/,pub-256-/'
        wire publish --hub figures --size 100 --batch 1 --events 1000000
        ;;
    consume)
        [ "$SIZE" != 1024 ] || return 0
        echo x >>"$WORK/consumed"
        local hub=consume-$(wc -l <"$WORK/consumed")
        [ "$SIZE" = 16384 ] || events=3000000
        wire publish --hub "$hub" --size "$SIZE" --batch "$batch" --events "$events" >/dev/null
        wire receive --hub "$hub" --size "$SIZE" --events "$events" | sed 's/,consume,/,cold,/'
        wire receive --hub "$hub" --size "$SIZE" --events "$events"
        "$WEIR" bench receive "$hub" --connect "$STRING" --json | sed "s/^/OWN,$SIZE,/"
        [ "$SIZE" = 100 ] || "$WEIR" bench wire loopback
        ;;
    latency)
        "$WEIR" bench wire flush --data "$WORK"
        "$WEIR" bench wire trip
        wire sync --hub figures
        wire e2e --hub figures
        ;;
    esac
}
if [ "${1:-}" = ours ]; then
    ours "$2"
    exit
fi

# ---- the rounds ----

[ -x "$peers" ] || { echo "there is no $peers to compare with; WEIR_PEERS names another" && exit 77; }
WORK=$(mktemp -d /var/tmp/wire-figures.XXXXXX)
rows=${WEIR_FIGURES:-$WORK/rows}
mkdir -p "$rows"
SERVER=
finish() {
    [ -z "$SERVER" ] || { kill "$SERVER" && wait "$SERVER"; } 2>/dev/null
    rm -rf "$WORK"
}
trap finish EXIT
trap 'exit 130' INT TERM
fail() {
    echo "40-wire-figures.sh: $*"
    cat "$WORK"/*err 2>/dev/null
    exit 1
}

start() {
    "$WEIR" hub create figures --partitions 256 --retention-bytes 2G --data "$WORK/data" &&
        for i in $(seq $((2 * rounds))); do
            "$WEIR" hub create "consume-$i" --partitions 1 --data "$WORK/data" || return
        done
    "$WEIR" serve --data "$WORK/data" --amqp 127.0.0.1:0 --http 127.0.0.1:0 --json \
        >"$WORK/ready" 2>"$WORK/err" &
    SERVER=$!
    for _ in $(seq 200); do
        [ -s "$WORK/ready" ] && break
        kill -0 "$SERVER" 2>/dev/null || return
        sleep 0.05
    done
    AMQP=$(sed 's/.*"amqp":"\([^"]*\)".*/\1/' "$WORK/ready")
    STRING=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' "$WORK/ready")
    export WEIR WORK SERVER AMQP STRING
}

# compare WHAT SYSTEMS: rounds of one of the peers' comparisons, with us in each.
compare() {
    echo "-- $1, $rounds rounds beside $2" >&2
    SYSTEMS=$2 WITH="'$0' ours $1" "$peers" "$1" "$rounds" >"$rows/$1.part" 2>"$WORK/peers.err" ||
        fail "$peers $1 failed"
    grep -q '^ROW,weir,' "$rows/$1.part" || fail "no rows of ours in $1"
    mv "$rows/$1.part" "$rows/$1"
}

measure() {
    start >"$WORK/out" 2>&1 || { cat "$WORK/out" && fail "weir serve does not start"; }
    # Once over the whole hub, so that its segments are written over from here on.
    for events in 200000 3000000; do
        wire publish --hub figures --size 1024 --events "$events" | sed "s/,pub-/,fill-$events-/" ||
            fail "cannot publish"
    done >"$rows/fill"
    compare publish "rabbit-stream redis-always"
    echo "PEAK $(sed -n 's/^VmHWM:[ \t]*\([0-9]*\).*/\1/p' "/proc/$SERVER/status")" >>"$rows/publish"
    compare consume rabbit-stream
    compare latency "nats redis-always"
    : >"$rows/complete"
}
[ -e "$rows/complete" ] || measure

# ---- the goals ----

# A line: a name; what is measured of us; of the peer, or "-"; the goal. What is measured is
# KIND:SYSTEM:MODE:SIZE; MODE is a beginning; KIND is rate (ev/s), bytes (MB/s), cpu (ns of the
# server per event), rss (KiB), p50 or p99 (us). Medians of all rows of that kind; a+b is a sum.
cat "$rows"/{fill,publish,consume,latency} | awk -v report="${WEIR_FIGURES_REPORT:-}" '
function median(key,    n, i, j, t, v) {
    n = count[key]
    if (!n) return -1
    for (i = 1; i <= n; i++) v[i] = value[key, i]
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function keep(key, v) { value[key, ++count[key]] = v }
# Medians by the beginning of the mode.
function measured(what,    part, terms, n, i, key, k, found, sum, m) {
    n = split(what, terms, "+")
    for (i = 1; i <= n; i++) {
        split(terms[i], part, ":")
        found = ""
        for (key in count) {
            split(key, k, ":")
            if (k[1] == part[1] && k[2] == part[2] && k[4] == part[4] && index(k[3], part[3]) == 1)
                found = key
        }
        m = median(found)
        if (m < 0) return -1
        sum += m
    }
    return sum
}
function show(v, what) {
    if (what == "-") return "-"
    if (what ~ /^rate/) return v >= 1e6 ? sprintf("%.2f Mev/s", v / 1e6) : sprintf("%.0f kev/s", v / 1e3)
    if (what ~ /^bytes/) return sprintf("%.0f MB/s", v)
    if (what ~ /^cpu/) return sprintf("%.0f ns", v)
    if (what ~ /^rss/) return sprintf("%.1f MB", v * 1024 / 1e6)
    return sprintf("%.0f us", v)
}
# judge(name, ours, peer, op, goal): ratio to the peer, or ours itself when there is none.
function judge(name, ours, peer, op, goal,    a, b, ratio, ok) {
    a = measured(ours)
    b = peer == "-" ? 1 : measured(peer)
    if (a < 0 || b <= 0) { ok = "missing"; ratio = 0 }
    else {
        ratio = a / b
        ok = (op == ">=" ? ratio >= goal : ratio <= goal) ? "ok" : "short"
    }
    if (ok != "ok") missed++
    printf "%-52s %12s %12s %8s   %s %-7s %s\n", name, a < 0 ? "?" : show(a, ours), b <= 0 ? "?" : show(b, peer),
        peer == "-" ? "" : sprintf("%.2f", ratio), op, peer == "-" ? show(goal, ours) : goal, ok
}
/^ROW,/ {
    split($0, f, ",")
    key = f[2] ":" f[3] ":" f[4]
    keep("rate:" key, f[7]); keep("bytes:" key, f[8]); keep("cpu:" key, f[9] + f[10])
    keep("rss:" key, f[13])
    if (f[2] == "weir") keep("other:weir:all:0", f[14])
}
/^OWN,/ {
    split($0, f, ",")
    rate = $0; sub(/.*"events_per_s":/, "", rate)
    keep("rate:own:consume:" f[2], rate + 0); keep("bytes:own:consume:" f[2], (rate + 0) * f[2] / 1e6)
}
/^LAT / {
    split($0, f, " ")
    size = 0
    for (i = 4; i in f; i++) if (f[i] ~ /^sz=/) size = substr(f[i], 4)
    for (i = 4; i in f; i++)
        if (f[i] ~ /^p(50|99)=/) { split(f[i], p, "="); keep(p[1] ":" f[2] ":" f[3] ":" size, p[2] + 0) }
}
/^PEAK/ { keep("rss:weir:peak:0", $2) }
END {
    printf "%-52s %12s %12s %8s   %-10s\n", "", "ours", "peer", "ratio", "goal"
    judge("publish 100 B x 100, RabbitMQ stream", "rate:weir:pub-b100:100", "rate:rabbit-stream:pub:100", ">=", 5)
    judge("publish 100 B x 100, Redis always", "rate:weir:pub-b100:100", "rate:redis-always:xadd:100", ">=", 15)
    judge("publish 1 KiB x 100, RabbitMQ stream", "rate:weir:pub-b100:1024", "rate:rabbit-stream:pub:1024", ">=", 4)
    judge("publish 16 KiB x 16, RabbitMQ stream", "rate:weir:pub-b16:16384", "rate:rabbit-stream:pub:16384", ">=", 1)
    judge("server CPU of an event of 100 B, RabbitMQ stream", "cpu:weir:pub-b100:100", "cpu:rabbit-stream:pub:100", "<=", 0.1)
    judge("server CPU of a transfer of one event of 100 B", "cpu:weir:pub-b1-:100", "-", "<=", 400)
    judge("receive 100 B, RabbitMQ stream", "rate:own:consume:100", "rate:rabbit-stream:consume:100", ">=", 1.3)
    judge("receive 16 KiB, one stream of loopback", "bytes:own:consume:16384", "bytes:loopback:stream:262144", ">=", 0.7)
    judge("synchronous publish 1 KiB p50, flush + round trip", "p50:weir:pub-sync:1024", "p50:disk:flush:4096+p50:loopback:trip:64", "<=", 1.2)
    judge("synchronous publish 1 KiB p50, NATS not durable", "p50:weir:pub-sync:1024", "p50:nats:sync-publish:0", "<=", 1)
    judge("publish to receive 256 B at 10,000/s p50, Redis always", "p50:weir:e2e:256", "p50:redis-always:e2e:256", "<=", 1)
    judge("publish to receive 256 B at 10,000/s p99, Redis always", "p99:weir:e2e:256", "p99:redis-always:e2e:256", "<=", 2)
    judge("server memory while publishing, at most", "rss:weir:peak:0", "-", "<=", 62500)
    judge("server memory with 2 GB of events, with 0.2 GB", "rss:weir:fill-3000000:1024", "rss:weir:fill-200000:1024", "<=", 1.1)
    judge("publish to 256 partitions, one partition", "rate:weir:pub-256:100", "rate:weir:pub-b100:100", ">=", 0.9)
    printf "\nMedians of %d rounds. Others used %.0f %% of the cores in the median run of ours.\n", count["rate:weir:consume:100"], median("other:weir:all:0")
    if (missed) printf "%d short or missing\n", missed
    exit missed && report == "" ? 1 : 0
}'
