#!/bin/bash
# PostgreSQL is away for 60 s under load, 3 times shut down and 3 times frozen: no partition moves,
# no event is given twice, events go on, and a beat after it is back (1 s, and 0.5 s for the
# machine) the checkpoints have caught up.
# depends: src tests/show/fleet
set -eu
exec /usr/bin/python3 -B "$(dirname "$0")/fleet/fleet.py" outage $((2 * ${ROUNDS:-3}))
