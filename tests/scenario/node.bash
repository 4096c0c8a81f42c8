# node.bash - Node and packages for the tests with other people's clients and servers; they source
# it. What lock files pin is installed once; where that cannot be done the test is skipped.
# WEIR_TEST_NODE=npm takes Node from npm in any case.
interop=$(cd "$(dirname "${BASH_SOURCE[0]}")/../interop" && pwd)

skip() { echo "$*"; exit 77; }

command -v npm >/dev/null || skip "npm is not installed"

# install FOLDER: what its lock file names, when that is not there.
install() {
    [ -d "$1/node_modules" ] && [ "$1/node_modules" -nt "$1/package-lock.json" ] && return
    (cd "$1" && timeout 300 npm ci --no-audit --no-fund --ignore-scripts) >"$TMPDIR/npm.log" 2>&1 ||
        {
            tail -5 "$TMPDIR/npm.log"
            rm -rf "$1/node_modules"
            skip "the packages cannot be installed"
        }
    touch "$1/node_modules"
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
