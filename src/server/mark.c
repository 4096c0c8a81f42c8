#include "server/mark.h"

#include <inttypes.h>

#define ID "com.microsoft:producer-id"
#define EPOCH "com.microsoft:producer-epoch"
#define SEQUENCE "com.microsoft:producer-sequence-number"

#define UNSAID (-1)

/* The epoch travels as a signed number of 16 bits. */
#define EPOCH_MAX INT16_MAX

/* A whole number; UNSAID when it is absent, null or something else. false: negative. */
static bool find_number(const struct weir__amqp_value *map, const char *name, int64_t *out)
{
    struct weir__amqp_value v;

    *out = UNSAID;
    if (!weir__amqp_map_find(map, name, &v)) return true;
    if (v.type < WEIR__AMQP_BYTE || v.type > WEIR__AMQP_LONG) return true;
    *out = v.i;
    return v.i >= 0;
}

static bool find_all(const struct weir__amqp_value *map, struct weir__mark *out)
{
    bool id = find_number(map, ID, &out->id), epoch = find_number(map, EPOCH, &out->epoch),
         sequence = find_number(map, SEQUENCE, &out->sequence);

    return id && epoch && sequence && out->epoch <= EPOCH_MAX && out->sequence <= INT32_MAX;
}

static int fail_range(struct weir__refusal *r)
{
    r->condition = WEIR__COND_RANGE;
    return weir__fail(&r->why, WEIR_EINVAL,
                      "Invalid range for idempotent producer state. Producer Id, Epoch, and "
                      "Sequence Number must be zero or positive.");
}

int weir__mark_open(struct weir__mark *m, const struct weir__amqp_value *properties,
                    struct weir__hub *hub, uint32_t partition, struct weir__refusal *r)
{
    struct weir__log_producer next = {0};
    uint64_t id = 0;
    int rc = 0;

    if (!find_all(properties, m)) return fail_range(r);
    if (m->id == UNSAID) {
        rc = weir__hub_producer_new(hub, &id, &r->why);
        m->id = (int64_t)id;
        if (m->epoch == UNSAID) m->epoch = 0;
    } else if (m->epoch == UNSAID) {
        rc = weir__hub_producer_state(hub, partition, (uint64_t)m->id, &next, &r->why);
        m->epoch = next.epoch;
    }
    if (rc == 0)
        rc = weir__hub_producer_begin(hub, partition, (uint64_t)m->id, (uint16_t)m->epoch, &next,
                                      &r->why);
    if (rc == 0 && m->sequence == UNSAID)
        m->sequence = next.sequence ? (int64_t)next.sequence - 1 : 0;
    return rc;
}

static void put_number(struct weir__amqp_writer *w, const char *name, enum weir__amqp_type type,
                       int64_t value)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, name, strlen(name)));
    weir__amqp_put(w, weir__amqp_signed(type, value));
}

struct weir__amqp_value weir__mark_properties(const struct weir__mark *m,
                                              uint8_t to[WEIR__MARK_BYTES])
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&w, to, WEIR__MARK_BYTES);
    mark = weir__amqp_put_open(&w);
    put_number(&w, ID, WEIR__AMQP_LONG, m->id);
    put_number(&w, EPOCH, WEIR__AMQP_SHORT, m->epoch);
    put_number(&w, SEQUENCE, WEIR__AMQP_INT, m->sequence);
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 6);
    if (weir__amqp_writer_finish(&w, &bytes, NULL) != 0) return out;
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

int weir__mark_read(uint32_t format, struct weir__bytes payload, struct weir__log_producer *out,
                    struct weir_error *err)
{
    struct weir__amqp_batch_walk walk;
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    struct weir__mark mark;
    int rc = 0;

    *out = (struct weir__log_producer){0};
    if (format == WEIR__AMQP_FORMAT_BATCH) {
        rc = weir__amqp_batch_start(&walk, payload, err);
        if (rc == 0) rc = weir__amqp_batch_next(&walk, &payload, err);
        if (rc == 0 && !payload.at) return 0;
    }
    if (rc == 0) rc = weir__amqp_message_scan(&m, payload, WEIR__AMQP_SHALLOW, err);
    if (rc != 0) return rc;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    if (!find_all(&map, &mark))
        return weir__fail(err, WEIR_EINVAL, "a producer's mark is negative or too large");
    if (mark.id <= 0 || mark.epoch == UNSAID || mark.sequence == UNSAID) return 0;
    *out = (struct weir__log_producer){(uint64_t)mark.id, (uint16_t)mark.epoch,
                                       (uint32_t)mark.sequence};
    return 0;
}
