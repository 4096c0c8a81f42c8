#include "bench/wire_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_BYTES (WEIR__HUB_NAME_MAX + 64)
#define FILTER_BYTES 128
#define ENDPOINT_BYTES (ADDRESS_BYTES + FILTER_BYTES + 64)
#define FILTER_NAME "apache.org:selector-filter:string"
#define FILTER_DESCRIPTOR 0x0000468c00000004u

static struct weir__amqp_value text_value(const char *text)
{
    return weir__amqp_bytes(WEIR__AMQP_STRING, text, strlen(text));
}

int weir__bench_wire_attach_sender(struct weir__amqp_session *session,
                                   const struct weir__bench_wire_target *t, uint32_t partition,
                                   struct weir__amqp_link **out, struct weir_error *err)
{
    struct weir__amqp_terms terms = {.role = WEIR__AMQP_SENDER};
    struct weir__amqp_composite target;
    uint8_t space[ENDPOINT_BYTES];
    char address[ADDRESS_BYTES];
    int len = snprintf(address, sizeof address, "%s/Partitions/%" PRIu32, t->hub, partition);

    weir__amqp_composite_init(&target, WEIR__AMQP_TARGET);
    target.target.address = text_value(address);
    terms.name = weir__bytes_of(address, (size_t)len);
    terms.target = weir__amqp_composite_value(&target, space, sizeof space);
    return weir__amqp_attach(session, &terms, out, err);
}

/* The map of one filter: its name, and the selector described by the filter's number. */
static struct weir__amqp_value write_filter(const char *from, uint8_t to[FILTER_BYTES])
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&w, to, FILTER_BYTES);
    mark = weir__amqp_put_open(&w);
    weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, FILTER_NAME, strlen(FILTER_NAME)));
    weir__amqp_put_descriptor(&w, FILTER_DESCRIPTOR);
    weir__amqp_put(&w, text_value(from));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2);
    if (weir__amqp_writer_finish(&w, &bytes, NULL) != 0) return out;
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

int weir__bench_wire_attach_receiver(struct weir__amqp_session *session,
                                     const struct weir__bench_wire_target *t, uint32_t partition,
                                     const char *from, uint32_t credit,
                                     struct weir__amqp_link **out, struct weir_error *err)
{
    struct weir__amqp_terms terms = {.role = WEIR__AMQP_RECEIVER, .credit = credit};
    uint8_t space[ENDPOINT_BYTES], filter[FILTER_BYTES];
    struct weir__amqp_composite source;
    char address[ADDRESS_BYTES];
    int len = snprintf(address, sizeof address, "%s/ConsumerGroups/$Default/Partitions/%" PRIu32,
                       t->hub, partition);

    weir__amqp_composite_init(&source, WEIR__AMQP_SOURCE);
    source.source.address = text_value(address);
    source.source.filter = write_filter(from, filter);
    terms.name = weir__bytes_of(address, (size_t)len);
    terms.source = weir__amqp_composite_value(&source, space, sizeof space);
    return weir__amqp_attach(session, &terms, out, err);
}
