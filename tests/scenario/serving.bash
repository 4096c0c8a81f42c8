# serving.bash - what the scenarios of weir serve share; they source it. Nothing of the user's is
# touched: the local authority lives in $TMPDIR.
set -eu
scenario=$(basename "$0")
cd "$TMPDIR"
export XDG_DATA_HOME=$TMPDIR/xdg
server=

fail() { echo "$scenario: $*"; cat out err log 2>/dev/null; exit 1; }
trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT

# start ARGS...: a server in the background, ready when this returns. Its own log is in log, so that
# out and err of the commands that follow hold nothing but their words.
start() {
    : >out
    "$WEIR" serve "$@" >out 2>log &
    server=$!
    for _ in $(seq 1200); do
        grep -qs '}$\|Ctrl-C stops' out && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    fail "not ready: weir serve $*"
}
# stop [SIGNAL]: it must end with 0.
stop() {
    kill "-${1:-TERM}" "$server"
    code=0
    wait "$server" || code=$?
    server=
    [ "$code" = 0 ] || fail "exit code $code after ${1:-TERM}"
}
# hup LINE: SIGHUP, until the server has logged it.
hup() {
    : >log
    kill -HUP "$server"
    for _ in $(seq 400); do
        grep -q "$1" log && return
        sleep 0.05
    done
    fail "SIGHUP did not log '$1'"
}
# expect CODE COMMAND...
expect() {
    want=$1
    shift
    code=0
    timeout 300 "$@" >out 2>err </dev/null || code=$?
    [ "$code" = "$want" ] || fail "exit code $code instead of $want from: $*"
}
# said PATTERN [FILE]
said() { grep -q -- "$1" "${2:-out}" || fail "did not say '$1'"; }
silent() { ! grep -q -- "$1" "${2:-out}" || fail "said '$1'"; }
# field NAME: of the ready line.
field() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" out; }

free='--amqp 127.0.0.1:0 --amqps 127.0.0.1:0 --http 127.0.0.1:0'
