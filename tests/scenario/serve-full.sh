#!/bin/bash
# There is no space left: health and metrics say so, and say so no more when there is.
. "$(dirname "$0")/serving.bash"
command -v curl >/dev/null || { echo "curl is not installed"; exit 77; }

start --in-memory --memory-max 8M --hub other:1 --hub full:1 --amqp 127.0.0.1:0 --amqps off \
    --http 127.0.0.1:0 --json
http=$(field http) string=$(field connection_string)
# fill HUB KILOBYTES
fill() {
    head -c "$2000" /dev/zero | tr '\0' x | fold -w 999 |
        timeout 60 "$WEIR" send "$1" --connect "$string" >out 2>err
}
# health STATUS
health() { [ "$(curl -sS -m 20 -o body -w '%{http_code}' "http://$http/$1")" = "$2" ]; }
# metric NAME: its value.
metric() { curl -sS -m 20 "http://$http/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
# until_true COMMAND...
until_true() {
    for _ in $(seq 200); do
        "$@" && return
        sleep 0.05
    done
    cp body out
    fail "not in time: $*"
}
health health 200 || fail "not healthy"
[ "$(metric weir_disk_size_bytes)" = $((8 << 20)) ] || fail "another size"
free=$(metric weir_disk_free_bytes)
fill other 3000 || fail "no room at all"
[ "$(metric weir_disk_free_bytes)" -lt $((free - 3000000)) ] || fail "not less is free"
! fill full 8000 || fail "8 MB where 5 MB are"
for path in health readyz; do
    until_true health $path 503
    grep -qx '{"status":"unhealthy","message":"There is no space left: events are refused."}' body ||
        fail "$(cat body)"
done
[ "$(metric 'weir_hub_up{hub="full"}')" = 0 ] || fail "it is not up"
health livez 200 || fail "it lives"

# ---- there is room again ----
expect 0 "$WEIR" hub delete other --connect "$string" --admin "http://$http"
until_true health health 200
grep -qx '{"status":"healthy","message":"Service is healthy."}' body || fail "$(cat body)"
[ "$(metric 'weir_hub_up{hub="full"}')" = 1 ] || fail "it is up"
fill full 10 || fail "there is room"
stop
