#!/bin/bash
# One copy alone has all 16 partitions within 1 s, and five that start at once have 3/3/3/3/4 within
# 3 s of the last start: nothing moves in vain, and each open has its close. 20 times each.
# depends: src tests/show/fleet
set -eu
exec /usr/bin/python3 -B "$(dirname "$0")/fleet/fleet.py" start "${ROUNDS:-20}"
