#!/bin/bash
# Azure's own JavaScript client, unchanged, and rhea against weir serve. The packages are pinned by
# lock files; they are installed once, and the suite is skipped where that cannot be done.
set -eu

here=$(cd "$(dirname "$0")/../interop/js" && pwd)
cd "$here"

skip() { echo "$*"; exit 77; }

command -v npm >/dev/null || skip "npm is not installed"

# install FOLDER: what its lock file names, when that is not there.
install() {
    [ -d "$1/node_modules" ] && [ "$1/node_modules" -nt "$1/package-lock.json" ] && return
    (cd "$1" && timeout 300 npm ci --no-audit --no-fund --ignore-scripts) >"$TMPDIR/npm.log" 2>&1 ||
        { tail -5 "$TMPDIR/npm.log"; rm -rf "$1/node_modules"; skip "the packages cannot be installed"; }
    touch "$1/node_modules"
}

node=node
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -lt 20 ]; then
    install node
    node=$(ls "$here"/node/node_modules/node-linux-*/bin/node)
fi
install .

# A certificate for the tests with TLS, which Node is told to trust.
if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$TMPDIR/key.pem" \
    -out "$TMPDIR/certificate.pem" >"$TMPDIR/openssl.log" 2>&1; then
    export WEIR_TEST_CERTIFICATE=$TMPDIR/certificate.pem WEIR_TEST_KEY=$TMPDIR/key.pem
    export NODE_EXTRA_CA_CERTS=$TMPDIR/certificate.pem
fi

"$node" --test --test-concurrency=1 --test-timeout=120000 ${TESTS:-*.test.mjs}
