/* wire_cbs.h - $cbs from the client's side: a link for requests, one for replies, and one request,
 * put-token. */
#ifndef WEIR_BENCH_WIRE_CBS_H
#define WEIR_BENCH_WIRE_CBS_H

#include "amqp/engine.h"
#include "bench/wire_target.h"

/* Zeroed at birth; its links end with the connection. */
struct weir__bench_wire_cbs {
    struct weir__amqp_link *request, *reply;
    bool asked;
};

/* Begins a session for both links. */
int weir__bench_wire_cbs_attach(struct weir__bench_wire_cbs *, struct weir__amqp *,
                                struct weir_error *);

static inline bool weir__bench_wire_cbs_owns(const struct weir__bench_wire_cbs *c,
                                             const struct weir__amqp_link *link)
{
    return link && (link == c->request || link == c->reply);
}

/* An event of one of its links: sends the token when it may, and reads the reply. WEIR_EDENIED: the
 * token was refused. */
int weir__bench_wire_cbs_event(struct weir__bench_wire_cbs *,
                               const struct weir__bench_wire_target *,
                               const struct weir__amqp_event *, bool *accepted,
                               struct weir_error *);

#endif
