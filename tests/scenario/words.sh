#!/bin/bash
# What the program says before any command runs: lists, versions and slips, word for word, and where.
. "$(dirname "$0")/serving.bash"
unset WEIR_DATA WEIR_CONNECT WEIR_ADMIN

# says CODE OUT ERR WORDS...: all of it.
says() {
    local want=$1 on_out=$2 on_err=$3
    shift 3
    expect "$want" "$WEIR" "$@"
    printf %s "$on_out" | cmp -s - out || fail "other words than '$on_out' from: $*"
    printf %s "$on_err" | cmp -s - err || fail "other complaints than '$on_err' from: $*"
}
version=$("$WEIR" version | cut -d' ' -f2)
group="usage: weir group COMMAND [options]

  group create HUB/GROUP       make a consumer group
  group list HUB               list the consumer groups of a hub
  group describe HUB/GROUP     show who reads the partitions of a group, and how far behind they are
  group delete HUB/GROUP       delete a consumer group, without asking
"

# ---- versions ----
for words in version --version; do
    says 0 "weir $version
" '' $words
    says 0 "{\"version\":\"$version\"}
" '' $words --json
    says 2 '' "weir: version: unexpected 'x'; try 'weir version --help'
" $words x
done

# ---- lists ----
for words in 'group --help' 'group -h' 'help group' 'group x y --help' 'help group x'; do
    # shellcheck disable=SC2086
    says 0 "$group" '' $words
done
says 2 '' "$group" group
says 2 '' "weir: there is no 'group nonsense'
$group" group nonsense
says 2 '' "weir: there is no 'group nonsense'
$group" group nonsense more
says 0 'usage: weir help [COMMAND] [options]

print this list, or the help of a command

options:
  --data DIR                 the folder of the hubs (or WEIR_DATA; default ./weir-data)
  --help                     this text
' '' help help
expect 0 "$WEIR" --help
cp out all
{
    echo 'usage: weir COMMAND [options]'
    echo
} | cmp -s -n 31 - all || fail "another head"
for command in -h help; do says 0 "$(cat all)
" '' $command; done
[ "$(sed -n '/^  [a-z]/d; 1,2d; p' all | sed 1d)" = \
    'Every command has --help, and --data DIR for the folder of the hubs (or WEIR_DATA;
default ./weir-data). hub, group, key, send, tail, process and checkpoint work on a
server, too: --connect CONNSTR or HOST:PORT (or WEIR_CONNECT). When nobody says where,
the folder and then weir serve on this machine are tried; a folder that weir serve
holds is reached through it.

exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 unreachable (nobody answers, or
another process holds the folder), 5 timed out' ] || fail "other words below the list"
# Every command is there with its words, and has help with the same.
grep '^  [a-z]' all | cut -c 3-29 | sed 's/ *$//' >commands
[ "$(wc -l <commands)" -ge 35 ] || fail "commands are missing"
grep -v '^bench log' commands | while read -r words; do
    # shellcheck disable=SC2046
    expect 0 "$WEIR" $(printf '%s\n' "$words" | tr ' ' '\n' | grep '^[a-z0-9]*$') --help
    [ "$(head -n 1 out)" = "usage: weir $words [options]" ] || fail "another usage of $words"
done

# ---- slips ----
says 2 '' "weir: no command; try 'weir --help'
"
# unknown WORDS GUESS TYPED...
unknown() {
    local words=$1 guess=$2
    shift 2
    [ -n "$guess" ] && guess="did you mean 'weir $guess'?" || guess="try 'weir --help'"
    says 2 '' "weir: unknown command '$words'; $guess
" "$@"
}
unknown xyzzy '' xyzzy
unknown xyzzy '' xyzzy more
unknown xyzzy '' help xyzzy
unknown xyzzy '' help xyzzy more
unknown -x '' -x
unknown --help help --help x
unknown serv serve serv
unknown serv serve serv --data d
unknown serv serve help serv
unknown 'hub crate' 'hub create' hub crate
unknown 'hub crate' 'hub create' hub crate x
unknown hbu 'hub list' hbu list
unknown hbu '' hbu
unknown upgxyde upgrade upgxyde
unknown upgxyze '' upgxyze # three slips make another word
