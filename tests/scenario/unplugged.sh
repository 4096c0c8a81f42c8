#!/bin/bash
# A client and a server, each in a network of its own with a cable between them, which is pulled for
# UNPLUGGED_S seconds: nobody says goodbye. See unplugged.c for what must happen.
# gcc only
# about 10 s
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
down_s=${UNPLUGGED_S:-8} idle_ms=${UNPLUGGED_IDLE_MS:-3000}
home=weir-home-$$ away=weir-away-$$
cd "$TMPDIR"

skip() { echo "$1"; exit 77; }
command -v ip >/dev/null || skip "ip is not installed"
[ "$(id -u)" = 0 ] || skip "only root may make networks"
ip netns add "$home" 2>/dev/null || skip "networks cannot be made here"
clean() {
    [ -z "${server:-}" ] || { kill -9 "$server" && wait "$server"; } 2>/dev/null || true
    ip netns delete "$home" 2>/dev/null || true
    ip netns delete "$away" 2>/dev/null || true
}
trap clean EXIT
ip netns add "$away"
ip -n "$home" link add cable type veth peer name cable netns "$away" ||
    skip "there are no cables here"
ip -n "$home" address add 10.99.0.1/24 dev cable
ip -n "$away" address add 10.99.0.2/24 dev cable
for network in "$home" "$away"; do
    ip -n "$network" link set lo up
    ip -n "$network" link set cable up
done

XDG_DATA_HOME=$TMPDIR/xdg ip netns exec "$away" "$WEIR" serve --json --data d --hub h:2 \
    --amqp 10.99.0.2:5672 --amqps off --http off >out 2>err &
server=$!
for _ in $(seq 1200); do
    ! grep -qs '}$' out || break
    kill -0 "$server" || { cat err; exit 1; }
    sleep 0.05
done
connection=$(sed 's/.*"connection_string":"\([^"]*\)".*/\1/' out)
cc -std=c11 -O1 -Wall -Wextra -Werror -I"$here/../../include" "$here/unplugged.c" -o unplugged \
    "$BUILD/libweir.so" "-Wl,-rpath,$BUILD" -lpthread
ip netns exec "$home" ./unplugged "$connection" "$idle_ms" "$down_s" \
    "ip -n $away link set cable down" "ip -n $away link set cable up"
