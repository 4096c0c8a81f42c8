/* link.c - attach and detach.
 *
 * Links are known by their handles, never by their names: many clients attach under the same name.
 * A name only finds the attach that answers ours. Links are not resumed, and every detach of ours
 * is a closing one. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "amqp/state.h"
#include "base/steps.h"

#define HANDLE_MAX 65534 /* what a ring of deliveries can name */

struct weir__amqp_session *weir__amqp_link_session(const struct weir__amqp_link *l)
{
    return l->s;
}

struct weir__amqp_link *weir__amqp_session_links(const struct weir__amqp_session *s)
{
    return s->links;
}

struct weir__amqp_link *weir__amqp_link_next(const struct weir__amqp_link *l)
{
    return l->next;
}

bool weir__amqp_link_role(const struct weir__amqp_link *l)
{
    return l->role;
}

bool weir__amqp_link_settled(const struct weir__amqp_link *l)
{
    return l->snd_mode == WEIR__AMQP_SEND_SETTLED;
}

bool weir__amqp_link_drain(const struct weir__amqp_link *l)
{
    return l->drain;
}

uint32_t weir__amqp_link_credit(const struct weir__amqp_link *l)
{
    return l->credit;
}

uint64_t weir__amqp_link_max(const struct weir__amqp_link *l)
{
    return l->max_message;
}

struct weir__bytes weir__amqp_link_name(const struct weir__amqp_link *l)
{
    return weir__bytes_of(l->name, l->name_len);
}

void *weir__amqp_link_user(const struct weir__amqp_link *l)
{
    return l->user;
}

void weir__amqp_link_set_user(struct weir__amqp_link *l, void *user)
{
    l->user = user;
}

static struct weir__amqp_link *make_link(struct weir__amqp_session *s, uint32_t handle, bool role,
                                         struct weir__bytes name)
{
    struct weir__amqp_link *l = calloc(1, sizeof *l + name.len);

    if (!l) return NULL;
    if (!weir__amqp_slot_put(&s->ours, handle, l)) {
        free(l);
        return NULL;
    }
    l->s = s;
    l->handle = handle;
    l->role = role;
    l->limit = UINT64_MAX;
    l->frame_max = &s->e->peer_frame;
    l->name_len = name.len;
    if (name.len) memcpy(l->name, name.at, name.len);
    l->next = s->links;
    l->back = &s->links;
    if (l->next) l->next->back = &l->next;
    s->links = l;
    s->e->link_count++;
    s->e->thing_bytes += sizeof *l + name.len;
    return l;
}

/* Takes it from everywhere; what the engine counts no longer has it. */
void weir__amqp_link_drop(struct weir__amqp_link *l)
{
    struct weir__amqp_session *s = l->s;

    if (s->e->stage != WEIR__AMQP_STAGE_CLOSED) weir__amqp_disown(l);
    weir__amqp_slot_clear(&s->ours, l->handle);
    if (l->got_attach) weir__amqp_slot_clear(&s->theirs, l->remote_handle);
    *l->back = l->next;
    if (l->next) l->next->back = l->back;
    if (l->role == WEIR__AMQP_SENDER && l->partial) {
        s->rests--;
        s->e->rests--;
    }
    if (l->role == WEIR__AMQP_RECEIVER && l->partial) s->e->partials--;
    s->e->partial_bytes -= l->buf.cap;
    s->e->link_count--;
    s->e->thing_bytes -= sizeof *l + l->name_len;
}

void weir__amqp_link_free(struct weir__amqp_link *l)
{
    if (!l) return;
    weir__buf_fini(&l->buf);
    free(l);
}

static void write_detach(struct weir__amqp_link *l, bool closed,
                         const struct weir__amqp_error *error)
{
    struct weir__amqp_composite c;
    uint8_t scratch[1280];

    weir__amqp_composite_init(&c, WEIR__AMQP_DETACH);
    c.detach.handle = weir__amqp_unsigned(WEIR__AMQP_UINT, l->handle);
    c.detach.closed = weir__amqp_unsigned(WEIR__AMQP_BOOL, closed);
    c.detach.error = weir__amqp_error_value(l->s->e, error, scratch, sizeof scratch);
    l->sent_detach = true;
    l->credit = 0;
    weir__amqp_answer(l->s->e, l->s->channel, &c);
}

void weir__amqp_link_leave(struct weir__amqp_link *l, const struct weir__amqp_error *error)
{
    if (l->sent_attach && !l->sent_detach) write_detach(l, true, error);
}

/* The owner is told at once; the link stays, deaf, until the peer has answered. */
bool weir__amqp_link_fail(struct weir__amqp_link *l, struct weir__amqp_event *ev,
                          const char *condition, const char *fmt, ...)
{
    struct weir__amqp *e = l->s->e;
    char text[WEIR__AMQP_PROBLEM_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    weir__amqp_problem(e, condition, "%s", text);
    write_detach(l, true, &e->problem);
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return false;
    l->told = true;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_DETACH, .session = l->s, .link = l};
    ev->error = e->problem;
    ev->local = true;
    return true;
}

/* A source or target must not be null: an empty one stands for it. */
static struct weir__amqp_value terminus(const struct weir__amqp_value *v, enum weir__amqp_kind kind,
                                        uint8_t scratch[32])
{
    struct weir__amqp_composite c;

    if (v->type != WEIR__AMQP_NULL) return *v;
    weir__amqp_composite_init(&c, kind);
    return weir__amqp_composite_value(&c, scratch, 32);
}

/* What every attach of a link says. */
static void begin_attach(const struct weir__amqp_link *l, struct weir__amqp_composite *c)
{
    weir__amqp_composite_init(c, WEIR__AMQP_ATTACH);
    c->attach.name = weir__amqp_bytes(WEIR__AMQP_STRING, l->name, l->name_len);
    c->attach.handle = weir__amqp_unsigned(WEIR__AMQP_UINT, l->handle);
    c->attach.role = weir__amqp_unsigned(WEIR__AMQP_BOOL, l->role);
    c->attach.snd_settle_mode = weir__amqp_unsigned(WEIR__AMQP_UBYTE, l->snd_mode);
    c->attach.rcv_settle_mode = weir__amqp_unsigned(WEIR__AMQP_UBYTE, l->rcv_mode);
    if (l->role == WEIR__AMQP_SENDER)
        c->attach.initial_delivery_count = weir__amqp_unsigned(WEIR__AMQP_UINT, l->delivery_count);
}

static int end_attach(struct weir__amqp_link *l, const struct weir__amqp_composite *c,
                      struct weir_error *err)
{
    int rc = weir__amqp_write(l->s->e, l->s->channel, c, err);

    if (rc == 0) l->sent_attach = true;
    return rc;
}

static int write_attach(struct weir__amqp_link *l, const struct weir__amqp_terms *t,
                        struct weir_error *err)
{
    uint8_t source[32], target[32];
    struct weir__amqp_composite c;

    begin_attach(l, &c);
    c.attach.source = terminus(&t->source, WEIR__AMQP_SOURCE, source);
    c.attach.target = terminus(&t->target, WEIR__AMQP_TARGET, target);
    c.attach.offered_capabilities = t->offered_capabilities;
    c.attach.desired_capabilities = t->desired_capabilities;
    c.attach.properties = t->properties;
    if (t->max_message_size)
        c.attach.max_message_size = weir__amqp_unsigned(WEIR__AMQP_ULONG, t->max_message_size);
    return end_attach(l, &c, err);
}

/* The attach before a refusal's detach. The peer's is in fields when any of it is echoed. */
static int write_refusal(struct weir__amqp_link *l, enum weir__amqp_echo echo,
                         struct weir_error *err)
{
    const struct weir__amqp_composite *f = &l->s->e->fields;
    bool source = echo == WEIR__AMQP_ECHO_BOTH, target = source;
    struct weir__amqp_composite c;

    if (echo == WEIR__AMQP_ECHO_THEIRS) {
        source = l->role == WEIR__AMQP_RECEIVER;
        target = !source;
    }
    begin_attach(l, &c);
    if (source) c.attach.source = f->attach.source;
    if (target) c.attach.target = f->attach.target;
    return end_attach(l, &c, err);
}

/* The session must be able to remember what this link leaves unsettled. */
static int take_terms(struct weir__amqp_link *l, const struct weir__amqp_terms *t,
                      struct weir_error *err)
{
    struct weir__amqp_session *s = l->s;
    bool receives = l->role == WEIR__AMQP_RECEIVER;

    l->no_outcomes = t->no_outcomes;
    l->max_message = t->max_message_size ? t->max_message_size : UINT64_MAX;
    l->keep_credit = receives ? t->credit : 0;
    if (!receives && t->no_outcomes) return 0;
    if (weir__amqp_ring_make(s, receives ? &s->in : &s->out)) return 0;
    return weir__fail(err, WEIR_ENOMEM, "the deliveries of a session");
}

static void give_first_credit(struct weir__amqp_link *l)
{
    if (!l->keep_credit) return;
    l->credit = l->keep_credit;
    weir__amqp_flow_write(l->s, l, false);
}

int weir__amqp_attach(struct weir__amqp_session *s, const struct weir__amqp_terms *t,
                      struct weir__amqp_link **out, struct weir_error *err)
{
    uint32_t most = s->got_begin ? s->peer_handle_max : s->e->o.handle_max, handle;
    struct weir__amqp_link *l;
    int rc;

    if (s->sent_end || s->e->stage > WEIR__AMQP_STAGE_LIVE)
        return weir__fail(err, WEIR_ECLOSED, "attach");
    if (t->name.len > WEIR__AMQP_NAME_MAX) return weir__fail(err, WEIR_ETOOBIG, "a link's name");
    if (most > HANDLE_MAX) most = HANDLE_MAX;
    handle = weir__amqp_slot_free(&s->ours, most);
    if (handle > most || s->e->link_count >= s->e->limits.links)
        return weir__fail(err, WEIR_ELIMIT, "no more than %u links", s->e->link_count);
    l = make_link(s, handle, t->role, t->name);
    if (!l) return weir__fail(err, WEIR_ENOMEM, "a link");
    l->snd_mode = t->snd_settle_mode;
    l->rcv_mode = t->rcv_settle_mode;
    rc = take_terms(l, t, err);
    if (rc == 0) rc = write_attach(l, t, err);
    if (rc != 0) {
        weir__amqp_link_drop(l);
        weir__amqp_link_free(l);
        return rc;
    }
    give_first_credit(l);
    *out = l;
    return 0;
}

int weir__amqp_accept(struct weir__amqp_link *l, const struct weir__amqp_terms *t,
                      struct weir_error *err)
{
    const struct weir__amqp_composite *f = &l->s->e->fields;
    struct weir__amqp_terms mine = *t;
    int rc;

    if (!weir__amqp_link_usable(l)) return weir__fail(err, WEIR_ECLOSED, "accept");
    assert(l->s->e->attaching == l && !l->sent_attach);
    if (mine.source.type == WEIR__AMQP_NULL) mine.source = f->attach.source;
    if (mine.target.type == WEIR__AMQP_NULL) mine.target = f->attach.target;
    if (mine.settled && l->role == WEIR__AMQP_SENDER) l->snd_mode = WEIR__AMQP_SEND_SETTLED;
    if (mine.settled && l->role == WEIR__AMQP_RECEIVER) l->rcv_mode = WEIR__AMQP_RECEIVE_FIRST;
    rc = take_terms(l, &mine, err);
    if (rc == 0) rc = write_attach(l, &mine, err);
    if (rc == 0) give_first_credit(l);
    return rc;
}

int weir__amqp_refuse(struct weir__amqp_link *l, const struct weir__amqp_error *error,
                      enum weir__amqp_echo echo, struct weir_error *err)
{
    struct weir_error why;
    int rc;

    if (!weir__amqp_link_usable(l)) return weir__fail(err, WEIR_ECLOSED, "refuse");
    assert(l->s->e->attaching == l && !l->sent_attach);
    rc = write_refusal(l, echo, &why);
    if (rc == 0)
        write_detach(l, true, error);
    else
        weir__amqp_fail(l->s->e, WEIR__AMQP_COND_INTERNAL, "%s", why.text);
    if (rc != 0 && err) *err = why;
    return rc;
}

void weir__amqp_detach(struct weir__amqp_link *l, const struct weir__amqp_error *error)
{
    if (!weir__amqp_link_usable(l)) return;
    if (!l->sent_attach && write_refusal(l, WEIR__AMQP_ECHO_NONE, NULL) != 0)
        weir__amqp_fall(l->s->e);
    else
        write_detach(l, true, error);
}

/* The link that waits for the attach in fields. */
static struct weir__amqp_link *find_waiting(struct weir__amqp_session *s)
{
    const struct weir__amqp_composite *f = &s->e->fields;
    struct weir__bytes name = f->attach.name.bytes;
    struct weir__amqp_link *l = s->links;

    while (l && (l->got_attach || l->role == (f->attach.role.u != 0) || l->name_len != name.len ||
                 memcmp(l->name, name.at, name.len) != 0)) {
        WEIR__STEP();
        l = l->next;
    }
    return l;
}

/* The peer's own link, on the same handle when that is free. */
static struct weir__amqp_link *take_link(struct weir__amqp_session *s, uint32_t handle)
{
    const struct weir__amqp_composite *f = &s->e->fields;
    uint32_t most = s->peer_handle_max, ours = handle;
    struct weir__amqp_link *l;

    if (s->e->link_count >= s->e->limits.links || f->attach.name.bytes.len > WEIR__AMQP_NAME_MAX) {
        weir__amqp_session_fail(s, WEIR__AMQP_COND_LIMIT, "more than %u links, or a name too long",
                                s->e->limits.links);
        return NULL;
    }
    if (most > HANDLE_MAX) most = HANDLE_MAX;
    if (ours > most || weir__amqp_slot(&s->ours, ours)) ours = weir__amqp_slot_free(&s->ours, most);
    l = ours <= most ? make_link(s, ours, !f->attach.role.u, f->attach.name.bytes) : NULL;
    if (!l) {
        weir__amqp_session_fail(s, WEIR__AMQP_COND_LIMIT, "no handle or no memory for a link");
        return NULL;
    }
    l->snd_mode = (uint8_t)f->attach.snd_settle_mode.u;
    l->rcv_mode = (uint8_t)f->attach.rcv_settle_mode.u;
    l->told = true; /* until the owner knows of it */
    return l;
}

bool weir__amqp_on_attach(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = weir__amqp_session_at(e, channel);
    const struct weir__amqp_composite *f = &e->fields;
    uint32_t handle = (uint32_t)f->attach.handle.u;
    struct weir__amqp_link *l;
    bool incoming;

    if (!s) return false;
    if (handle > e->o.handle_max)
        return weir__amqp_fail(e, WEIR__AMQP_COND_FRAMING, "handle %u, the last is %u", handle,
                               e->o.handle_max);
    if (weir__amqp_slot(&s->theirs, handle))
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_HANDLE_IN_USE, "handle %u has a link",
                                       handle);
    if (f->attach.snd_settle_mode.u > WEIR__AMQP_SEND_MIXED ||
        f->attach.rcv_settle_mode.u > WEIR__AMQP_RECEIVE_SECOND)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "attach with an unknown settle mode");
    l = find_waiting(s);
    incoming = !l;
    if (!l) l = take_link(s, handle);
    if (!l) return false;
    if (!weir__amqp_slot_put(&s->theirs, handle, l))
        return weir__amqp_fail(e, WEIR__AMQP_COND_INTERNAL, "no memory for a link");
    l->remote_handle = handle;
    l->got_attach = true;
    if (l->role == WEIR__AMQP_RECEIVER)
        l->delivery_count = (uint32_t)f->attach.initial_delivery_count.u;
    if (l->sent_detach) return false; /* ours crossed it */
    l->told = false;
    e->attaching = incoming ? l : NULL;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_ATTACH,
                                    .session = s,
                                    .link = l,
                                    .fields = f};
    ev->incoming = incoming;
    return true;
}

/* The last thing that is heard of a link. */
bool weir__amqp_on_detach(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = weir__amqp_session_at(e, channel);
    const struct weir__amqp_composite *f = &e->fields;
    uint32_t handle = (uint32_t)f->detach.handle.u;
    struct weir__amqp_link *l;
    bool told, local;

    if (!s) return false;
    l = weir__amqp_slot(&s->theirs, handle);
    if (!l)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_UNATTACHED, "detach of handle %u",
                                       handle);
    local = l->sent_detach;
    told = l->told;
    if (!l->sent_attach && write_refusal(l, WEIR__AMQP_ECHO_NONE, NULL) != 0)
        return weir__amqp_fall(e);
    if (!l->sent_detach) write_detach(l, f->detach.closed.u != 0, NULL);
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return false;
    weir__amqp_link_drop(l);
    weir__amqp_window_refill(s); /* which its unsettled deliveries may have shut for all */
    e->dead_link = l;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_DETACH, .session = s, .link = l};
    ev->error = weir__amqp_error_read(&f->detach.error);
    ev->local = local;
    l->told = true;
    if (!told) return true;
    weir__amqp_link_free(l);
    e->dead_link = NULL;
    return false;
}
