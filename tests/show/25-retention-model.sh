#!/bin/bash
# 25-retention-model - 10,000 random histories of appends, quiet times, clocks that jump, restarts,
# other limits and full disks against a plain model: what is within the limits is kept, what is too
# old is gone, the disk holds no more than the formula says. Two sabotages are each caught.
set -euo pipefail

"${BUILD:?}/tests/log_retention_model_test" "${HISTORIES:-10000}"
"$BUILD/tests/log_retention_space_test" 2>&1 | grep "an event an hour"
