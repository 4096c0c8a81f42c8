#!/bin/bash
# Every command with standard input, output and error closed, in all combinations: it ends as it does
# with them open, and not a byte of what it says lands in a file of the hubs.
# about 12 s
# gcc only
. "$(dirname "$0")/serving.bash"
: >out
: >err

# What each command is tried with. The data folder is named by WEIR_DATA.
declare -A try=(
    ['hub create']='hub create new' ['hub list']='hub list' ['hub show']='hub show q'
    ['hub update']='hub update q --partitions 2' ['hub delete']='hub delete new'
    ['hub adopt']='hub adopt 77 found' ['send']='send q' ['tail']='tail q --until-end'
    ['process']='process q' ['group create']='group create q/g'
    ['group list']='group list q' ['group delete']='group delete q/g' ['group describe']='group describe q'
    ['checkpoint list']='checkpoint list q' ['checkpoint delete']='checkpoint delete q --all'
    ['checkpoint set']='checkpoint set q --partition 0 --sequence 0' ['inspect']='inspect'
    ['backup']='backup data copy' ['restore']='restore copy again' ['upgrade']='upgrade data'
    ['bench send']='bench send q --count 10' ['bench receive']='bench receive q --count 10'
    ['bench e2e']='bench e2e q --count 10 --rate 1000' ['bench wire']='bench wire trip --events 10'
    ['bench log']='bench log --list' ['sim']='sim --minutes 1'
    ['serve']='serve --amqp 127.0.0.1:0 --amqps off --http off'
    ['key add']='key add --name k --rights send' ['key list']='key list'
    ['key rotate']='key rotate --name k' ['key remove']='key remove --name k' ['trust']='trust'
    ['demo']='demo --homes 10 --minutes 1' ['version']='version' ['help']='help'
)

# names: every command, in the order in which they are listed.
names() { "$WEIR" help | sed -n 's/^  \([a-z][a-z0-9]*\( [a-z][a-z0-9]*\)\{0,1\}\) .*/\1/p'; }

# name_of LINE: the name alone, which is two words for some.
name_of() {
    local line=$1 word
    for word in hub key group checkpoint bench; do
        [ "${line%% *}" = $word ] && { echo "$line"; return; }
    done
    echo "${line%% *}"
}

# run CLOSED COMMAND: with these of 0, 1 and 2 closed. The exit code is in `code`.
run() {
    local closed=$1 limit=60
    shift
    case $1 in process | serve) limit='-s TERM 1.5' ;; esac
    code=0
    # shellcheck disable=SC2086 # the limit is two words or one
    (
        exec </dev/null >out 2>err
        [[ $closed == *0* ]] && exec <&-
        [[ $closed == *1* ]] && exec >&-
        [[ $closed == *2* ]] && exec 2>&-
        exec timeout --preserve-status $limit "$WEIR" "$@"
    ) || code=$?
}

# clean: every file of the hubs is what it would be anyway.
clean() {
    [ "$(tr -d ' 0-9\n' <data/lock | wc -c)" = 0 ] || fail "$1: data/lock has other words"
}

# around CLOSED: the whole table, in a folder of its own; the exit codes go to codes.CLOSED.
around() {
    local closed=$1 line name
    mkdir "in.$closed"
    cd "in.$closed"
    export WEIR_DATA=data XDG_DATA_HOME=$PWD/xdg
    : >err
    "$WEIR" hub create q --partitions 2 >out 2>err
    seq 20 | "$WEIR" send q --partition 0 >out 2>err
    while read -r line; do
        name=$(name_of "$line")
        # shellcheck disable=SC2086
        [ -n "${try[$name]:-}" ] || fail "nothing is tried with '$name'"
        run "$closed" ${try[$name]}
        echo "$name: $code" >>codes
        "$WEIR" inspect data >inspected 2>&1 || fail "'$name' without $closed: the folder is damaged"
        clean "'$name' without $closed"
        [[ $closed != *1* || ! -s out ]] || fail "'$name' printed into a closed output"
    done < <(names)
    cd ..
}

names | grep -q '^serve' || fail "the commands are not listed"
for closed in none 0 1 2 01 02 12 012; do around $closed & done
for job in $(jobs -p); do wait "$job" || fail "one of them failed"; done
for closed in 0 1 2 01 02 12 012; do
    diff in.none/codes "in.$closed/codes" >out || fail "other exit codes without $closed"
done
! grep -v ': 0$\|^hub adopt: 3$' in.none/codes || fail "a command failed with everything open"

# ---- the end of a closed input is at once ----
cd in.none
code=0
timeout 20 "$WEIR" send q --data data <&- >../out 2>../err || code=$?
cd ..
[ $code = 0 ] || fail "send without an input: $code"
said 'acknowledged 0 events'
