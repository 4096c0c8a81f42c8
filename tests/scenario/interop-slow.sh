#!/bin/bash
# Peers that take their time, all at once: see tests/interop/raw/slow.py. The times are those that
# people meet, so it lasts as long as the longest of them.
# gcc only
# about 40 s
set -eu

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$(dirname "$0")/../interop/raw/slow.py"
