#!/bin/sh
# The program on a folder, as a person or a script uses it: what it prints, where, and how it exits.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cd "$TMPDIR"
cc -std=c11 -Wall -Wextra -Werror -o json_check "$here/json_check.c"

fail() { echo "cli.sh: $*"; exit 1; }

# expect CODE COMMAND...: runs it with the output in out and err.
expect() {
    want=$1
    shift
    code=0
    "$@" >out 2>err </dev/null || code=$?
    [ "$code" = "$want" ] || { cat out err; fail "exit code $code instead of $want from: $*"; }
}
said() { grep -q -- "$1" out || { cat out err; fail "did not print '$1'"; }; }
complained() {
    grep -q -- "$1" err || { cat out err; fail "did not complain '$1'"; }
    grep -qv '^weir: ' err && { cat err; fail "a complaint without 'weir: '"; }
    return 0
}
is() { [ "$1" = "$2" ] || fail "'$1' instead of '$2'"; }

# ---- help and usage ----
expect 0 "$WEIR" --help
said 'usage: weir COMMAND'
said 'exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 unreachable'
for command in 'hub create' 'hub list' 'hub show' 'hub update' 'hub delete' 'hub adopt' send tail serve 'key add' \
    'key list' 'key rotate' 'key remove' trust inspect backup restore upgrade 'bench send' \
    'bench receive' 'bench e2e' 'bench wire' 'bench log' demo 'group create' 'group list' 'group delete' version help; do
    expect 0 "$WEIR" $command --help
    [ -s out ] && [ ! -s err ] || fail "the help of '$command' is not on standard output"
    said usage
    "$WEIR" --help >out
    said "$command"
done
expect 0 "$WEIR" help tail
said 'usage: weir tail HUB'
expect 0 "$WEIR" hub --help
said 'hub delete'
expect 0 "$WEIR" version
said '^weir [0-9]'
is "$("$WEIR" --version)" "$("$WEIR" version)"
! [ -f "$BUILD/weir.pc" ] || grep -q "^Version: $("$WEIR" version | cut -d' ' -f2)$" "$BUILD/weir.pc" ||
    fail "weir.h and CMakeLists.txt name different versions"

expect 2 "$WEIR"
complained "; try 'weir --help'"
expect 2 "$WEIR" nonsense
complained "unknown command 'nonsense'"
expect 2 "$WEIR" hub
expect 2 "$WEIR" hub nonsense
expect 2 "$WEIR" tail
complained 'HUB is missing'
expect 2 "$WEIR" tail a b
complained "unexpected 'b'"
expect 2 "$WEIR" tail h --nonsense
complained "unknown option '--nonsense'; try 'weir tail --help'"
expect 2 "$WEIR" tail h --count
complained '--count needs a value'
expect 2 "$WEIR" tail h --count -5
complained '--count must be a whole number'
expect 2 "$WEIR" tail h --json=yes
expect 2 "$WEIR" tail h -x
expect 2 "$WEIR" send h --key a --partition 1
expect 2 "$WEIR" send h --property novalue
expect 2 "$WEIR" hub create h --partitions 0
expect 2 "$WEIR" hub create h --partitions 1025
expect 2 "$WEIR" hub create h --retention-age 7
complained 'a duration like'
expect 2 "$WEIR" hub create h --retention-bytes lots
for from in nonsense earliest: latestx offset: offset:-1 sequence:x time: time:2026-13-01 \
    time:2026-02-29 time:2026-01-01T25:00 time:2026-01-01x; do
    expect 2 "$WEIR" tail h --from "$from"
    complained "--from '$from' is not a position"
done

# ---- hubs ----
export WEIR_DATA="$TMPDIR/data"
expect 3 "$WEIR" hub list
complained 'there are no hubs'
expect 3 "$WEIR" tail homes
[ ! -e data ] || fail "a folder was made by looking for it"
for command in 'hub create homes' serve; do # what cannot be made is not 'made by hub create'
    expect 3 "$WEIR" $command --data "$TMPDIR/above/data"
    complained 'make the folder above it first'
done
expect 0 "$WEIR" hub create homes --partitions 4 --groups alarm,archive --retention-age 12h \
    --retention-bytes 10G
said 'created hub homes with 4 partitions'
expect 1 "$WEIR" hub create HOMES
complained 'choose another name'
expect 2 "$WEIR" hub create 'a/b'
expect 0 "$WEIR" hub create small --partitions=1
expect 0 "$WEIR" hub list
is "$(cut -d' ' -f1 out | tr '\n' ' ')" 'homes small '
expect 0 "$WEIR" hub show homes
said 'groups      $Default alarm archive'
said '12h, 10G'
is "$(grep -c '^ *[0-3] ' out)" 4
expect 3 "$WEIR" hub show nope
complained "nope.*; 'weir hub list' and 'weir hub show HUB' show what is there"
expect 0 "$WEIR" hub list --data "$TMPDIR/data"
(unset WEIR_DATA WEIR_CONNECT; mkdir -p else; cd else; "$WEIR" hub create here --data weir-data >/dev/null
    "$WEIR" hub list) >out 2>err || fail "the default folder is not ./weir-data"
said '^here '
complained 'using the folder ./weir-data' # nobody said so

# ---- send and tail ----
is "$(seq 1 1000 | "$WEIR" send homes)" 'acknowledged 1000 events'
"$WEIR" tail homes --until-end >got
seq 1 1000 | cmp - got || fail "1000 lines did not come back in order"
is "$("$WEIR" tail homes --until-end --count 3 | tr '\n' ' ')" '1 2 3 '
is "$("$WEIR" tail homes --count 0 | wc -c)" 0
is "$("$WEIR" tail homes --from latest --until-end | wc -c)" 0
"$WEIR" hub show homes >out
is "$(awk '$1 ~ /^[0-3]$/ { n += $2 } END { print n }' out)" 1000

printf 'one\n\nthree' | "$WEIR" send small --property 'unit=°C' --property 'a=b=c' >/dev/null
printf 'a"b\\c\001\037\t\177 h\303\251 \360\237\232\252\n' | "$WEIR" send small --key 'door-"1"' >/dev/null
printf '\377\000\376\n' | "$WEIR" send small --partition 0 >/dev/null
is "$(printf '' | "$WEIR" send small)" 'acknowledged 0 events'
is "$(head -c 1000000 /dev/zero | tr '\0' x | "$WEIR" send small)" 'acknowledged 1 event'
"$WEIR" tail small --until-end --json >events
is "$(wc -l <events)" 6
./json_check partition sequence offset enqueued_time key <events
sed -n 1p events | grep -q '"body":"one","properties":{"unit":"°C","a":"b=c"}}$' || fail "line 1"
sed -n 2p events | grep -q '"key":null,"body":"",' || fail "line 2"
sed -n 3p events | grep -q '"body":"three"' || fail "line 3"
sed -n 4p events | grep -qF '"key":"door-\"1\"","body":"a\"b\\c\u0001\u001f\t' || fail "line 4"
sed -n 5p events | grep -q '"body_base64":"/wD+","properties":{}}$' || fail "line 5"
grep -qv '^{"partition":"0","sequence":[0-5],"offset":"1[0-9]\{15\}","enqueued_time":"20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]\{3\}Z","key":' events &&
    fail "not the form that was promised"
"$WEIR" tail small --until-end --from sequence:4 --count 1 >got
printf '\377\000\376\n' | cmp - got || fail "binary did not come back"

# Every form of --from; small has sequence 0 to 5.
field() { sed -n "$1p" events | sed "s/.*\"$2\":\"*\([^\",]*\).*/\1/"; }
first() { "$WEIR" tail small --json --until-end --count 1 --from "$1" | sed 's/.*"sequence":\([0-9]*\).*/\1/'; }
is "$(first earliest)" 0
is "$(first latest)" ''
is "$(first sequence:3)" 3
is "$(first sequence:6)" ''
is "$(first "offset:$(field 5 offset)")" 4
is "$(first 'offset:1000000000000000')" 0
is "$(first time:0)" 0
is "$(first time:1970-01-01)" 0
is "$(first time:2199-01-01T00:00:00Z)" ''
is "$(first "time:$(field 4 enqueued_time)")" 3
"$WEIR" tail small --json --until-end --from "time:$(field 5 enqueued_time | sed 's/Z$/+00:00/')" \
    --count 1 >out
said '"sequence":4'
expect 2 "$WEIR" tail small --partition 0 --from sequence:99 --until-end
complained 'invalid'
expect 0 "$WEIR" tail homes --from sequence:999 --until-end
is "$(wc -c <out)" 0
"$WEIR" tail homes --group alarm --partition 2 --json --until-end >out
! grep -v '^{"partition":"2"' out || fail "another partition than was asked for"
expect 3 "$WEIR" tail homes --group nope
expect 3 "$WEIR" tail homes --partition 4
complained 'partitions 0 to 3'
expect 3 "$WEIR" send homes --partition 4
expect 3 "$WEIR" send nope
expect 5 "$WEIR" tail small --from latest --timeout 50ms
expect 5 "$WEIR" tail homes --from latest --timeout 50ms

code=0
head -c 1100000 /dev/zero | tr '\0' x | "$WEIR" send small >out 2>err || code=$?
is "$code" 1
complained 'line 1 is longer than 1048576 bytes'
said 'acknowledged 0 events'

# Keys stay together.
for i in 1 2 3; do echo "$i" | "$WEIR" send homes --key same >/dev/null; done
is "$("$WEIR" tail homes --json --until-end | grep '"key":"same"' | cut -d'"' -f4 | sort -u | wc -l)" 1

# ---- following, signals, and the second process ----
mkfifo pipe
: >followed
"$WEIR" tail small >>followed &
tail=$!
until [ "$(wc -l <followed)" -eq 6 ]; do
    kill -0 $tail || fail "tail ended by itself"
    sleep 0.02
done
expect 4 "$WEIR" hub list
complained "process $tail"
expect 4 "$WEIR" inspect
complained "process $tail"
kill -INT $tail
wait $tail || fail "tail was interrupted and said $?"
is "$(wc -l <followed)" 6

(printf 'x\ny\n'; exec sleep 100) >pipe &
writer=$!
"$WEIR" send small <pipe >sent &
send=$!
until grep -qs weir-stop "/proc/$send/task/"*/comm; do # then a signal ends the input, not the command
    kill -0 $send || fail "send ended by itself"
    sleep 0.02
done
kill -TERM $send
code=0
wait $send || code=$?
kill $writer 2>/dev/null || true
is "$code" 0
grep -q '^acknowledged [0-2] events*$' sent || fail "an interrupted send did not say what it had"
{
    code=0
    "$WEIR" tail small --until-end 2>err || code=$?
    echo $code >code
} | head -n 1 >/dev/null
is "$(cat code)" 0 # whoever reads us may leave
[ ! -s err ] || fail "it complained when its reader left"
# Also while it waits for more, when all that it printed went into the pipe.
expect 0 "$WEIR" hub create waiting --partitions 2 --data left
printf 'a\nb\n' | "$WEIR" send waiting --partition 0 --data left >out
for command in 'tail waiting' 'tail waiting --partition 0' 'process waiting' 'process waiting --json'; do
    {
        code=0
        timeout 60 "$WEIR" $command --data left 2>err || code=$?
        echo $code >code
    } | head -n 1 >first
    is "$(cat code) $command" "0 $command"
    [ -s first ] || fail "'$command' printed nothing"
done
[ ! -c /dev/full ] || {
    code=0
    "$WEIR" hub list >/dev/full 2>err || code=$?
    is "$code" 1
    complained 'the output could not be written'
}

# ---- inspect and upgrade ----
expect 0 "$WEIR" inspect
said 'no damage'
expect 0 "$WEIR" inspect data
expect 3 "$WEIR" inspect nowhere
complained 'nowhere: there are no hubs'
mkdir foreign
: >foreign/passwd
for command in 'inspect foreign' 'hub list --data foreign' 'tail homes --data foreign'; do
    expect 3 "$WEIR" $command
    complained 'foreign is no data folder: it has no hubs, but other files; check the path'
done
is "$(ls foreign)" passwd

# ---- without descriptors: nothing is said of the folder ----
printf '#!/bin/sh\nulimit -n $1\nshift\nexec "%s" "$@"\n' "$WEIR" >tight
chmod +x tight
expect 1 ./tight 4 inspect data
said '^  UNREAD   .*no file descriptor left: raise ulimit -n'
said ': no damage in what could be read'
for limit in 8 12 13 16 18 24 40; do
    expect 1 ./tight $limit serve --data data --amqp 127.0.0.1:0 --amqps off --http off
    complained 'serve: fewer than 64 files and sockets can be opened; raise ulimit -n'
done
expect 1 ./tight 7 tail homes --until-end --connect localhost:1
complained 'tail: making a loop: Too many open files'
expect 0 "$WEIR" upgrade data
said 'format version 2, which is the newest'
segment=$(ls data/hub-0000000000000001/*.seg | head -n 1)
cp -r data spoilt
segment=spoilt/${segment#data/}
size=$(wc -c <"$segment")
place=$(grep -abo '500' "$segment" | head -n 1 | cut -d: -f1)
printf 'X' | dd of="$segment" bs=1 seek="$place" conv=notrunc 2>/dev/null
[ "$(wc -c <"$segment")" = "$size" ]
before=$(cat spoilt/*/* | cksum)
expect 1 "$WEIR" inspect spoilt
said "DAMAGE *$segment bytes .* sequence [0-9]* to [0-9]*"
said '1 damaged'
is "$(cat spoilt/*/* | cksum)" "$before"
expect 1 "$WEIR" tail homes --until-end --data spoilt
complained 'weir: tail: partition'
[ "$(wc -l <out)" -ge 800 ] && [ "$(wc -l <out)" -lt 1003 ] || fail "the rest is not served"

# ---- delete ----
expect 0 "$WEIR" hub delete small
expect 3 "$WEIR" hub delete small
expect 0 "$WEIR" hub list
is "$(wc -l <out)" 1

# ---- demo ----
expect 0 "$WEIR" demo --homes 1000 --minutes 3
said '3,000 events'
said 'verified'
! ls -d "$TMPDIR"/weir-demo-* 2>/dev/null || fail "the demo left its folder"
expect 0 "$WEIR" demo --homes 10 --minutes 2 --data kept
expect 0 "$WEIR" tail homes --until-end --data kept
is "$(wc -l <out)" 20
expect 1 "$WEIR" demo --homes 10 --minutes 2 --data kept
expect 2 "$WEIR" demo --homes 0
