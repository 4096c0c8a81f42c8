/* credit.c - how many messages a link may carry.
 *
 * Both sides count deliveries from the sender's first. The receiver says how far the sender may
 * count; the sender says how far it has, which is further than it sent when it was asked to drain. */
#include "amqp/state.h"

int weir__amqp_flow(struct weir__amqp_link *l, uint32_t credit, bool drain)
{
    if (!weir__amqp_link_usable(l)) return WEIR_ECLOSED;
    if (l->role != WEIR__AMQP_RECEIVER || !l->sent_attach) return WEIR_EINVAL;
    l->credit = credit;
    l->drain = drain;
    weir__amqp_flow_write(l->s, l, drain);
    return 0;
}

void weir__amqp_drained(struct weir__amqp_link *l)
{
    if (!weir__amqp_link_usable(l) || l->role != WEIR__AMQP_SENDER || !l->drain || l->partial)
        return;
    l->delivery_count += l->credit;
    l->credit = 0;
    weir__amqp_flow_write(l->s, l, true);
    l->drain = false;
}

/* As sender, the peer counts credit from the deliveries it has seen. As receiver, the peer says
 * that it has used up credit without sending, because it was asked to. */
bool weir__amqp_link_on_flow(struct weir__amqp_link *l, struct weir__amqp_event *ev)
{
    const struct weir__amqp_composite *f = &l->s->e->fields;
    bool counted = f->flow.delivery_count.type != WEIR__AMQP_NULL;
    uint32_t count = (uint32_t)f->flow.delivery_count.u, credit = (uint32_t)f->flow.link_credit.u;
    uint32_t gap;

    if (l->role == WEIR__AMQP_SENDER) {
        gap = counted ? l->delivery_count - count : l->delivery_count; /* ours begins with 0 */
        if (gap > INT32_MAX)
            return weir__amqp_link_fail(l, ev, WEIR__AMQP_COND_INVALID_FIELD,
                                        "flow.delivery-count %u, ours is %u", count,
                                        l->delivery_count);
        if (f->flow.link_credit.type != WEIR__AMQP_NULL)
            l->credit = credit > gap ? credit - gap : 0;
        l->drain = f->flow.drain.u != 0;
        return true;
    }
    gap = counted ? count - l->delivery_count : 0;
    if (gap > l->credit)
        return weir__amqp_link_fail(l, ev, WEIR__AMQP_COND_INVALID_FIELD,
                                    "flow.delivery-count %u with a credit of %u from %u", count,
                                    l->credit, l->delivery_count);
    l->credit -= gap;
    l->delivery_count = counted ? count : l->delivery_count;
    return true;
}
