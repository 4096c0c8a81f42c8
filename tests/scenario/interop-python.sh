#!/bin/bash
# Azure's Python client, synchronous and asynchronous: see interop.bash.
# gcc only
# about 40 s
set -eu
. "$(dirname "$0")/interop.bash"
run_language python
