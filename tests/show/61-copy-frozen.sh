#!/bin/bash
# One of five copies is frozen past its expiry and thawed, 200 times: the others take over within
# 5 s (p99), and it stores no checkpoint afterwards.
# depends: src tests/show/fleet
set -eu
exec /usr/bin/python3 -B "$(dirname "$0")/fleet/fleet.py" freeze "${ROUNDS:-200}"
