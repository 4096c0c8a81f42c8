#!/bin/bash
# The log of weir serve: who came, who was refused, in which form; and a reader that stopped reading.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
free='--amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0 --json'
cc -std=c11 -Wall -Wextra -Werror -o json_check "$here/json_check.c"

# wait_for PATTERN [FILE]: until it is logged.
wait_for() {
    for _ in $(seq 200); do
        grep -q -- "$1" "${2:-log}" && return
        sleep 0.05
    done
    fail "did not log '$1'"
}
# try RULE KEY: publishes one event.
try() {
    timeout 60 "$WEIR" send h --connect "Endpoint=sb://$amqp;SharedAccessKeyName=$1;SharedAccessKey=$2;UseDevelopmentEmulator=true" \
        <<<x >/dev/null 2>&1 || true
}
# plain RULE: a login by SASL PLAIN with a wrong key.
plain() {
    local response="\\0$1\\0wrong" len=$((${#1} + 7))
    exec 9<>"/dev/tcp/${amqp%:*}/${amqp#*:}"
    printf "AMQP\\3\\1\\0\\0\\0\\0\\0\\x$(printf %02x $((23 + len)))\\2\\1\\0\\0\\0\\x53\\x41\\xc0\\x$(printf %02x $((10 + len)))\\2\\xa3\\5PLAIN\\xa0\\x$(printf %02x $len)$response" >&9
    cat <&9 >/dev/null
    exec 9>&-
}
time='^20[0-9-]*T[0-9:]*\.[0-9]\{3\}Z'
peer='#[0-9]* 127\.0\.0\.1:[0-9]*'

# ---- text ----
start --data d --hub h:1 $free
amqp=$(field amqp) http=$(field http)
try RootManageSharedAccessKey SAS_KEY_VALUE
wait_for "$time INFO server $peer: logged in$"
wait_for "$time INFO server $peer: ended after [0-9.]* s"
silent connected log
try RootManageSharedAccessKey wrong
wait_for "$time WARN server $peer: refused: InvalidSignature: "
plain nobody
wait_for "$time WARN server $peer: refused: there is no access rule 'nobody' with this key$"
plain $'a\n\e[2Jb'
wait_for "refused: there is no access rule 'a\\\\x0a\\\\x1b\[2Jb' with this key$"
curl -sS "http://$http/\$weir/hubs" >/dev/null
wait_for "$time WARN http $peer: refused: MissingToken: "
# ---- many are counted: at most ten lines in ten seconds ----
for i in $(seq 30); do curl -sS "http://$http/\$weir/hubs" >/dev/null; done
[ "$(grep -c 'refused: ' log)" -le 20 ] || fail "more than ten lines"
stop
said '[0-9]* more logins were refused within 10 s$' log
more=$(sed -n 's/.* \([0-9]*\) more logins were refused.*/\1/p' log | awk '{ n += $1 } END { print n }')
[ $((more + $(grep -c 'refused: ' log))) = "$(($(grep -c InvalidSig log) + 33))" ] || fail "$more and those that were said are not all"
# ---- mistakes of those who are not logged in, too ----
start --data d $free
http=$(field http)
for i in $(seq 30); do
    exec 9<>"/dev/tcp/${http%:*}/${http##*:}"
    printf 'nonsense\r\n\r\n' >&9
    grep -q '^HTTP/1.1 400 ' <&9 || fail "nonsense is not refused"
    exec 9>&-
done
stop
lines=$(grep -c "$time INFO http $peer: 400: " log)
[ "$lines" -ge 10 ] && [ "$lines" -le 20 ] || fail "$lines lines"
more=$(sed -n 's/.* \([0-9]*\) more lines about clients without a login were left out within 10 s$/\1/p' log | awk '{ n += $1 } END { print n }')
[ $((more + lines)) = 30 ] || fail "$more and those that were said are not all"
# ---- a line names its peer once ----
! grep -E '(127\.0\.0\.1:[0-9]+).*\1' log || fail "a peer is named twice"

# ---- the other forms, and what is asked for ----
start --data d $free --log-format json --log-level debug
amqp=$(field amqp)
plain $'a"b\e'
wait_for '"room":"server","connection":1,"peer":"127.0.0.1:[0-9]*","message":"connected"}'
wait_for '"level":"warn","room":"server","connection":1,"peer":"127.0.0.1:[0-9]*","message":"refused: there is no access rule .a\\"b\\\\x1b. '
stop
./json_check time level room <log >out || fail "no JSON"
start --data d $free --log-format logfmt --log-level warn
amqp=$(field amqp)
try RootManageSharedAccessKey SAS_KEY_VALUE
plain nobody
wait_for '^time=[^ ]* level=warn room=server connection=[0-9]* peer=127.0.0.1:[0-9]* message="refused: .*"$'
stop
silent 'logged in' log
for wrong in '--log-format xml' '--log-level loud'; do
    expect 2 "$WEIR" serve --data d $free $wrong
    said "not '${wrong#* }'" err
done

# ---- nobody reads: the server goes on, and says later what was lost ----
mkfifo pipe
: >out
"$WEIR" serve --data d $free --log-level debug >out 2>pipe &
server=$!
exec 8<pipe
for _ in $(seq 1200); do grep -q '}$' out && break; sleep 0.05; done
http=$(field http)
for i in $(seq 40); do # 25 connections each, two lines of 80 bytes
    curl -sS $(yes "http://$http/livez" | head -25) -H 'Connection: close' -o /dev/null >/dev/null 2>&1 || true
done
curl -sS -m 10 "http://$http/livez" >out || fail "it waits for its reader"
cat <&8 >log &
reader=$!
for _ in $(seq 100); do
    curl -sS "http://$http/livez" >/dev/null
    grep -q 'lines of this log were lost' log && break
    sleep 0.05
done
stop
wait $reader
said 'WARN log: [0-9]* lines of this log were lost: nobody read them$' log
