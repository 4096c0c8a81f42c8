/* wire_link.h - links as the load client attaches them: to a partition of a hub, or from one. */
#ifndef WEIR_BENCH_WIRE_LINK_H
#define WEIR_BENCH_WIRE_LINK_H

#include "amqp/engine.h"
#include "bench/wire_target.h"

/* Where a receiver begins, as a filter says it. */
#define WEIR__BENCH_WIRE_FROM_EARLIEST "amqp.annotation.x-opt-offset > '-1'"
#define WEIR__BENCH_WIRE_FROM_LATEST "amqp.annotation.x-opt-offset > '@latest'"

int weir__bench_wire_attach_sender(struct weir__amqp_session *,
                                   const struct weir__bench_wire_target *, uint32_t partition,
                                   struct weir__amqp_link **out, struct weir_error *);

int weir__bench_wire_attach_receiver(struct weir__amqp_session *,
                                     const struct weir__bench_wire_target *, uint32_t partition,
                                     const char *from, uint32_t credit,
                                     struct weir__amqp_link **out, struct weir_error *);

#endif
