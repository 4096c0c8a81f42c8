#!/bin/bash
# 10,000 idle connections without TLS: what the server's memory grows to when they are only there,
# when they are opened, and when each has shown a token on its $cbs links. The goal is 64 MB in all.
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/server src/cli bench tests/server/idle.c
set -u
COUNT=10000
GOAL_MB=64
here=$(cd "$(dirname "$0")" && pwd)
server= client= failed=0

finish() {
    [ -z "$client" ] || kill "$client" 2>/dev/null
    [ -z "$server" ] || kill "$server" 2>/dev/null
    wait
}
trap finish EXIT
cd "$TMPDIR" || exit 1

# The server keeps some for itself, and raises the soft limit on its own.
needed=$((COUNT + 600))
hard=$(ulimit -Hn)
if [ "$hard" != unlimited ] && [ "$hard" -lt "$needed" ]; then
    echo "$needed descriptors are needed, $hard are allowed"
    exit 77
fi
cc -std=c11 -O1 -Wall -Wextra -Werror -o idle "$here/../server/idle.c" || exit 1

# The most that it ever was.
peak_kb() { awk '/^VmHWM/ {print $2}' "/proc/$server/status"; }

start() {
    (ulimit -Sn 1024 && exec "$WEIR" serve --data "data-$1" --hub eh1:4 --amqp 127.0.0.1:0 --amqps off --http off --strangers-per-address "$COUNT" --json) >out 2>err &
    server=$!
    for _ in $(seq 200); do [ -s out ] && break; sleep 0.05; done
    port=$(sed 's/.*"amqp":"127.0.0.1:\([0-9]*\)".*/\1/' out)
    [ -n "$port" ] || { cat err; exit 1; }
}

# A token for everything, as a client makes it.
sign() {
    local until=$(($(date +%s) + 3600)) signature
    signature=$(printf 'sb%%3A%%2F%%2Flocalhost%%2Feh1\n%s' "$until" |
        openssl dgst -sha256 -hmac SAS_KEY_VALUE -binary | base64 | sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g')
    echo "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&sig=$signature&se=$until&skn=RootManageSharedAccessKey"
}

# measure MODE WHAT [ARGS...]
measure() {
    local mode=$1 what=$2 before after told
    shift 2
    start "$mode"
    before=$(peak_kb)
    coproc (ulimit -Sn "$needed" && exec ./idle "$port" "$COUNT" "$mode" "$@")
    client=$COPROC_PID
    read -r -t 120 told <&"${COPROC[0]}" && [ "$told" = ready ] || { echo "not ready"; exit 1; }
    after=$(peak_kb)
    eval "exec ${COPROC[1]}>&-"
    read -r -t 60 told <&"${COPROC[0]}"
    wait "$client"
    client=
    kill "$server" && wait "$server"
    server=
    awk -v b="$before" -v a="$after" -v n="$COUNT" -v what="$what" -v told="$told" 'BEGIN {
        printf "%-28s %6.1f MB before, %6.1f MB with %d: %5.2f KB each; %s\n",
               what, b / 1024, a / 1024, n, (a - b) / n, told }'
    # Who says nothing is closed after ten seconds, which is right.
    [ "$mode" = silent ] || [ "$told" = "0 of $COUNT closed" ] || failed=1
    [ "$after" -le $((GOAL_MB * 1024)) ] || { echo "above the goal of $GOAL_MB MB"; failed=1; }
}

measure silent "connected"
measure open "opened, without a token"
measure token "opened, with a token" "sb://localhost/eh1" "$(sign)"
exit $failed
