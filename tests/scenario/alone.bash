# alone.bash - for the scenarios that need the usual ports; they source it first. They run in a network
# of their own, or, where that cannot be had, one at a time on this machine's ports.
if [ -z "${WEIR_TEST_ALONE:-}" ]; then
    export WEIR_TEST_ALONE=1
    if unshare -rn ip link set lo up 2>/dev/null; then
        exec unshare -rn sh -c 'ip link set lo up && exec "$0"' "$0"
    fi
    exec flock "/tmp/weir-ports.$UID" "$0"
fi
