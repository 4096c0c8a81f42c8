#!/bin/bash
# weir trust --system and --remove with the real update-ca-certificates, in a mount namespace of its
# own: the machine's store stays as it is.
# depends: src/base src/io src/cli
set -eu
skip() { echo "$*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "the system's store is root's"
command -v update-ca-certificates >/dev/null || skip "there is no update-ca-certificates"
unshare -m true 2>/dev/null || skip "mount namespaces cannot be had"

cd "$TMPDIR"
export XDG_DATA_HOME=$TMPDIR
unset SUDO_USER WEIR_AUTHORITY
cat >inside <<'END'
set -eu
for folder in /etc/ssl /usr/local/share; do
    cp -a "$folder" copy && mount -t tmpfs none "$folder" && cp -a copy/. "$folder" && rm -rf copy
done
mkdir -p /usr/local/share/ca-certificates
trusted() { openssl verify -CApath /etc/ssl/certs "$XDG_DATA_HOME/weir/authority/server.pem" 2>&1; }
"$WEIR" trust | head -n 3
! trusted || { echo "trusted before"; exit 1; }
"$WEIR" trust --system
trusted
"$WEIR" trust --remove
! trusted || { echo "trusted after"; exit 1; }
! "$WEIR" trust --remove
END
store() { ls -lR /etc/ssl /usr/local/share | cksum; }
before=$(store)
unshare -m bash inside
[ "$(store)" = "$before" ] || { echo "the machine's own store changed"; exit 1; }
