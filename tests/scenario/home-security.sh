#!/bin/bash
# The documents' scenario at a tenth of its size: five copies share a hub, one is killed, one comes,
# one is restarted, and both jobs count every report exactly once. The program checks its own totals.
# about 25 s
set -euo pipefail

DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
"$BUILD/examples/home_security" run "$WEIR" "$DIR" 10000 1 10
