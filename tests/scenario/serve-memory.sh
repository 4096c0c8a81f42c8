#!/bin/bash
# weir serve --in-memory: hubs work, nothing of them touches the disk, and full is said so.
. "$(dirname "$0")/serving.bash"
free='--amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0'

mkdir here
cd here
start --in-memory $free
said 'data    in memory, at most 512 MiB: nothing is kept'
stop
start --in-memory --memory-max 16M $free --hub orders:2:a --json
mv out ready && ln -s ready out
load="--connect $(field amqp) --hub orders"
expect 0 "$WEIR" bench wire publish $load --events 1000
expect 0 "$WEIR" bench wire receive $load --events 1000
ls -l "/proc/$server/fd" | grep -v 'socket:\|pipe:\|anon_inode:\|/dev/\|/here/\(ready\|log\)' >fds || true
[ "$(grep -c -- '->' fds)" = 0 ] || { cat fds; fail "it has files open"; }

code=0
timeout 60 "$WEIR" bench wire publish $load --events 20000 --size 1K >full 2>&1 || code=$?
[ "$code" != 0 ] || fail "20 MB fit into 16"
said 'all of the 16 MiB that may be kept in memory are used' full
expect 0 "$WEIR" bench wire receive $load --events 1000
stop
rm -f out err log ready full fds
[ -z "$(ls -A)" ] || fail "it left $(ls -A)"

start --in-memory --memory-max 8M $free $(seq -f "--hub h%g:1" 20)
stop
expect 2 "$WEIR" serve --in-memory --memory-max 1M
