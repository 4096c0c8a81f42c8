#!/bin/bash
# Slips of the keyboard and names that are not there: what the program answers, in its own words.
. "$(dirname "$0")/serving.bash"
: >out
: >err
export WEIR_DATA=d

# ---- commands ----
# meant COMMAND MEANT: the guess.
meant() {
    # shellcheck disable=SC2086
    expect 2 "$WEIR" $1
    said "; did you mean 'weir $2'?" err
}
meant srve serve
meant 'tial q' tail
meant 'snd q' send
meant 'hub crate q' 'hub create'
meant 'hbu create q' 'hub create'
meant 'help versoin' version
meant smi sim
meant sexx send # two slips, in a word of four
expect 2 "$WEIR" xyzzy
said "unknown command 'xyzzy'; try 'weir --help'" err
expect 2 "$WEIR" xxm # two slips make any word of three
said "unknown command 'xxm'; try 'weir --help'" err
for word in hub group checkpoint key bench; do
    expect 2 "$WEIR" $word
    said "usage: weir $word COMMAND" err
    said "^  $word [a-z]" err
    expect 2 "$WEIR" $word nonsense-of-all-kinds
    said "there is no '$word nonsense" err
    said "^  $word [a-z]" err
done

# ---- options ----
expect 2 "$WEIR" hub create q --partition 3
said 'did you mean --partitions?' err
expect 2 "$WEIR" send q --patrition=3
said "unknown option '--patrition'; did you mean --partition?" err
expect 2 "$WEIR" send q --dta x
said 'did you mean --data?' err

# ---- the list: what serves comes first, and everything stands in its column ----
"$WEIR" --help >out
[ "$(sed -n 3p out | cut -c1-7)" = '  serve' ] || fail "serve is not the first"
! grep '^  [a-z]' out | grep -v '^.\{29\}  [^ ]' || fail "a line is out of its column"

# ---- names that are not there: the same code and our own words, on a folder and over a connection ----
expect 0 "$WEIR" hub create homes --partitions 1
# missing WORDS COMMAND...: exit code 3 with these, without links to anybody's site.
missing() {
    local words=$1
    shift
    expect 3 "$@"
    said "$words" err
    silent 'aka.ms' err
}
for command in 'send nix' 'tail nix --until-end' 'process nix' 'hub show nix' 'hub delete nix' \
    'hub update nix --partitions 3' 'group list nix' 'group create nix/g' 'group describe nix' \
    'checkpoint list nix' 'key list nix' 'key add nix --rights send'; do
    # shellcheck disable=SC2086
    missing "there is no hub 'nix'" "$WEIR" $command
    silent 'messaging entity' err
done
for command in 'tail homes --group nix --until-end' 'group delete homes/nix' 'checkpoint list homes/nix' \
    'process homes --group nix'; do
    # shellcheck disable=SC2086
    missing "hub 'homes' has no consumer group 'nix'" "$WEIR" $command
done
for command in 'tail homes --until-end' 'send homes' 'checkpoint set homes --sequence 0' \
    'checkpoint delete homes'; do
    # shellcheck disable=SC2086
    missing "9" "$WEIR" $command --partition 9
done

start --json --data d --amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0
for command in 'send nix' 'tail nix --until-end' 'process nix --store memory:x' 'hub show nix' 'hub delete nix' \
    'group list nix' 'key list nix' 'tail homes --group nix --until-end' 'send homes --partition 9'; do
    # shellcheck disable=SC2086
    missing "" "$WEIR" $command
done
stop

# ---- one of something ----
expect 0 "$WEIR" send homes one
for command in 'hub list' 'hub show homes' 'inspect'; do
    # shellcheck disable=SC2086
    expect 0 "$WEIR" $command
    ! grep -E '(^|[^0-9.])1 (partitions|groups|events|batches|segments|hubs|bytes)' out || fail "one of many"
done
