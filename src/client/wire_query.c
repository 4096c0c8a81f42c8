/* wire_query.c - questions to $management: what a hub is, and how far a partition has come.
 *
 *   request   operation READ, name HUB, type com.microsoft:eventhub or com.microsoft:partition,
 *             partition N, security_token
 *   reply     a map
 *
 * A query is made and awaited by a caller's thread and asked by the loop, as often as connections
 * are lost in between. Who stops waiting abandons it to the loop. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/wire.h"

#define TYPE_HUB "com.microsoft:eventhub"
#define TYPE_PARTITION "com.microsoft:partition"

/* ---- answers ---- */

static int64_t number_in(const struct weir__amqp_value *map, const char *name)
{
    struct weir__amqp_value v;

    if (!weir__amqp_map_find(map, name, &v)) return 0;
    if (v.type == WEIR__AMQP_STRING) { /* offsets */
        char text[24] = "";
        if (v.bytes.len < sizeof text && v.bytes.len) memcpy(text, v.bytes.at, v.bytes.len);
        return strtoll(text, NULL, 10);
    }
    return v.i;
}

static void read_hub(struct weir__wire_query *q, const struct weir__amqp_value *map)
{
    struct weir__amqp_value name;
    size_t len = 0;

    q->hub_info = (struct weir_hub_info){
        .partitions = (uint32_t)number_in(map, "partition_count"),
        .created_ms = number_in(map, "created_at"),
        .groups = (uint32_t)number_in(map, "weir:group_count"), /* only weir serve has the rest */
        .retain_ms = number_in(map, "weir:retain_ms"),
        .retain_bytes = (uint64_t)number_in(map, "weir:retain_bytes"),
    };
    if (weir__amqp_map_find(map, "name", &name) && name.bytes.len < WEIR_NAME_BYTES)
        len = name.bytes.len;
    if (len) memcpy(q->hub_info.name, name.bytes.at, len);
}

static void read_partition(struct weir__wire_query *q, const struct weir__amqp_value *map)
{
    int64_t begin = number_in(map, "begin_sequence_number");
    int64_t last = number_in(map, "last_enqueued_sequence_number");
    int64_t offset = number_in(map, "last_enqueued_offset");
    struct weir__amqp_value empty;

    q->p_info = (struct weir_partition_info){
        .begin_sequence = begin < 0 ? 0 : (uint64_t)begin,
        .next_sequence = last < 0 ? 0 : (uint64_t)last + 1,
        .last_offset = offset < 0 ? 0 : (uint64_t)offset,
        .last_time_ms = last < 0 ? 0 : number_in(map, "last_enqueued_time_utc"),
    };
    if (weir__amqp_map_find(map, "is_partition_empty", &empty) && empty.u)
        q->p_info.begin_sequence = q->p_info.next_sequence;
}

void weir__wire_measure(struct weir__bytes message, struct weir_receiver_metrics *out)
{
    struct weir__amqp_cursor rest;
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    int64_t offset, retrieved_ms;

    if (weir__amqp_message_scan_until(&m, message, WEIR__AMQP_MESSAGE_ANNOTATIONS, &rest, NULL) !=
        0)
        return;
    map = weir__amqp_message_map(&m, WEIR__AMQP_DELIVERY_ANNOTATIONS);
    offset = number_in(&map, "last_enqueued_offset");
    retrieved_ms = number_in(&map, "runtime_info_retrieval_time_utc");
    if (retrieved_ms == 0) return;
    *out = (struct weir_receiver_metrics){
        .last_sequence = (uint64_t)number_in(&map, "last_enqueued_sequence_number"),
        .last_offset = offset < 0 ? 0 : (uint64_t)offset,
        .last_time_ms = number_in(&map, "last_enqueued_time_utc"),
        .retrieved_ms = retrieved_ms,
    };
}

/* ---- the loop ---- */

static struct weir__wire_query *query_of(struct weir__wire_request *r)
{
    return (struct weir__wire_query *)((char *)r - offsetof(struct weir__wire_query, request));
}

static uint32_t put_properties(struct weir__wire_request *r, struct weir__amqp_writer *w)
{
    struct weir__wire_query *q = query_of(r);
    char token[WEIR__ACCESS_TOKEN_MAX + 1];
    int64_t expires_s;
    uint32_t count = 6;

    if (q->wire->told.ours && !*q->partition) {
        weir__wire_put_text(w, "weir:details", "true");
        count += 2;
    }
    weir__wire_put_text(w, "operation", "READ");
    weir__wire_put_text(w, "name", q->hub);
    weir__wire_put_text(w, "type", q->type);
    if (*q->partition) {
        weir__wire_put_text(w, "partition", q->partition);
        count += 2;
    }
    if (weir__wire_token(q->wire, q->claim->audience, &expires_s, token, NULL) == 0) {
        weir__wire_put_text(w, "security_token", token);
        count += 2;
    }
    return count;
}

static void free_query(struct weir__wire_query *q)
{
    weir__cond_fini(&q->changed);
    weir__mutex_fini(&q->lock);
    free(q);
}

static void unlist(struct weir__wire_query *q)
{
    struct weir__wire_query **at = &q->wire->queries;

    while (*at && *at != q) at = &(*at)->next;
    if (*at) *at = q->next;
    if (q->asked) weir__wire_desk_forget(&q->wire->management, &q->request);
    weir__loop_timer_stop(q->wire->loop, &q->timer);
    weir__wire_claim_release(q->claim);
    q->claim = NULL;
}

void weir__wire_query_end(struct weir__wire_query *q, const struct weir_error *why)
{
    struct weir__loop *loop = q->wire->loop;
    bool abandoned;

    unlist(q);
    weir__mutex_lock(&q->lock);
    q->why = *why;
    q->answered = true;
    abandoned = q->abandoned;
    weir__cond_broadcast(&q->changed);
    weir__mutex_unlock(&q->lock);
    if (!abandoned) return;
    weir__loop_unpost(loop, &q->post);
    free_query(q);
}

static void try_later(struct weir__wire_query *q)
{
    struct weir__loop *loop = q->wire->loop;

    weir__loop_timer_start(loop, &q->timer,
                           weir__loop_now_ms(loop) + weir__wire_delay_ms(++q->attempts));
}

static void on_done(struct weir__wire_request *r, enum weir__wire_cure cure,
                    const struct weir__amqp_value *body, const struct weir_error *why)
{
    struct weir__wire_query *q = query_of(r);

    q->asked = false;
    if (why->code == 0) {
        q->wire->useful = true;
        if (*q->partition)
            read_partition(q, body);
        else
            read_hub(q, body);
        weir__wire_query_end(q, why);
    } else if (cure == WEIR__WIRE_FATAL || cure == WEIR__WIRE_CLAIM) {
        weir__wire_query_end(q, why);
    } else {
        try_later(q);
    }
}

void weir__wire_query_advance(struct weir__wire_query *q)
{
    struct weir__wire *w = q->wire;
    char audience[WEIR__WIRE_AUDIENCE_BYTES];
    struct weir_error err, none = {0};

    if (q->asked || q->timer.running || w->stage == WEIR__WIRE_CLOSING) return;
    weir__wire_connect(w);
    if (w->stage != WEIR__WIRE_READY) return;
    if (!q->type) {
        q->told = w->told;
        weir__wire_query_end(q, &none);
        return;
    }
    snprintf(audience, sizeof audience, "sb://%s/%s", w->to.host, q->hub);
    if (!q->claim) q->claim = weir__wire_claim_use(w, audience);
    if (!q->claim) try_later(q); /* there was no memory for it */
    if (!q->claim || !weir__wire_claim_ready(q->claim)) return;
    if (!w->management.request.link &&
        weir__wire_desk_open(&w->management, w, "$management", &err) != 0) {
        weir__wire_break(w, err.text);
        return;
    }
    q->asked = true;
    weir__wire_desk_ask(&w->management, &q->request);
}

static void on_timer(void *arg)
{
    weir__wire_query_advance(arg);
}

static void do_visit(void *arg)
{
    struct weir__wire_query *q = arg;
    struct weir_error none = {0};
    bool abandoned;

    if (!q->listed) {
        q->listed = true;
        q->next = q->wire->queries;
        q->wire->queries = q;
    }
    weir__mutex_lock(&q->lock);
    abandoned = q->abandoned;
    weir__mutex_unlock(&q->lock);
    if (abandoned)
        weir__wire_query_end(q, &none);
    else
        weir__wire_query_advance(q);
}

/* ---- callers ---- */

static int make_query(struct weir__wire_query **out, struct weir__wire *w, const char *hub,
                      const char *type, struct weir_error *err)
{
    struct weir__wire_query *q;
    int rc = type ? weir__wire_check_hub(w, hub, err) : 0;

    if (rc != 0) return rc;
    q = calloc(1, sizeof *q);
    if (!q) return weir__fail(err, WEIR_ENOMEM, "no memory for a question");
    q->wire = w;
    q->type = type;
    q->request.put_properties = put_properties;
    q->request.done = on_done;
    snprintf(q->hub, sizeof q->hub, "%s", hub);
    weir__timer_init(&q->timer, on_timer, q);
    weir__post_init(&q->post, do_visit, q);
    weir__mutex_init(&q->lock);
    weir__cond_init(&q->changed);
    *out = q;
    return 0;
}

/* After an error it is gone. */
static int run_query(struct weir__wire_query *q, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(q->wire->patience_ms);
    struct weir__wire *w = q->wire;
    bool in_time = true, answered;
    int rc;

    weir__loop_post(w->loop, &q->post);
    weir__mutex_lock(&q->lock);
    while (!q->answered && in_time) in_time = weir__cond_wait(&q->changed, &q->lock, deadline_ns);
    answered = q->answered;
    q->abandoned = !answered;
    if (!answered) weir__loop_post(w->loop, &q->post); /* before the loop may free it */
    weir__mutex_unlock(&q->lock);
    if (!answered) return weir__wire_late(w, w->patience_ms, err);
    rc = q->why.code;
    if (rc == 0) return 0;
    if (err) *err = q->why;
    free_query(q);
    return rc;
}

int weir__wire_hub_info(struct weir__backend *b, const char *hub, struct weir_hub_info *out,
                        struct weir_error *err)
{
    struct weir__wire_query *q;
    int rc = make_query(&q, (struct weir__wire *)b, hub, TYPE_HUB, err);

    if (rc == 0) rc = run_query(q, err);
    if (rc != 0) return weir__wrap(err, rc, "hub '%.64s'", hub);
    *out = q->hub_info;
    free_query(q);
    return 0;
}

int weir__wire_partition_info(struct weir__backend *b, const char *hub, uint32_t partition,
                              struct weir_partition_info *out, struct weir_error *err)
{
    struct weir__wire_query *q;
    int rc = make_query(&q, (struct weir__wire *)b, hub, TYPE_PARTITION, err);

    if (rc == 0) {
        snprintf(q->partition, sizeof q->partition, "%" PRIu32, partition);
        rc = run_query(q, err);
    }
    if (rc != 0) return weir__wrap(err, rc, "hub '%.64s', partition %" PRIu32, hub, partition);
    *out = q->p_info;
    free_query(q);
    return 0;
}

int weir__wire_ask_told(struct weir__wire *w, struct weir__wire_told *out, struct weir_error *err)
{
    struct weir__wire_query *q;
    int rc = make_query(&q, w, "", NULL, err);

    if (rc == 0) rc = run_query(q, err);
    if (rc != 0) return rc;
    *out = q->told;
    free_query(q);
    return 0;
}
