#!/bin/bash
# What the service itself was recorded to answer, frame by frame: see tests/interop/raw/azure.py.
set -eu

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$(dirname "$0")/../interop/raw/azure.py"
