#!/bin/bash
# Conversations between a client of Azure's and Azure itself, with ours in Azure's place: every answer
# must be the same, field by field, but for what tests/interop/replay-differences lists. The recordings
# are not part of the project; they are looked for beside it, or where WEIR_RECORDINGS says.
# gcc only
# about 20 s
here=$(cd "$(dirname "$0")/.." && pwd)
recordings=${WEIR_RECORDINGS:-$here/../../shared/recordings}

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
if ! [ -e "$recordings/replay" ] || ! [ -e "$recordings/legitimate" ]; then
    echo "the recordings are not there: $recordings (WEIR_RECORDINGS names another place)"
    exit 77
fi
recordings=$(cd "$recordings" && pwd)
. "$here/scenario/serving.bash"

export PYTHONDONTWRITEBYTECODE=1
replay() { python3 "$recordings/replay" "$@"; }
cat "$recordings/legitimate" "$here/interop/replay-differences" >rules
hubs=$(replay --hubs rec | sed 's/^/--hub /')
# shellcheck disable=SC2086 # one word each
start --json --in-memory $hubs --amqp 127.0.0.1:0 --amqps off --http off
address=$(sed 's/.*"amqp":"\([^"]*\)".*/\1/' out)
code=0
replay --rules rules "$address" rec RootManageSharedAccessKey SAS_KEY_VALUE >differences 2>&1 ||
    code=$?
grep -v '(not waited for' differences || true
[ "$code" = 0 ] || fail "the answers differ"
grep -q '^[1-9][0-9]* passed, 0 failed$' differences || fail "nothing was replayed"
stop
