#!/bin/bash
# 50-client-cuts - the same C program on a folder, on a server, and over a road to it that is cut a
# thousand times, in mid-word, plain and with TLS: no acknowledged event is lost, none changes its
# place within a partition, none is there twice but where the outcome was reported as unknown, and
# none at all with the idempotent option; every receiver sees each event once.
# depends: src/base src/log src/amqp src/http src/io src/tunnel src/hub src/client src/server
# depends: src/cli tests/client tests/support tests/CMakeLists.txt
set -euo pipefail

WEIR_CUTS=1000 "${BUILD:?}/tests/client_wire_faults_test"
