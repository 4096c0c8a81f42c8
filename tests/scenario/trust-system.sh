#!/bin/bash
# weir trust --system and --remove with the real update-ca-certificates, in a mount namespace of its
# own: the machine's store stays as it is.
# gcc only
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
skip() { echo "$*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "the system's store is root's"
command -v update-ca-certificates >/dev/null || skip "there is no update-ca-certificates"
unshare -m true 2>/dev/null || skip "mount namespaces cannot be had"

if [ "${1:-}" != inside ]; then
    store() { ls -lR /etc/ssl /usr/local/share | cksum; }
    before=$(store)
    unshare -m "$here/trust-system.sh" inside
    [ "$(store)" = "$before" ] || fail "the machine's own store changed"
    exit 0
fi

unset SUDO_USER WEIR_AUTHORITY
umask 077 # the store is for everybody all the same
for folder in /etc/ssl /usr/local/share; do
    cp -a "$folder" copy && mount -t tmpfs none "$folder" && cp -a copy/. "$folder" && rm -rf copy
done
store=/usr/local/share/ca-certificates
ca=$XDG_DATA_HOME/weir/authority/ca.pem
rm -rf "$store"
trusted() { openssl verify -CApath /etc/ssl/certs "$XDG_DATA_HOME/weir/authority/server.pem" >/dev/null 2>&1; }
installed() { ls "$store"/weir-*.crt 2>/dev/null; }

expect 0 "$WEIR" trust
! trusted || fail "trusted before"
expect 1 "$WEIR" trust --system
said "writing $store/weir-[0-9A-F]*.crt: No such file or directory" err
expect 2 "$WEIR" trust --remove
said "$store/weir-[0-9A-F]*.crt is not there" err

# A full disk.
mkdir "$store"
mount -t tmpfs -o size=4k none "$store"
head -c 4096 /dev/zero >"$store/full"
expect 1 "$WEIR" trust --system
said "writing $store/weir-[0-9A-F]*.crt: No space left on device" err
! trusted || fail "trusted from a full disk"
umount "$store"

# Without the system's own program.
expect 1 env PATH=/nowhere "$WEIR" trust --system
said 'update-ca-certificates: No such file or directory' err
rm -f "$store"/weir-*

expect 0 "$WEIR" trust --system
said "^installed $(installed)\$"
cmp "$(installed)" "$ca" || fail "another certificate was installed"
[ "$(stat -c %a "$(installed)")" = 644 ] || fail "not everybody may read it"
trusted || fail "not trusted"
file=$(installed)
expect 0 "$WEIR" trust --remove
said "^removed $file\$"
[ -z "$(installed)" ] || fail "it is still there"
! trusted || fail "trusted after"
expect 2 "$WEIR" trust --remove

# It was installed, but what the system made of it cannot be changed.
rm -rf /etc/ssl/certs
expect 1 "$WEIR" trust --system
said 'update-ca-certificates: it failed' err
