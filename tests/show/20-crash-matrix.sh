#!/bin/bash
# 20-crash-matrix - power is lost before every outside call of a workload, in every way that a disk
# may forget, tear and reorder: at least 50,000 distinct disks, each opened and read back, some of
# them with batch headers that senders forged. Leaving out one of the things that durability rests on
# must be noticed. Then faults at every call, and real writers on a real folder, killed.
# depends: src/base src/log tests/log tests/support tests/CMakeLists.txt
set -euo pipefail
TESTS=${BUILD:?}/tests

"$TESTS/log_crash_test" "${1:-50000}"
echo
"$TESTS/log_faults_test" 25
echo
"$TESTS/log_memory_test" | sed -n '/allocations/p'
"$TESTS/log_kill_test" 60 | sed -n '/killed:/p'
