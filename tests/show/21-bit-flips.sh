#!/bin/bash
# 21-bit-flips - one flipped bit in every 512 bytes of every file of a log, sealed and unsealed,
# after a clean close and after a loss of power: no wrong event is served, and damage at or below
# the watermark is always an error that names file, byte and sequence range.
# depends: src/base src/log tests/log tests/support tests/CMakeLists.txt
set -euo pipefail

"${BUILD:?}/tests/log_flip_test" all
