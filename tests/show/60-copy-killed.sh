#!/bin/bash
# kill -9 of one of five copies, 100 times: its partitions are given elsewhere within 5 s (p99),
# every event at least once, and none again that lies before the checkpoint.
# depends: src tests/show/fleet
set -eu
exec /usr/bin/python3 -B "$(dirname "$0")/fleet/fleet.py" kill "${ROUNDS:-100}"
