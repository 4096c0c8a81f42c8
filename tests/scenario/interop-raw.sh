#!/bin/bash
# What a hostile client sends over a socket: requests of the smuggling kind, and AMQP that is too
# large, too much and too many. See tests/interop/raw/abuse.py.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
cc -std=c11 -Wall -Wextra -Werror "$here/http/rows.c" -o "$TMPDIR/rows"
"$TMPDIR/rows" >"$TMPDIR/rows.txt"
export WEIR_TEST_ROWS=$TMPDIR/rows.txt PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/interop/raw/abuse.py"
