#!/bin/bash
# 22-sector-faults - sectors that are garbled, zero or answer EIO, anywhere in a log's files, one or
# several at once, both copies of a header or of the control file among them: every log opens, every
# batch that is whole is served, every other is told with its range, and an inspection says the same.
set -euo pipefail

"${BUILD:?}/tests/log_sectors_test" "${1:-12000}"
