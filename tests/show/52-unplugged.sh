#!/bin/bash
# 52-unplugged - the cable between client and server is pulled for a minute and nobody says goodbye:
# noticed within twice the idle time-out, no call takes longer than it was given, resumed with the
# next event. The minute of the idempotent producer is all there then, once and in order; it is a
# little longer than the minute after which other batches are given up.
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/client src/server
# depends: src/cli tests/scenario/unplugged.sh tests/scenario/unplugged.c
set -euo pipefail

UNPLUGGED_S=65 UNPLUGGED_IDLE_MS=10000 "$(dirname "$0")/../scenario/unplugged.sh"
