#!/bin/bash
# weir serve on a machine where a real RabbitMQ holds 5672: it says so, names the process, and what
# it suggests works.
# depends: src/base src/io src/server src/cli
set -eu
skip() { echo "$*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "installing RabbitMQ needs root"
cd "$TMPDIR"
export XDG_DATA_HOME=$TMPDIR/xdg
export ERL_EPMD_PORT=4399 # of its own, to be ended with it
broker=
trap '[ -z "$broker" ] || { kill "$broker" 2>/dev/null; wait; epmd -kill >/dev/null; }' EXIT

# RUNLEVEL=1: the package does not start it.
if ! command -v rabbitmq-server >/dev/null; then
    (export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
        apt-get -q update && apt-get -qy install --no-install-recommends rabbitmq-server) >apt.log 2>&1 ||
        { tail -n 3 apt.log; skip "rabbitmq-server cannot be installed"; }
fi

listens() { (exec 9<>/dev/tcp/127.0.0.1/5672) 2>/dev/null; }
if ! listens; then
    mkdir rabbit
    HOME=$PWD/rabbit RABBITMQ_NODENAME="weir$$@localhost" RABBITMQ_MNESIA_BASE=$PWD/rabbit \
        RABBITMQ_LOG_BASE=$PWD/rabbit RABBITMQ_DIST_PORT=25699 \
        /usr/lib/rabbitmq/bin/rabbitmq-server >rabbit.log 2>&1 &
    broker=$!
    for _ in $(seq 600); do
        listens && break
        kill -0 "$broker" || { tail -n 5 rabbit.log; skip "RabbitMQ does not start"; }
        sleep 0.1
    done
fi

code=0
timeout 20 "$WEIR" serve --data d >out 2>err || code=$?
cat err
[ "$code" = 1 ] || { echo "exit code $code"; exit 1; }
grep -q 'beam.smp (pid [0-9]*) holds port 5672 (RabbitMQ runs in beam.smp); stop that process, or' err

"$WEIR" serve --data d --amqp 127.0.0.1:5673 --json >out 2>err &
server=$!
for _ in $(seq 200); do
    [ -s out ] && break
    sleep 0.05
done
cat out
kill "$server"
wait "$server"
grep -q '"amqp":"127.0.0.1:5673".*sb://localhost:5673;' out
