#!/bin/bash
# Azure's Rust client: see interop.bash.
# gcc only
# about 30 s
set -eu
. "$(dirname "$0")/interop.bash"
run_language rust
