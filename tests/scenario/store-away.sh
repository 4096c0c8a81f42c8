#!/bin/bash
# Five `weir process` whose store, a PostgreSQL of their own, is shut down for some seconds and comes
# back: no partition moves, no event is given twice, events go on, and the checkpoints catch up. The
# show 64-store-away does this at full length; here the machine may be busy, so there is SLACK_S.
# gcc only
# about 20 s
set -eu
export RATE=400 OUTAGE_S=10 SLACK_S=5
exec /usr/bin/python3 -B "$(dirname "$0")/../show/fleet/fleet.py" outage 1
