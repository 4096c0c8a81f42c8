/* credit.c - how many messages a link may carry.
 *
 * Both sides count deliveries from the sender's first. The receiver says how far the sender may
 * count; the sender says how far it has, which is further than it sent when it was asked to drain.
 *
 * Bytes can be limited in the same way, from the attach on, by a property of the receiver's flows:
 *
 *   c1 size 2   a3 10 weir:bytes-limit   80 limit, or a shorter form */
#include "amqp/state.h"

#define LIMIT_NAME "weir:bytes-limit"

void weir__amqp_limit(struct weir__amqp_link *l, uint64_t bytes)
{
    l->limit = bytes ? bytes : 1; /* the first message is always let through */
}

struct weir__amqp_value weir__amqp_limit_value(const struct weir__amqp_link *l,
                                               uint8_t space[WEIR__AMQP_LIMIT_BYTES])
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes written;
    size_t mark;

    if (l->role != WEIR__AMQP_RECEIVER || l->limit == UINT64_MAX) return out;
    weir__amqp_writer_init(&w, space, WEIR__AMQP_LIMIT_BYTES);
    mark = weir__amqp_put_open(&w);
    weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, LIMIT_NAME, strlen(LIMIT_NAME)));
    weir__amqp_put(&w, weir__amqp_unsigned(WEIR__AMQP_ULONG, l->limit));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2);
    if (weir__amqp_writer_finish(&w, &written, NULL) != 0) return out;
    at = weir__amqp_cursor_of(written);
    weir__amqp_read(&at, &out);
    return out;
}

static void take_limit(struct weir__amqp_link *l)
{
    const struct weir__amqp_value *map = &l->s->e->fields.flow.properties;
    struct weir__amqp_value v;

    if (map->type == WEIR__AMQP_MAP && weir__amqp_map_find(map, LIMIT_NAME, &v) &&
        v.type == WEIR__AMQP_ULONG)
        l->limit = v.u ? v.u : UINT64_MAX;
}

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
        take_limit(l);
        return true;
    }
    gap = counted ? count - l->delivery_count : 0;
    if (gap > l->credit)
        return weir__amqp_link_fail(l, ev, WEIR__AMQP_COND_INVALID_FIELD,
                                    "flow.delivery-count %u with a credit of %u from %u", count,
                                    l->credit, l->delivery_count);
    if (gap > 0) l->drain = false;
    l->credit -= gap;
    l->delivery_count = counted ? count : l->delivery_count;
    return true;
}
