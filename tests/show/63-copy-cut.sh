#!/bin/bash
# The link of one of five copies goes down without a word to anybody, 100 times; server and store
# are behind it. Its partitions are given elsewhere within 5 s (p99), every event at least once, and
# none again that lies before the checkpoint. When the link is up again, it closes them as lost and
# joins the others.
#
# Each copy is in a network of its own, with a cable to a bridge where server, store and load are.
# depends: src tests/show/fleet
set -eu
network=weir-fleet-$$

skip() { echo "$1"; exit 77; }
command -v ip >/dev/null || skip "ip is not installed"
[ "$(id -u)" = 0 ] || skip "only root may make networks"
ip netns add "$network" 2>/dev/null || skip "networks cannot be made here"
clean() {
    for name in "$network" "$network"-{0..4}; do
        ip netns delete "$name" 2>/dev/null || true
    done
}
trap clean EXIT
ip -n "$network" link set lo up
ip -n "$network" link add bridge type bridge || skip "there are no bridges here"
ip -n "$network" address add 10.99.0.1/24 dev bridge
ip -n "$network" link set bridge up
for i in 0 1 2 3 4; do
    ip netns add "$network-$i"
    ip -n "$network-$i" link add cable type veth peer name "port$i" netns "$network" ||
        skip "there are no cables here"
    ip -n "$network-$i" address add "10.99.0.1$i/24" dev cable
    ip -n "$network-$i" link set cable up
    ip -n "$network" link set "port$i" master bridge up
done

FLEET_NETWORK=$network FLEET_HOME=10.99.0.1 ip netns exec "$network" \
    /usr/bin/python3 -B "$(dirname "$0")/fleet/fleet.py" cut "${ROUNDS:-100}"
