#!/bin/bash
# Azure's Go client: see interop.bash.
# gcc only
# about 6 s
set -eu
. "$(dirname "$0")/interop.bash"
run_language go
