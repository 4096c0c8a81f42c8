#!/bin/bash
# weir serve among peers that mean no good: memory by sum, messages that never end, strangers that fill
# the places, and what /metrics says of it. tests/show/70-attackers.sh is the long form.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"

cc -std=c11 -O1 -Wall -Wextra -Werror -o attack "$here/../show/attack/attack.c"

sign() { # HUB: a token for it, as a client makes it
    local until=$(($(date +%s) + 3600)) signature
    signature=$(printf 'sb%%3A%%2F%%2Flocalhost%%2F%s\n%s' "$1" "$until" |
        openssl dgst -sha256 -hmac SAS_KEY_VALUE -binary | base64 | sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g')
    echo "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2F$1&sig=$signature&se=$until&skn=RootManageSharedAccessKey"
}
metric() { curl -s "http://$http/metrics" | sed -n "s/^$1 //p"; }
# wait_until SECONDS COMMAND...
wait_until() {
    local left=$(($1 * 20))
    shift
    until "$@"; do
        ((left-- > 0)) || fail "never: $*"
        sleep 0.05
    done
}
below() { [ "$(metric "$1")" -le "$2" ]; }
above() { [ "$(metric "$1")" -gt "$2" ]; }
# begin ARGS...: an attacker that holds on; `ended` is what it said at last.
begin() {
    coproc ./attack "$@"
    read -r -t 60 ended <&"${COPROC[0]}" || true
    [ "$ended" = ready ] || fail "attack $*: $ended"
}
finish() {
    local out=${COPROC[0]} in=${COPROC[1]} pid=$COPROC_PID
    eval "exec $in>&-"
    read -r -t 60 ended <&"$out" || true
    wait "$pid" || true
}

start --data d $free --hub eh1:2 --buffers 8M --stranger-buffers 1M --strangers-per-address 10 \
    --connections-max 40 --message-timeout 3s --json
amqp=$(field amqp) http=$(field http)
port=${amqp##*:} token=$(sign eh1)

# ---- messages without an end: within the budget, refused beyond it, gone after their time ----
begin hold "$port" 20 900000 sb://localhost/eh1 "$token" eh1
above weir_buffer_refused_total 0 || fail "nothing was refused"
above weir_buffer_bytes 4000000 || fail "the budget is not used"
below weir_buffer_bytes 8388608 || fail "more than the budget"
wait_until 30 below weir_buffer_bytes 200000
finish
[ "$ended" = "20 of 20 closed" ] || fail "$ended"
silent 'WARN\|ERROR' log

# ---- others publish meanwhile and afterwards ----
expect 0 ./attack measure "$port" 1 0 sb://localhost/eh1 "$token" eh1
said 'failed=0 '

# ---- strangers of one address: their oldest goes; those who are known stay ----
begin crowd "$port" 15
[ "$(metric weir_strangers_evicted_total)" = 5 ] || fail "evicted: $(metric weir_strangers_evicted_total)"
finish
[ "$ended" = "5 of 15 closed" ] || fail "$ended"
stop

# ---- all places are taken: the oldest stranger of all goes, and a client with a token gets in ----
start --data d $free --connections-max 8 --json
amqp=$(field amqp) http=$(field http)
port=${amqp##*:}
begin crowd "$port" 8
expect 0 ./attack measure "$port" 1 0 sb://localhost/eh1 "$token" eh1
said 'failed=0 '
above weir_strangers_evicted_total 0 || fail "nobody had to go"
finish
stop

# ---- what is said of turns, and of limits that are none ----
start --data d $free --json
http=$(field http)
curl -s "http://$http/metrics" >out
said '^weir_loop_turn_seconds_bucket{le="0.005"} [0-9]'
said '^weir_loop_turn_seconds_count [1-9]'
stop
expect 2 "$WEIR" serve --data d $free --buffers 1M
said '8M or more' err
expect 2 "$WEIR" serve --data d $free --message-timeout 10ms
said '1s or more' err
exit 0
