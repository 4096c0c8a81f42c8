# node.bash - Node and packages for the tests with other people's clients and servers; they source
# it. What lock files pin is installed once; where that cannot be done the test is skipped.
# WEIR_TEST_NODE=npm takes Node from npm in any case.
interop=$(cd "$(dirname "${BASH_SOURCE[0]}")/../interop" && pwd)

skip() { echo "$*"; exit 77; }

command -v npm >/dev/null || skip "npm is not installed"

# What one run of tests has found out, for the scenarios that come later.
found=${WEIR_TEST_RUN:-$TMPDIR}

# Whether the registry answers; asked once, for a few seconds.
registry_answers() {
    [ -e "$found/registry" ] || {
        timeout 5 npm ping --fetch-retries=0 >/dev/null 2>&1 && echo yes || echo no
    } >"$found/registry"
    [ "$(cat "$found/registry")" = yes ]
}

# put_in FOLDER: from what npm has kept, or from the registry.
put_in() {
    [ -d "$1/node_modules" ] && [ "$1/node_modules" -nt "$1/package-lock.json" ] && return
    npm="npm ci --no-audit --no-fund --ignore-scripts --prefix $1"
    $npm --offline >"$TMPDIR/npm.log" 2>&1 || {
        registry_answers || return 1
        timeout 300 $npm >"$TMPDIR/npm.log" 2>&1 || return
    }
    touch "$1/node_modules"
}

# install FOLDER: what its lock file names, when that is not there. One at a time: scenarios share it.
install() {
    exec 7>"$found/npm.lock"
    flock 7
    put_in "$1" || {
        rm -rf "$1/node_modules"
        tail -5 "$TMPDIR/npm.log"
        skip "npm's packages cannot be had: $(registry_answers && echo "npm ci failed" || echo "the registry does not answer")"
    }
    exec 7>&-
}

node=node
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -lt 20 ] || [ "${WEIR_TEST_NODE:-}" = npm ]; then
    install "$interop/js/node"
    # It is optional there, one package for each machine, so npm does not mind when it is missing.
    node=$(ls "$interop"/js/node/node_modules/node-linux-*/bin/node 2>/dev/null) || {
        rm -rf "$interop/js/node/node_modules"
        skip "Node cannot be installed"
    }
fi
