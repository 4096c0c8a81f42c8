#!/bin/bash
# Azure's JavaScript clients, the present one and the old one: see interop.bash.
# gcc only
# about 40 s
set -eu
. "$(dirname "$0")/interop.bash"
run_language javascript
