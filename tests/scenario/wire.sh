#!/bin/bash
# AMQP frame by frame against weir serve: see tests/interop/raw/wire.py.
set -eu

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$(dirname "$0")/../interop/raw/wire.py"
