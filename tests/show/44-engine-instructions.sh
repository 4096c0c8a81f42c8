#!/bin/bash
# Instructions that the AMQP engine takes for one 100-byte event in a transfer of its own, counted by
# callgrind: out, composed with its annotations; in, up to its outcome; and what it takes to see that
# it is a message. The goals are what it took before receivers were booked.
# depends: src/base src/amqp tests/amqp/instructions.c tests/show/callgrind.bash
set -eu
. "$(dirname "$0")/callgrind.bash"

compile amqp "$BUILD/src/amqp/libweir_amqp.a" "$BUILD/src/base/libweir_base.a"
judge engine-instructions 20000 120000 <<'END'
out 267
in 257
check 100
END
