#!/bin/bash
# 53-thousand-receivers - a thousand receivers on one client: no thread more than for one of them,
# and at most 16 KB of memory for each beyond its credit; an event for all comes to all.
set -euo pipefail

"${BUILD:?}/tests/client_wire_many_test"
