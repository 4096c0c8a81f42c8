#!/bin/bash
# 26-retention-bytes - limits in bytes keep every event that is within them: 160 MB under 256M, 30 MB
# under 100M, 4 MB under 10M.
set -euo pipefail
exec "$(dirname "$0")/../scenario/retention.sh" 256M 16000 10000 100M 3000 10000 10M 4000 1000
