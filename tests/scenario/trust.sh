#!/bin/bash
# weir trust: what it makes and prints, and what it says to whoever is not root. The system's store
# is tried out in trust-system.sh.
. "$(dirname "$0")/serving.bash"
ca=$XDG_DATA_HOME/weir/authority/ca.pem
unset SUDO_USER WEIR_AUTHORITY

expect 0 "$WEIR" trust
[ "$(head -n 1 out)" = "$ca" ] || fail "the certificate is not in the first line"
[ -s "$ca" ] || fail "there is no $ca"
for variable in NODE_EXTRA_CA_CERTS SSL_CERT_FILE REQUESTS_CA_BUNDLE; do said "$variable='$ca'"; done
said "connection_verify='$ca'"
said "keytool -importcert .* -file '$ca'"
cp out first
expect 0 "$WEIR" trust
cmp out first || fail "another authority"
expect 0 "$WEIR" trust --authority "$TMPDIR/another"
cmp -s out first && fail "the same authority"
(unset XDG_DATA_HOME && HOME=$TMPDIR/home expect 0 "$WEIR" trust && said "$TMPDIR/home/.local/share/weir/authority/ca.pem")
(unset XDG_DATA_HOME HOME && expect 2 "$WEIR" trust && said 'there is no HOME' err)

if [ "$(id -u)" != 0 ]; then
    expect 1 "$WEIR" trust --system
    said "run: sudo install -m 644 '$ca' '/usr/local/share/ca-certificates/weir-" err
    expect 1 "$WEIR" trust --remove
    said 'run: sudo rm' err
    exit 0
fi
SUDO_USER=somebody expect 2 "$WEIR" trust --system
said 'not yours' err
theirs=$(mktemp -d /tmp/weir-trust.XXXXXX) # where somebody else can come
trap 'rm -rf "$theirs"' EXIT
chown 65534 "$theirs"
if command -v setpriv >/dev/null && setpriv --reuid 65534 --clear-groups test -x "$WEIR"; then
    expect 1 setpriv --reuid 65534 --clear-groups "$WEIR" trust --system --authority "$theirs/ca"
    said "run: sudo install -m 644 '$theirs/ca/ca.pem' '/usr/local/share/ca-certificates/weir-" err
    expect 1 setpriv --reuid 65534 --clear-groups "$WEIR" trust --remove --authority "$theirs/ca"
    said 'run: sudo rm' err
fi
