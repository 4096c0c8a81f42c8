#!/bin/bash
# A folder with 10 GB of events in 1,024 partitions opens in less than a second after kill -9 with
# all caches dropped, in little memory; an empty hub takes little disk. The bench fills the folder,
# kills, drops, measures and removes it.
# depends: src/base src/log src/amqp src/hub src/cli bench
set -u
DIR=${WEIR_BENCH_DIR:-$BUILD}
NEEDED_MB=16000

if [ "$(id -u)" -ne 0 ] || ! [ -w /proc/sys/vm/drop_caches ]; then
    echo "only root may drop the caches"
    exit 77
fi
free_mb=$(df -Pm "$DIR" | awk 'NR == 2 {print $4}')
if [ "$free_mb" -lt "$NEEDED_MB" ]; then
    echo "$DIR has $free_mb MB free, $NEEDED_MB are needed"
    exit 77
fi
exec "$WEIR" bench log --open --data "$DIR" --strict
