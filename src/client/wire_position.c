/* wire_position.c - where a receiver begins, as a selector says it:
 *
 *   amqp.annotation.x-opt-NAME > 'VALUE'    or >=
 *
 * in a map of filters under apache.org:selector-filter:string. An event is asked for by the one before
 * it: the service does not take the number of an event that has yet to come. */
#include <inttypes.h>
#include <stdio.h>

#include "client/wire.h"

#define FILTER_NAME "apache.org:selector-filter:string"
#define FILTER_DESCRIPTOR 0x0000468c00000004u

struct weir__amqp_value weir__wire_filter(const char *selector, uint8_t *space, size_t room)
{
    struct weir__amqp_writer w;
    size_t mark;

    weir__amqp_writer_init(&w, space, room);
    mark = weir__amqp_put_open(&w);
    weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, FILTER_NAME, strlen(FILTER_NAME)));
    weir__amqp_put_descriptor(&w, FILTER_DESCRIPTOR);
    weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_STRING, selector, strlen(selector)));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2);
    return weir__wire_written(&w);
}

int weir__wire_find_latest(struct weir__backend *b, const char *hub, uint32_t partition,
                           struct weir_position *p, struct weir_error *err)
{
    struct weir_partition_info info;
    int rc;

    if (p->from != WEIR_FROM_LATEST) return 0;
    rc = weir__wire_partition_info(b, hub, partition, &info, err);
    if (rc != 0) return rc;
    *p = (struct weir_position){.from = WEIR_FROM_EARLIEST};
    if (info.next_sequence > 0)
        *p = (struct weir_position){.from = WEIR_FROM_SEQUENCE,
                                    .after = true,
                                    .value = (int64_t)info.next_sequence - 1};
    return 0;
}

void weir__wire_selector(const struct weir_position *p, char out[WEIR__WIRE_SELECTOR_BYTES])
{
    static const char *const names[] = {[WEIR_FROM_OFFSET] = "offset",
                                        [WEIR_FROM_SEQUENCE] = "sequence-number",
                                        [WEIR_FROM_TIME] = "enqueued-time"};

    if (p->from == WEIR_FROM_EARLIEST || (p->from == WEIR_FROM_SEQUENCE && !p->after && !p->value))
        snprintf(out, WEIR__WIRE_SELECTOR_BYTES, "amqp.annotation.x-opt-offset > '-1'");
    else if (p->from == WEIR_FROM_SEQUENCE && !p->after)
        snprintf(out, WEIR__WIRE_SELECTOR_BYTES,
                 "amqp.annotation.x-opt-sequence-number > '%" PRId64 "'",
                 p->value - (p->value > INT64_MIN));
    else
        snprintf(out, WEIR__WIRE_SELECTOR_BYTES, "amqp.annotation.x-opt-%s %s '%" PRId64 "'",
                 names[p->from], p->after ? ">" : ">=", p->value);
}
