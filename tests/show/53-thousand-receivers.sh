#!/bin/bash
# 53-thousand-receivers - a thousand receivers on one client: no thread more than for one of them,
# and at most 16 KB of memory for each beyond its credit; an event for all comes to all.
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/client src/server
# depends: src/cli tests/client tests/support tests/CMakeLists.txt
set -euo pipefail

"${BUILD:?}/tests/client_wire_many_test"
