#!/bin/bash
# Clients of Azure's in every language that can be had here, in all of the common cases, three times
# in a row: the matrix of docs/compatibility.md. A client or case that was skipped leaves it unproved.
# depends: src scripts/interop tests/interop
set -eu
cd "$(dirname "$0")/../.."
exec scripts/interop --set whole --runs "${RUNS:-3}"
