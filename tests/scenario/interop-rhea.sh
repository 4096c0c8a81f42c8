#!/bin/bash
# Our client as rhea, serving a hub, sees it: see tests/interop/rhea.
set -eu
. "$(dirname "$0")/node.bash"

cd "$interop/rhea"
install .
exec "$node" --test --test-timeout="${LIMIT_MS:-120000}" client.test.mjs
