#!/bin/bash
# scripts/bootstrap while another apt is at work, which holds the lock of the lists or that of the
# packages: it waits. With the real apt, on folders of its own that have no packages at all, so that
# what it says in the end is that it cannot find them.
# gcc only
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$TMPDIR"
holder=

skip() { echo "$*"; exit 77; }
fail() { echo "bootstrap.sh: $*"; cat said; exit 1; }
trap '[ -z "$holder" ] || kill "$holder" 2>/dev/null || true' EXIT
[ "$(id -u)" = 0 ] || skip "not root: apt would not take the lock"
command -v apt-get >/dev/null || skip "apt is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"

mkdir -p lists/partial cache/archives/partial etc dpkg/info dpkg/updates log
: >etc/sources.list >dpkg/status >dpkg/lock-frontend >dpkg/lock >lists/lock
cat >apt.conf <<C
Dir::State "$PWD"; Dir::State::lists "lists"; Dir::State::status "$PWD/dpkg/status";
Dir::Cache "$PWD/cache"; Dir::Etc::sourcelist "$PWD/etc/sources.list";
Dir::Etc::sourceparts "/dev/null"; Dir::Log "$PWD/log";
C
export APT_CONFIG=$PWD/apt.conf DPKG_ADMINDIR=$PWD/dpkg

# held FILE: bootstrap, while another process has the lock and lets go of it when we have met it.
held() {
    rm -f go
    python3 - "$1" <<'P' &
import fcntl, os, sys, time
lock = open(sys.argv[1], "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
open("held", "w").close()
while not os.path.exists("go"):
    time.sleep(0.05)
P
    holder=$!
    until [ -e held ]; do sleep 0.02; done
    rm held
    "$here/scripts/bootstrap" build >said 2>&1 &
    local run=$! code=0
    for _ in $(seq 40); do
        kill -0 $run 2>/dev/null || fail "it did not wait for $1"
        sleep 0.05
    done
    : >go
    wait $holder
    holder=
    wait $run || code=$?
    [ $code = 1 ] && grep -q 'Unable to locate package gcc' said || fail "exit code $code"
}

held lists/lock
held dpkg/lock-frontend

# Patience ends.
python3 -c 'import fcntl, time; f = open("lists/lock", "w"); fcntl.lockf(f, fcntl.LOCK_EX)
open("held", "w").close(); time.sleep(60)' &
holder=$!
until [ -e held ]; do sleep 0.02; done
! WEIR_APT_WAIT=1 "$here/scripts/bootstrap" build >said 2>&1 || fail "it found packages"
grep -q 'Could not get lock' said || fail "it does not say why"
grep -q 'as root run: apt-get install.* cmake' said || fail "it does not say what to do"
