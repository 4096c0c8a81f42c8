#!/bin/bash
# 10-bare-debian [suite] - in a bare Debian 12 root (bookworm) with only git, gcc and make, a clone
# of this tree does `make run` and `make test` as it is. What is mounted for that lives in a mount
# namespace of its own and goes with it.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "$(id -u)" -ne 0 ]; then
    echo "building a Debian root needs root"
    exit 77
fi
scripts/bootstrap show
ROOT=$(mktemp -d)
chmod 755 "$ROOT"
trap 'rm -rf --one-file-system "$ROOT"' EXIT

# Packages come from where this machine gets its own.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    grep -v security | head -n 1)
began=$SECONDS
debootstrap --variant=minbase --include=git,gcc,libc6-dev,make,ca-certificates \
    "${1:-bookworm}" "$ROOT" "$mirror" >"$ROOT.log" 2>&1 || { tail -n 20 "$ROOT.log"; exit 1; }
rm -f "$ROOT.log"
grep -l '^ *Acquire' /etc/apt/apt.conf.d/* 2>/dev/null | xargs -r cp -t "$ROOT/etc/apt/apt.conf.d"
cp -aL /etc/resolv.conf /etc/hosts "$ROOT/etc/"
echo "bare root: $((SECONDS - began)) s, $(chroot "$ROOT" dpkg-query -W | wc -l) packages"

# The tree as it is now, as a repository to clone.
mkdir "$ROOT/weir.git"
git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -T - -cf - |
    tar -xf - -C "$ROOT/weir.git" --no-same-owner
git -C "$ROOT/weir.git" init -q
git -C "$ROOT/weir.git" add -A
git -C "$ROOT/weir.git" -c user.name=show -c user.email=show@localhost commit -q -m "tree as it is"

# inside USER command: runs it in the root with nothing of our environment but the proxies.
inside() {
    unshare --mount --pid --fork --kill-child bash -c '
        mount --rbind /dev "$1/dev"
        mount -t proc proc "$1/proc"
        mount -t sysfs sysfs "$1/sys"
        mount -t tmpfs tmpfs "$1/run"
        exec chroot --userspec="$2" "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            ${no_proxy:+no_proxy="$no_proxy"} sh -c "$3"' inside "$ROOT" "$1" "$2"
}

# timed WHAT command: prints how long it took and its last line.
timed() {
    local began=$SECONDS log=$ROOT/root/log
    inside root "$2" >"$log" 2>&1 || { tail -n 100 "$log"; echo "$1: FAILED"; exit 1; }
    echo "$1: $((SECONDS - began)) s: $(tail -n 1 "$log")"
}

inside root "git clone -q /weir.git /root/weir && chmod 755 /root"
if said=$(inside nobody "cd /root/weir && scripts/bootstrap build" 2>&1); then
    echo "bootstrap: succeeded without root and without packages"
    exit 1
fi
grep -q 'apt-get install.* cmake' <<<"$said" || { echo "bootstrap said only: $said"; exit 1; }
echo "bootstrap without root: says what to install"
timed "make run" "cd /root/weir && make run"
timed "make test" "cd /root/weir && make test"
