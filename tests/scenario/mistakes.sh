#!/bin/bash
# People who come to the wrong port, with their own programs: what these show, and what the server's
# log says about it.
set -eu
cd "$TMPDIR"
server=

fail() { echo "mistakes.sh: $*"; cat said log; exit 1; }
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true' EXIT
skip() { echo "$*"; exit 77; }
command -v curl >/dev/null || skip "curl is not installed"
command -v openssl >/dev/null || skip "openssl is not installed"

# said TEXT: what the client printed. logged TEXT: what the server did.
said() { grep -qa -- "$1" said || fail "the client did not see '$1'"; }
logged() {
    for _ in $(seq 1200); do grep -q -- "$1" log && return; sleep 0.05; done
    fail "the log does not say '$1'"
}
# raw PORT BYTES: the answer, up to the end of the connection.
raw() {
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf "$2" >&3
    timeout 10 cat <&3 >said || fail "it did not end: $2"
    exec 3>&-
}
: >said

"$WEIR" serve --data data --hub h:1 --amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http 127.0.0.1:0 \
    --authority authority --json >out 2>log &
server=$!
for _ in $(seq 1200); do [ -s out ] && break; sleep 0.05; done
[ -s out ] || fail "not ready"
port_of() { sed "s/.*\"$1\":\"127.0.0.1:\([0-9]*\)\".*/\1/" out; }
amqp=$(port_of amqp) amqps=$(port_of amqps) http=$(port_of http)
ca=authority/ca.pem

# ---- the port of AMQP ----
curl -sS -m 10 "http://127.0.0.1:$amqp/" >said 2>&1 || fail "curl failed"
said "This port speaks AMQP 1.0. HTTP is spoken at 127.0.0.1:$http"
logged "speaks HTTP, and this port AMQP 1.0"
curl -sS -m 10 "https://127.0.0.1:$amqp/" >said 2>&1 && fail "curl found TLS"
said "handshake failure"
logged "speaks TLS, and this port has none: put UseDevelopmentEmulator=true into its connection string, or send it to the port with TLS, 127.0.0.1:$amqps"
timeout 10 openssl s_client -connect "127.0.0.1:$amqp" </dev/null >said 2>&1 && fail "TLS was agreed on"
said "alert handshake failure"
raw "$amqp" 'AMQP\x00\x00\x09\x01'
[ "$(od -An -tx1 said | tr -d ' ')" = 414d515000010000 ] || fail "not the header of AMQP 1.0"
logged "speaks AMQP 0-9-1, and this port AMQP 1.0: RabbitMQ's clients do not work here"
raw "$amqp" '\x00\x00\x00\x23\x00\x12\x00\x03\x00\x00\x00\x01\x00\x03one'
logged "speaks Kafka"
raw "$amqp" 'hello, is anybody there?'
logged "speaks something else"

# ---- the port with TLS ----
curl -sS -m 10 "http://127.0.0.1:$amqps/" >said 2>&1 || fail "curl failed"
said "This port speaks AMQP 1.0 inside TLS. HTTP is spoken at 127.0.0.1:$http"
raw "$amqps" 'AMQP\x03\x01\x00\x00'
[ "$(od -An -tx1 said | tr -d ' ')" = 414d515002010000 ] || fail "not the header that asks for TLS"
logged "speaks AMQP 1.0 without TLS, and this port wants TLS: send it to the port without"
raw "$amqps" 'AMQP\x00\x00\x09\x01'
logged "speaks AMQP 0-9-1 without TLS"

# ---- the local authority ----
curl -sS -m 10 "https://localhost:$amqps/" >said 2>&1 && fail "curl trusts everybody"
said "unable to get local issuer certificate"
logged "does not trust the certificate of this server; weir trust says how it can"
timeout 10 openssl s_client -brief -verify_return_error -CAfile "$ca" -verify_hostname localhost \
    -connect "127.0.0.1:$amqps" </dev/null >said 2>&1 || fail "openssl does not trust localhost"
said "Verification: OK"
said "Protocol version: TLSv1.3"
timeout 10 openssl s_client -brief -verify_return_error -CAfile "$ca" -verify_ip 127.0.0.1 \
    -connect "127.0.0.1:$amqps" </dev/null >said 2>&1 || fail "openssl does not trust 127.0.0.1"
timeout 10 openssl s_client -brief -verify_return_error -CAfile "$ca" -verify_hostname example.com \
    -connect "127.0.0.1:$amqps" </dev/null >said 2>&1 && fail "openssl trusts example.com"
timeout 10 openssl s_client -tls1_1 -cipher DEFAULT@SECLEVEL=0 -connect "127.0.0.1:$amqps" \
    </dev/null >said 2>&1 && fail "TLS 1.1 was agreed on"

# Of TLS 1.2 only what is good: no SHA-1, and no key that opens what was recorded.
for cipher in ECDHE-ECDSA-AES128-SHA ECDHE-ECDSA-AES256-SHA; do
    timeout 10 openssl s_client -tls1_2 -cipher "$cipher:@SECLEVEL=0" -connect "127.0.0.1:$amqps" \
        </dev/null >said 2>&1 && fail "$cipher was agreed on"
done
timeout 10 openssl s_client -tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 \
    -connect "127.0.0.1:$amqps" </dev/null >said 2>&1 || fail "TLS 1.2 does not work"
said "Cipher is ECDHE-ECDSA-AES128-GCM-SHA256"

# Served at another address of this machine, the certificate names that, too, and keeps it.
kill -TERM "$server"
wait "$server" || fail "exit code $? at the end"
for at in 127.0.0.78 127.0.0.79; do
    : >out
    "$WEIR" serve --data data --amqp 127.0.0.1:0 --amqps $at:0 --http off --authority authority \
        --json >out 2>log &
    server=$!
    for _ in $(seq 1200); do [ -s out ] && break; sleep 0.05; done
    amqps=$(sed 's/.*"amqps":"[^:]*:\([0-9]*\)".*/\1/' out)
    for name in "ip 127.0.0.78" "ip $at" "ip 127.0.0.1" "hostname localhost"; do
        # shellcheck disable=SC2086
        timeout 10 openssl s_client -brief -verify_return_error -CAfile "$ca" -verify_$name \
            -connect "$at:$amqps" </dev/null >said 2>&1 || fail "$name is not in the certificate"
    done
    [ $at = 127.0.0.79 ] || { kill -TERM "$server"; wait "$server" || fail "exit code $?"; }
done

kill -TERM "$server"
wait "$server" || fail "exit code $? at the end"
server=
