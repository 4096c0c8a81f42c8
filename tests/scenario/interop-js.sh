#!/bin/bash
# Azure's own JavaScript client, unchanged, and rhea against weir serve: everything without TLS and
# with it.
# asan only
# about 120 s
set -eu

. "$(dirname "$0")/node.bash"

cd "$interop/js"
# Of tests that died.
trap '[ ! -e "$TMPDIR/servers" ] || xargs -r kill -9 <"$TMPDIR/servers" 2>/dev/null || true' EXIT
install .

# A certificate for the tests with TLS, which Node is told to trust.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$TMPDIR/key.pem" \
    -out "$TMPDIR/certificate.pem" 2>"$TMPDIR/openssl.log" || { cat "$TMPDIR/openssl.log"; exit 1; }
export WEIR_TEST_CERTIFICATE=$TMPDIR/certificate.pem WEIR_TEST_KEY=$TMPDIR/key.pem
export NODE_EXTRA_CA_CERTS=$TMPDIR/certificate.pem

# What is with TLS anyway, or never, runs once.
plain=${TESTS:-*.test.mjs}
secret=$(ls $plain | grep -vE '^(tls|certificate|websocket)\.' || true)
limits="--test-concurrency=2 --test-timeout=${LIMIT_MS:-400000}"
run() { [ -z "$1" ] || "$node" --test $limits $1; }

# Most of the time is waiting, so both go at once.
echo "== $("$node" --version), with TLS and without"
WEIR_TEST_TLS=1 run "$secret" >"$TMPDIR/tls.log" 2>&1 &
rc=0
run "$plain" || rc=$?
wait $! || rc=$?
grep -E '^not ok|^# (tests|pass|fail|[0-9]+ kills)' -A 12 "$TMPDIR/tls.log" || true
exit $rc
