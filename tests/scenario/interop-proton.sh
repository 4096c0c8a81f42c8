#!/bin/bash
# Qpid Proton, from Debian's python3-qpid-proton, against weir serve: a second engine that nobody
# here wrote. Without TLS and with it.
# about 22 s
set -eu

python=/usr/bin/python3 # the one that Debian's packages are for
if ! "$python" -c 'import proton' 2>/dev/null; then
    echo "python3-qpid-proton is not installed"
    exit 77
fi

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$TMPDIR/key.pem" \
    -out "$TMPDIR/certificate.pem" 2>"$TMPDIR/openssl.log" || { cat "$TMPDIR/openssl.log"; exit 1; }
export WEIR_TEST_CERTIFICATE=$TMPDIR/certificate.pem WEIR_TEST_KEY=$TMPDIR/key.pem
export PYTHONDONTWRITEBYTECODE=1
exec "$python" "$(dirname "$0")/../interop/proton/proton_test.py"
