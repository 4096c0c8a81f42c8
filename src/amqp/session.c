/* session.c - begin, end, flow; the windows of a session.
 *
 * A window counts transfer frames. Ours is as large as the ring of unsettled deliveries has room:
 * a peer that keeps to it can never bring more deliveries than we can remember. It is opened again
 * when half of it was used. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "amqp/state.h"

static size_t ring_bytes(const struct weir__amqp_ring *r)
{
    return ((size_t)r->mask + 1) * sizeof *r->owner +
           (r->settled ? ((size_t)r->mask + 1) / WEIR__AMQP_RING_BLOCK * sizeof *r->settled : 0);
}

/* A ring has no memory before a link comes that has something to remember. In a session that began
 * before trust it becomes larger with the first link after it; the window follows with that link's
 * credit. */
bool weir__amqp_ring_make(struct weir__amqp_session *s, struct weir__amqp_ring *r)
{
    uint32_t mask = s->e->limits.unsettled - 1;
    uint16_t *owner;

    if (r->owner && mask <= r->mask) return true;
    if (mask < r->mask) mask = r->mask;
    owner = calloc((size_t)mask + 1, sizeof *owner);
    if (!owner) return false;
    for (uint32_t id = r->low; r->owner && id != r->next; id++)
        owner[id & mask] = r->owner[id & r->mask];
    if (r->owner) s->e->thing_bytes -= ring_bytes(r);
    free(r->owner);
    free(r->settled);
    r->settled = NULL;
    r->owner = owner;
    r->mask = mask;
    s->e->thing_bytes += ring_bytes(r);
    return true;
}

/* A session under our channel. */
static struct weir__amqp_session *make_session(struct weir__amqp *e, uint16_t channel)
{
    uint32_t unsettled = e->limits.unsettled;
    struct weir__amqp_session *s = calloc(1, sizeof *s);

    if (!s) return NULL;
    if (!weir__amqp_slot_put(&e->ours, channel, s)) {
        free(s);
        return NULL;
    }
    s->e = e;
    s->channel = channel;
    s->in.mask = s->out.mask = unsettled - 1;
    s->incoming_window = unsettled;
    s->next = e->sessions;
    s->back = &e->sessions;
    if (s->next) s->next->back = &s->next;
    e->sessions = s;
    e->session_count++;
    e->thing_bytes += sizeof *s;
    return s;
}

/* Takes it from everywhere; its links go with it, untold. */
void weir__amqp_session_drop(struct weir__amqp_session *s)
{
    struct weir__amqp *e = s->e;

    while (s->links) {
        struct weir__amqp_link *l = s->links;
        weir__amqp_link_drop(l);
        weir__amqp_link_free(l);
    }
    weir__amqp_slot_clear(&e->ours, s->channel);
    if (s->got_begin) weir__amqp_slot_clear(&e->theirs, s->remote_channel);
    *s->back = s->next;
    if (s->next) s->next->back = s->back;
    if (e->run_session == s) e->run_session = NULL;
    if (e->gathered_session == s) e->gathered_session = NULL;
    e->session_count--;
    e->thing_bytes -= sizeof *s + (s->in.owner ? ring_bytes(&s->in) : 0) +
                      (s->out.owner ? ring_bytes(&s->out) : 0);
}

void weir__amqp_session_free(struct weir__amqp_session *s)
{
    if (!s) return;
    weir__amqp_slots_fini(&s->ours);
    weir__amqp_slots_fini(&s->theirs);
    free(s->in.owner);
    free(s->in.settled);
    free(s->out.owner);
    free(s->out.settled);
    free(s);
}

/* Channels whose session the peer has ended are remembered, a bit for each, which counts while there
 * is no other session. Without memory for that they are forgotten. */
static void note_ended(struct weir__amqp *e, uint16_t channel)
{
    size_t bytes = e->o.channel_max / 8u + 1;

    if (!e->ended) {
        e->ended = calloc(1, bytes);
        if (!e->ended) return;
        e->thing_bytes += bytes;
    }
    e->ended[channel / 8] |= (uint8_t)(1u << channel % 8);
}

static bool was_ended(const struct weir__amqp *e, uint16_t channel)
{
    return e->ended && channel <= e->o.channel_max && e->ended[channel / 8] >> channel % 8 & 1;
}

/* No session: Azure's Python client detaches links after it has ended their session, which is passed
 * over; a channel that never had one breaks the connection. */
static void refuse_channel(struct weir__amqp *e, uint16_t channel)
{
    if (!was_ended(e, channel))
        weir__amqp_fail(e, WEIR__AMQP_COND_NOT_ALLOWED, "no session on channel %u", channel);
}

/* The session that a frame is for. NULL: there is none, or we have ended it, and the frame is not
 * looked at; or the connection is broken. */
struct weir__amqp_session *weir__amqp_session_at(struct weir__amqp *e, uint16_t channel)
{
    struct weir__amqp_session *s = weir__amqp_slot(&e->theirs, channel);

    if (!s) refuse_channel(e, channel);
    return s && !s->sent_end ? s : NULL;
}

static int write_begin(struct weir__amqp_session *s, struct weir_error *err)
{
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_BEGIN);
    if (s->got_begin)
        c.begin.remote_channel = weir__amqp_unsigned(WEIR__AMQP_USHORT, s->remote_channel);
    c.begin.next_outgoing_id = weir__amqp_unsigned(WEIR__AMQP_UINT, s->next_outgoing_id);
    c.begin.incoming_window = weir__amqp_unsigned(WEIR__AMQP_UINT, s->incoming_window);
    c.begin.outgoing_window = weir__amqp_unsigned(WEIR__AMQP_UINT, UINT32_MAX);
    c.begin.handle_max = weir__amqp_unsigned(WEIR__AMQP_UINT, s->e->o.handle_max);
    return weir__amqp_write(s->e, s->channel, &c, err);
}

int weir__amqp_begin(struct weir__amqp *e, struct weir__amqp_session **out, struct weir_error *err)
{
    uint32_t channel = weir__amqp_slot_free(&e->ours, e->peer_channel_max);
    struct weir__amqp_session *s;
    int rc;

    if (e->stage >= WEIR__AMQP_STAGE_CLOSING) return weir__fail(err, WEIR_ECLOSED, "begin");
    if (channel > e->peer_channel_max || e->session_count >= e->limits.sessions)
        return weir__fail(err, WEIR_ELIMIT, "no more than %u sessions", e->session_count);
    s = make_session(e, (uint16_t)channel);
    if (!s) return weir__fail(err, WEIR_ENOMEM, "a session");
    rc = write_begin(s, err);
    if (rc != 0) {
        weir__amqp_session_drop(s);
        weir__amqp_session_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

static void write_end(struct weir__amqp_session *s, const struct weir__amqp_error *error)
{
    struct weir__amqp_composite c;
    uint8_t scratch[1280];

    weir__amqp_composite_init(&c, WEIR__AMQP_END);
    c.end.error = weir__amqp_error_value(s->e, error, scratch, sizeof scratch);
    s->sent_end = true;
    for (struct weir__amqp_link *l = s->links; l; l = l->next) l->credit = 0;
    weir__amqp_answer(s->e, s->channel, &c);
}

void weir__amqp_end(struct weir__amqp_session *s, const struct weir__amqp_error *error)
{
    if (s->sent_end || s->e->stage > WEIR__AMQP_STAGE_LIVE) return;
    write_end(s, error);
}

void weir__amqp_session_leave(struct weir__amqp_session *s, const struct weir__amqp_error *error)
{
    if (s->sent_end || !s->got_begin) return;
    for (struct weir__amqp_link *l = s->links; l; l = l->next) weir__amqp_link_leave(l, error);
    write_end(s, error);
}

bool weir__amqp_session_fail(struct weir__amqp_session *s, const char *condition, const char *fmt,
                             ...)
{
    struct weir__amqp *e = s->e;
    char text[WEIR__AMQP_PROBLEM_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    weir__amqp_problem(e, condition, "%s", text);
    write_end(s, &e->problem);
    e->sweep = s;
    return false;
}

static void take_begin(struct weir__amqp_session *s)
{
    const struct weir__amqp_composite *f = &s->e->fields;

    s->got_begin = true;
    s->next_incoming_id = (uint32_t)f->begin.next_outgoing_id.u;
    s->remote_window = (uint32_t)f->begin.incoming_window.u;
    s->peer_handle_max = (uint32_t)f->begin.handle_max.u;
}

/* The peer's own session: answered at once, on the same number when that is free. */
static struct weir__amqp_session *answer_begin(struct weir__amqp *e, uint16_t channel)
{
    uint32_t ours = channel;
    struct weir__amqp_session *s;

    if (e->session_count >= e->limits.sessions) {
        weir__amqp_fail(e, WEIR__AMQP_COND_LIMIT, "more than %u sessions", e->limits.sessions);
        return NULL;
    }
    if (ours > e->peer_channel_max || weir__amqp_slot(&e->ours, ours))
        ours = weir__amqp_slot_free(&e->ours, e->peer_channel_max);
    s = ours <= e->peer_channel_max ? make_session(e, (uint16_t)ours) : NULL;
    if (!s) {
        weir__amqp_fail(e, WEIR__AMQP_COND_LIMIT, "no channel or no memory for a session");
        return NULL;
    }
    s->told = true; /* until the owner knows of it, there is nobody to tell of its end */
    return s;
}

bool weir__amqp_on_begin(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    const struct weir__amqp_value *reply_to = &e->fields.begin.remote_channel;
    bool reply = reply_to->type != WEIR__AMQP_NULL;
    struct weir__amqp_session *s;

    if (channel > e->o.channel_max)
        return weir__amqp_fail(e, WEIR__AMQP_COND_FRAMING, "channel %u, the last is %u", channel,
                               e->o.channel_max);
    if (weir__amqp_slot(&e->theirs, channel))
        return weir__amqp_fail(e, WEIR__AMQP_COND_ILLEGAL_STATE, "channel %u has a session",
                               channel);
    s = reply ? weir__amqp_slot(&e->ours, (uint32_t)reply_to->u) : answer_begin(e, channel);
    if (!s && !reply) return false;
    if (!s || s->got_begin)
        return weir__amqp_fail(e, WEIR__AMQP_COND_INVALID_FIELD,
                               "begin.remote-channel %u, where no session waits",
                               (unsigned)reply_to->u);
    if (!weir__amqp_slot_put(&e->theirs, channel, s))
        return weir__amqp_fail(e, WEIR__AMQP_COND_INTERNAL, "no memory for a session");
    s->remote_channel = channel;
    take_begin(s);
    if (!reply && write_begin(s, NULL) != 0) return weir__amqp_fall(e);
    s->told = false;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_BEGIN,
                                    .session = s,
                                    .fields = &e->fields};
    return !s->sent_end;
}

bool weir__amqp_on_end(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = weir__amqp_slot(&e->theirs, channel);

    (void)ev;
    if (!s) {
        refuse_channel(e, channel);
        return false;
    }
    e->local = s->sent_end;
    s->got_end = true;
    note_ended(e, channel);
    if (!s->sent_end) write_end(s, NULL);
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return false; /* all ends, for a reason of its own */
    e->problem = weir__amqp_error_read(&e->fields.end.error);
    e->sweep = s;
    return false;
}

void weir__amqp_flow_write(struct weir__amqp_session *s, struct weir__amqp_link *l, bool drain)
{
    uint32_t room = weir__amqp_ring_room(&s->in);
    uint8_t space[WEIR__AMQP_LIMIT_BYTES];
    struct weir__amqp_composite c;

    s->incoming_window = room;
    weir__amqp_composite_init(&c, WEIR__AMQP_FLOW);
    if (s->got_begin)
        c.flow.next_incoming_id = weir__amqp_unsigned(WEIR__AMQP_UINT, s->next_incoming_id);
    c.flow.incoming_window = weir__amqp_unsigned(WEIR__AMQP_UINT, room);
    c.flow.next_outgoing_id = weir__amqp_unsigned(WEIR__AMQP_UINT, s->next_outgoing_id);
    c.flow.outgoing_window = weir__amqp_unsigned(WEIR__AMQP_UINT, UINT32_MAX);
    if (l) {
        c.flow.handle = weir__amqp_unsigned(WEIR__AMQP_UINT, l->handle);
        if (l->role == WEIR__AMQP_SENDER || l->got_attach)
            c.flow.delivery_count = weir__amqp_unsigned(WEIR__AMQP_UINT, l->delivery_count);
        c.flow.link_credit = weir__amqp_unsigned(WEIR__AMQP_UINT, l->credit);
        c.flow.drain = weir__amqp_unsigned(WEIR__AMQP_BOOL, drain);
        c.flow.properties = weir__amqp_limit_value(l, space);
    }
    c.flow.echo = weir__amqp_unsigned(WEIR__AMQP_BOOL, 0);
    weir__amqp_answer(s->e, s->channel, &c);
}

/* Called when frames have come or deliveries were settled. */
void weir__amqp_window_refill(struct weir__amqp_session *s)
{
    uint32_t half = (s->in.mask + 1) / 2, room = weir__amqp_ring_room(&s->in);

    if (s->incoming_window <= half && room > s->incoming_window && !s->sent_end &&
        (room > half || !s->incoming_window))
        weir__amqp_flow_write(s, NULL, false);
}

/* How many more frames the peer takes: its window counted from what it has seen. */
static bool take_window(struct weir__amqp_session *s)
{
    const struct weir__amqp_composite *f = &s->e->fields;
    uint32_t seen = (uint32_t)f->flow.next_incoming_id.u, window, flying;

    if (f->flow.next_incoming_id.type == WEIR__AMQP_NULL) seen = 0; /* our first id */
    window = (uint32_t)f->flow.incoming_window.u;
    flying = s->next_outgoing_id - seen;
    if (flying > INT32_MAX)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "flow.next-incoming-id %u, the next is %u", seen,
                                       s->next_outgoing_id);
    s->remote_window = window > flying ? window - flying : 0;
    return true;
}

/* A flow counts for its session even when its link is going. Where the window was shut, all links
 * of the session may have waited for it, and none is named. */
bool weir__amqp_on_flow(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = weir__amqp_session_at(e, channel);
    const struct weir__amqp_value *handle = &e->fields.flow.handle;
    struct weir__amqp_link *l = NULL;
    bool shut = s && !s->remote_window, told = true;

    if (!s || !take_window(s)) return false;
    if (handle->type != WEIR__AMQP_NULL) {
        l = weir__amqp_slot(&s->theirs, (uint32_t)handle->u);
        if (!l)
            return weir__amqp_session_fail(s, WEIR__AMQP_COND_UNATTACHED, "flow for handle %u",
                                           (unsigned)handle->u);
    }
    if (l && l->sent_detach) l = NULL;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_FLOW,
                                    .session = s,
                                    .link = l,
                                    .fields = &e->fields};
    if (l) told = weir__amqp_link_on_flow(l, ev);
    if (ev->type == WEIR__AMQP_EVENT_FLOW && shut && s->remote_window) ev->link = NULL;
    if (s->rests) weir__amqp_pump(s);
    if (e->fields.flow.echo.u && (!l || !l->sent_detach))
        weir__amqp_flow_write(s, l && l->sent_attach ? l : NULL, l && l->drain);
    return told && !e->fallen;
}
