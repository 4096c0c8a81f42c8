/* connection.c - open and close, failures, and the order in which things end. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "amqp/state.h"

#define CONDITION_MAX 128
#define DESCRIPTION_MAX 1024
#define FRAME_USUAL 65536u /* what clients are used to from Azure */

/* Before the AMQP layer is there, frames wait in `early`. */
int weir__amqp_write(struct weir__amqp *e, uint16_t channel, const struct weir__amqp_composite *c,
                     struct weir_error *err)
{
    struct weir__buf *to = e->early_done ? &e->out : &e->early;
    struct weir__amqp_writer w;
    size_t at, size;
    int rc;

    if (e->gathered_session) weir__amqp_gathered_flush(e);
    if (e->out_head && e->out.max - e->out.len < e->peer_frame) weir__amqp_compact(e);
    at = to->len;
    weir__amqp_writer_append(&w, to);
    weir__amqp_put_raw(&w, weir__bytes_of((uint8_t[WEIR__AMQP_FRAME_HEAD]){0}, 8));
    weir__amqp_composite_write(&w, c);
    rc = weir__amqp_writer_finish(&w, NULL, err);
    if (rc != 0) return weir__wrap(err, rc, "writing %s", weir__amqp_kind_name(c->kind));
    size = to->len - at;
    if (size > e->peer_frame && c->kind != WEIR__AMQP_OPEN) {
        to->len = at;
        return weir__fail(err, WEIR_ETOOBIG, "%s of %zu bytes, the peer takes frames of %u",
                          weir__amqp_kind_name(c->kind), size, e->peer_frame);
    }
    weir__amqp_frame_head(to->at + at, (uint32_t)size, WEIR__AMQP_FRAME_AMQP, channel);
    weir__amqp_trace(e, true, to->at + at, size);
    return 0;
}

/* What the peer must hear, or there is no sense in going on. */
void weir__amqp_answer(struct weir__amqp *e, uint16_t channel, const struct weir__amqp_composite *c)
{
    struct weir_error err;

    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return;
    if (weir__amqp_write(e, channel, c, &err) == 0) return;
    weir__amqp_problem(e, WEIR__AMQP_COND_INTERNAL, "%s", err.text);
    weir__amqp_fall(e);
}

/* Cut so that it fits into any frame of the peer's. */
struct weir__amqp_value weir__amqp_error_value(const struct weir__amqp *e,
                                               const struct weir__amqp_error *error,
                                               uint8_t *scratch, size_t room)
{
    size_t most = e->peer_frame / 2 < DESCRIPTION_MAX ? e->peer_frame / 2 : DESCRIPTION_MAX;
    struct weir__amqp_composite c;
    size_t len;

    if (!error || !error->condition.at) return (struct weir__amqp_value){0};
    len = error->condition.len < CONDITION_MAX ? error->condition.len : CONDITION_MAX;
    weir__amqp_composite_init(&c, WEIR__AMQP_ERROR);
    c.error.condition = weir__amqp_bytes(WEIR__AMQP_SYMBOL, error->condition.at, len);
    len = error->description.len < most ? error->description.len : most;
    if (error->description.at)
        c.error.description = weir__amqp_bytes(WEIR__AMQP_STRING, error->description.at, len);
    return weir__amqp_composite_value(&c, scratch, room);
}

/* An error that is itself broken counts as one without a sentence. */
struct weir__amqp_error weir__amqp_error_read(const struct weir__amqp_value *v)
{
    struct weir__amqp_composite c;

    if (v->type == WEIR__AMQP_NULL) return (struct weir__amqp_error){0};
    if (weir__amqp_composite_of(v, WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR), &c, NULL) != 0)
        return weir__amqp_error_of(WEIR__AMQP_COND_DECODE, "an error that could not be read");
    return (struct weir__amqp_error){c.error.condition.bytes, c.error.description.bytes};
}

static void set_problem(struct weir__amqp *e, const char *condition, const char *fmt, va_list args)
{
    vsnprintf(e->problem_text, sizeof e->problem_text, fmt, args);
    e->problem = weir__amqp_error_of(condition, e->problem_text);
    e->local = true;
}

void weir__amqp_problem(struct weir__amqp *e, const char *condition, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    set_problem(e, condition, fmt, args);
    va_end(args);
}

bool weir__amqp_fall(struct weir__amqp *e)
{
    e->stage = WEIR__AMQP_STAGE_CLOSED;
    e->fallen = true;
    return false;
}

static void write_close(struct weir__amqp *e, const struct weir__amqp_error *error)
{
    uint8_t scratch[CONDITION_MAX + DESCRIPTION_MAX + 64];
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_CLOSE);
    c.close.error = weir__amqp_error_value(e, error, scratch, sizeof scratch);
    weir__amqp_answer(e, 0, &c);
}

/* The connection cannot go on. The peer is told when the AMQP layer is there to tell it by: with
 * open first, where we had not said it. */
bool weir__amqp_fail(struct weir__amqp *e, const char *condition, const char *fmt, ...)
{
    bool speaks = e->stage == WEIR__AMQP_STAGE_OPENING || e->stage == WEIR__AMQP_STAGE_LIVE;
    va_list args;

    va_start(args, fmt);
    set_problem(e, condition, fmt, args);
    va_end(args);
    if (speaks) {
        weir__amqp_early_flush(e);
        write_close(e, &e->problem);
    }
    return weir__amqp_fall(e);
}

bool weir__amqp_fail_all(struct weir__amqp *e, const char *condition, const char *fmt, ...)
{
    char text[WEIR__AMQP_PROBLEM_MAX];
    struct weir__amqp_error error;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    error = weir__amqp_error_of(condition, text);
    for (struct weir__amqp_session *s = e->sessions; s; s = s->next)
        if (e->stage == WEIR__AMQP_STAGE_LIVE) weir__amqp_session_leave(s, &error);
    return weir__amqp_fail(e, condition, "%s",
                           text); /* which is the reason, whatever fell before */
}

static bool tell_link(struct weir__amqp *e, struct weir__amqp_link *l, struct weir__amqp_event *ev)
{
    bool told = l->told;

    weir__amqp_link_drop(l);
    if (told) {
        weir__amqp_link_free(l);
        return false;
    }
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_DETACH, .session = l->s, .link = l};
    ev->error = e->problem;
    ev->local = e->local;
    e->dead_link = l;
    return true;
}

/* A session that waits for the peer's end stays, deaf, after the owner was told. */
static bool tell_session(struct weir__amqp *e, struct weir__amqp_session *s,
                         struct weir__amqp_event *ev)
{
    bool told = s->told, over = e->fallen || (s->sent_end && s->got_end);

    s->told = true;
    if (over) weir__amqp_session_drop(s);
    if (told && over) weir__amqp_session_free(s);
    if (told) return false;
    if (over) e->dead_session = s;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_END, .session = s};
    ev->error = e->problem;
    ev->local = e->local;
    return true;
}

/* Links before their session, sessions before the connection. */
bool weir__amqp_sweep(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s;

    while ((s = e->sweep ? e->sweep : e->fallen ? e->sessions : NULL)) {
        if (s->links) {
            if (tell_link(e, s->links, ev)) return true;
            continue;
        }
        e->sweep = NULL;
        if (tell_session(e, s, ev)) return true;
    }
    if (!e->fallen || e->told) return false;
    e->told = true;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_CLOSE};
    ev->error = e->problem;
    ev->local = e->local;
    return true;
}

int weir__amqp_open_write(struct weir__amqp *e, struct weir_error *err)
{
    const char *host = e->hostname, *id = e->o.container_id;
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_OPEN);
    c.open.container_id = weir__amqp_bytes(WEIR__AMQP_STRING, id, strlen(id));
    if (host) c.open.hostname = weir__amqp_bytes(WEIR__AMQP_STRING, host, strlen(host));
    c.open.max_frame_size = weir__amqp_unsigned(WEIR__AMQP_UINT, e->o.after.frame_bytes);
    c.open.channel_max = weir__amqp_unsigned(WEIR__AMQP_USHORT, e->o.channel_max);
    c.open.idle_time_out = weir__amqp_unsigned(WEIR__AMQP_UINT, e->o.idle_ms);
    c.open.properties = e->o.properties;
    return weir__amqp_write(e, 0, &c, err);
}

static uint32_t least(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* The peer may take frames as large as it likes. Ours are no larger than those we take, and no larger
 * than usual, except those of links with large frames. */
bool weir__amqp_on_open(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    uint64_t frame = e->fields.open.max_frame_size.u;

    if (channel != 0)
        return weir__amqp_fail(e, WEIR__AMQP_COND_FRAMING, "an open on channel %u, not on 0",
                               channel);
    if (frame < WEIR__AMQP_FRAME_MIN)
        return weir__amqp_fail(e, WEIR__AMQP_COND_INVALID_FIELD,
                               "open.max-frame-size is %u, the least is %d", (unsigned)frame,
                               WEIR__AMQP_FRAME_MIN);
    e->peer_frame = least(frame, least(e->o.after.frame_bytes, FRAME_USUAL));
    e->peer_large_frame = least(frame, WEIR__AMQP_FRAME_LARGE);
    e->peer_channel_max = (uint32_t)e->fields.open.channel_max.u;
    e->peer_idle_ms = (uint32_t)e->fields.open.idle_time_out.u;
    weir__amqp_early_flush(e);
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return false;
    e->stage = WEIR__AMQP_STAGE_LIVE;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_OPEN, .fields = &e->fields};
    ev->mechanism = e->mechanism;
    return true;
}

bool weir__amqp_on_close(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    (void)channel;
    (void)ev;
    if (e->stage == WEIR__AMQP_STAGE_LIVE) write_close(e, NULL);
    e->local = e->stage == WEIR__AMQP_STAGE_CLOSING;
    e->problem = weir__amqp_error_read(&e->fields.close.error);
    return weir__amqp_fall(e);
}

/* Before the peer's open, close would not be understood: there is only silence. */
void weir__amqp_close(struct weir__amqp *e, const struct weir__amqp_error *error)
{
    if (e->stage >= WEIR__AMQP_STAGE_CLOSING) return;
    if (e->stage < WEIR__AMQP_STAGE_LIVE) {
        e->local = true;
        weir__amqp_fall(e);
        return;
    }
    write_close(e, error);
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return;
    e->stage = WEIR__AMQP_STAGE_CLOSING;
    e->closing_ms = WEIR__AMQP_NOT_YET; /* now_ms may be long ago */
}
