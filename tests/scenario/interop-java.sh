#!/bin/bash
# Azure's Java client: see interop.bash.
# gcc only
# about 40 s
set -eu
. "$(dirname "$0")/interop.bash"
run_language java
