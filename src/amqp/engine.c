/* engine.c - birth, bytes in and out, and the loop over frames. */
#define _GNU_SOURCE /* explicit_bzero */
#include <assert.h>
#include <stdlib.h>

#include "amqp/state.h"
#include "base/steps.h"

#define INPUT_FIRST_BYTES 4096
#define NUMBER_MAX 65534 /* of channels and handles */
#define UNSETTLED_MIN 64
#define UNSETTLED_MAX 32768
#define QUIET_FRAMES 256 /* without an event, before the owner may look at its clock */

static uint32_t or_default(uint32_t value, uint32_t preset)
{
    return value ? value : preset;
}

static void fill_limits(struct weir__amqp_limits *l, const struct weir__amqp_limits *preset)
{
    l->frame_bytes = or_default(l->frame_bytes, preset->frame_bytes);
    l->input_bytes = or_default(l->input_bytes, preset->input_bytes);
    l->output_bytes = or_default(l->output_bytes, preset->output_bytes);
    l->partial_bytes = or_default(l->partial_bytes, preset->partial_bytes);
    l->sessions = or_default(l->sessions, preset->sessions);
    l->links = or_default(l->links, preset->links);
    l->unsettled = or_default(l->unsettled, preset->unsettled);
    if (l->frame_bytes < WEIR__AMQP_FRAME_MIN) l->frame_bytes = WEIR__AMQP_FRAME_MIN;
}

static void fill_options(struct weir__amqp_options *o)
{
    static const struct weir__amqp_limits before = {8192, 8192, 2048, 4096, 64, 8, 256};
    static const struct weir__amqp_limits after = {65536, 262144, 1048576, 16777216,
                                                   2048,  4096,   8192};

    if (!o->container_id) o->container_id = "weir";
    if (!o->client && !o->mechanisms)
        o->mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_ANONYMOUS) |
                        WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_MSSBCBS);
    o->idle_ms = or_default(o->idle_ms, 30000);
    o->silence_ms = or_default(o->silence_ms, o->idle_ms + o->idle_ms / 2);
    o->handshake_ms = or_default(o->handshake_ms, 10000);
    o->frame_ms = or_default(o->frame_ms, 30000);
    o->message_ms = or_default(o->message_ms, 60000);
    o->close_ms = or_default(o->close_ms, 5000);
    o->handle_max = or_default(o->handle_max, 255);
    fill_limits(&o->before, &before);
    fill_limits(&o->after, &after);
    o->channel_max = or_default(o->channel_max, o->after.sessions - 1);
}

static bool is_ring_size(uint32_t n)
{
    return n >= UNSETTLED_MIN && n <= UNSETTLED_MAX && !(n & (n - 1));
}

static int check_options(const struct weir__amqp_options *o, struct weir_error *err)
{
    if (!is_ring_size(o->before.unsettled) || !is_ring_size(o->after.unsettled))
        return weir__fail(err, WEIR_EINVAL, "unsettled must be a power of two from 64 to %d",
                          UNSETTLED_MAX);
    if (o->channel_max > NUMBER_MAX || o->handle_max > NUMBER_MAX)
        return weir__fail(err, WEIR_EINVAL, "channel-max or handle-max above %d", NUMBER_MAX);
    if (o->client && o->mechanisms & (o->mechanisms - 1))
        return weir__fail(err, WEIR_EINVAL, "a client has one mechanism");
    return 0;
}

/* The output's maximum: one delivery beyond the limit, and the answers. */
static void set_limits(struct weir__amqp *e, const struct weir__amqp_limits *limits)
{
    e->limits = *limits;
    e->out.max = 2 * (size_t)limits->output_bytes + WEIR__AMQP_ANSWER_BYTES;
    e->waiting_max = limits->output_bytes < WEIR__AMQP_WAITING_BYTES ? limits->output_bytes
                                                                     : WEIR__AMQP_WAITING_BYTES;
}

static char *copy_text(const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    char *copy = text ? malloc(size) : NULL;

    if (copy) memcpy(copy, text, size);
    return copy;
}

int weir__amqp_new(struct weir__amqp **out, const struct weir__amqp_options *o,
                   struct weir_error *err)
{
    struct weir__amqp *e = calloc(1, sizeof *e);
    int rc;

    if (!e) return weir__fail(err, WEIR_ENOMEM, "an engine of %zu bytes", sizeof *e);
    e->o = *o;
    fill_options(&e->o);
    e->user = copy_text(o->user);
    e->password = copy_text(o->password);
    e->hostname = copy_text(o->hostname);
    e->container = copy_text(e->o.container_id);
    e->mechanism = WEIR__AMQP_NO_SASL;
    e->peer_frame = e->peer_large_frame = WEIR__AMQP_FRAME_MIN;
    e->peer_channel_max = e->o.channel_max;
    weir__buf_init(&e->early, WEIR__AMQP_ANSWER_BYTES);
    set_limits(e, &e->o.before);
    rc = check_options(&e->o, err);
    if (rc == 0 && (!e->user != !o->user || !e->password != !o->password ||
                    !e->hostname != !o->hostname || !e->container))
        rc = weir__fail(err, WEIR_ENOMEM, "the options of an engine");
    if (rc == 0) rc = weir__amqp_open_write(e, err);
    if (rc == 0 && o->client && !weir__amqp_header_put(e, o->mechanisms ? 3 : 0))
        rc = weir__fail(err, WEIR_ENOMEM, "an output buffer");
    if (rc == 0 && o->client && !o->mechanisms) weir__amqp_early_flush(e);
    if (rc != 0) {
        weir__amqp_free(e);
        return rc;
    }
    *out = e;
    return 0;
}

static void free_secret(char *text)
{
    if (text) explicit_bzero(text, strlen(text));
    free(text);
}

static void release_dead(struct weir__amqp *e)
{
    weir__amqp_link_free(e->dead_link);
    weir__amqp_session_free(e->dead_session);
    e->dead_link = NULL;
    e->dead_session = NULL;
}

void weir__amqp_free(struct weir__amqp *e)
{
    if (!e) return;
    release_dead(e);
    while (e->sessions) {
        struct weir__amqp_session *s = e->sessions;
        weir__amqp_session_drop(s);
        weir__amqp_session_free(s);
    }
    weir__amqp_slots_fini(&e->ours);
    weir__amqp_slots_fini(&e->theirs);
    free(e->ended);
    weir__buf_fini(&e->out);
    weir__buf_fini(&e->early);
    free(e->in);
    free_secret(e->user);
    free_secret(e->password);
    free(e->hostname);
    free(e->container);
    free(e);
}

void weir__amqp_trust(struct weir__amqp *e)
{
    set_limits(e, &e->o.after);
}

bool weir__amqp_closed(const struct weir__amqp *e)
{
    return e->stage == WEIR__AMQP_STAGE_CLOSED;
}

size_t weir__amqp_memory(const struct weir__amqp *e)
{
    size_t slots = e->ours.bytes + e->theirs.bytes;

    for (const struct weir__amqp_session *s = e->sessions; s; s = s->next)
        slots += s->ours.bytes + s->theirs.bytes;
    return sizeof *e + e->in_cap + e->out.cap + e->early.cap + e->partial_bytes + e->thing_bytes +
           slots;
}

size_t weir__amqp_buffered(const struct weir__amqp *e)
{
    return e->in_cap + e->out.cap + e->early.cap + e->partial_bytes + e->thing_bytes;
}

/* The frame at the head has a size already when its first bytes are there: it needs that room.
 * *needed is what it cannot do without, the rest is for speed. */
static size_t input_wanted(const struct weir__amqp *e, size_t *needed)
{
    size_t have = e->in_tail - e->in_head, cap = e->in_cap ? e->in_cap : INPUT_FIRST_BYTES;
    size_t frame = have >= 4 ? weir__load_be32(e->in + e->in_head) : 0, most;

    if (frame > e->limits.frame_bytes) frame = 0;
    most = frame > e->limits.input_bytes ? frame : e->limits.input_bytes;
    *needed = frame > INPUT_FIRST_BYTES ? frame : INPUT_FIRST_BYTES;
    if (*needed > most) *needed = most;
    if (e->in_full && cap <= e->limits.input_bytes / 2) cap *= 2;
    if (cap < frame) cap = frame;
    return cap < most ? cap : most;
}

/* Where the owner has no memory for more, the frame in work must do with little, or is refused. */
static void grow_input(struct weir__amqp *e)
{
    size_t needed, want = input_wanted(e, &needed);
    uint8_t *in;

    if (want <= e->in_cap) return;
    if (!weir__amqp_reserve(e, want - e->in_cap)) {
        want = needed;
        if (want <= e->in_cap) return;
        if (want > INPUT_FIRST_BYTES && !weir__amqp_reserve(e, want - e->in_cap)) {
            weir__amqp_fail(e, WEIR__AMQP_COND_LIMIT, "no memory for a frame of %zu bytes", want);
            return;
        }
    }
    in = realloc(e->in, want);
    if (!in) return;
    e->in_cap = want;
    e->in = in;
}

uint8_t *weir__amqp_input(struct weir__amqp *e, size_t *room)
{
    size_t have = e->in_tail - e->in_head;

    *room = 0;
    if (e->stage == WEIR__AMQP_STAGE_CLOSED || e->lent) return NULL;
    if (e->in_head && have) memmove(e->in, e->in + e->in_head, have);
    e->in_head = 0;
    e->in_tail = have;
    grow_input(e);
    if (!e->in || e->stage == WEIR__AMQP_STAGE_CLOSED) return NULL;
    e->in_full = false;
    *room = e->in_cap - e->in_tail;
    return e->in + e->in_tail;
}

void weir__amqp_received(struct weir__amqp *e, size_t bytes)
{
    assert(bytes <= e->in_cap - e->in_tail);
    e->in_tail += bytes;
    e->in_full = e->in_tail == e->in_cap;
    e->heard = true;
}

void weir__amqp_lost(struct weir__amqp *e)
{
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return;
    weir__amqp_problem(e, WEIR__AMQP_COND_FORCED, "the connection was lost");
    e->local = false;
    weir__amqp_fall(e);
}

struct weir__bytes weir__amqp_output(struct weir__amqp *e)
{
    if (e->gathered_session) weir__amqp_gathered_flush(e);
    if (e->out.len == e->out_head) return weir__bytes_of(NULL, 0);
    return weir__bytes_of(e->out.at + e->out_head, e->out.len - e->out_head);
}

void weir__amqp_compact(struct weir__amqp *e)
{
    e->out.len -= e->out_head;
    memmove(e->out.at, e->out.at + e->out_head, e->out.len);
    e->out_head = 0;
}

/* What was sent is moved away only when its place is needed: nearly always all of it is sent before,
 * and there is nothing to move. No byte is moved more than once on the average. */
uint8_t *weir__amqp_room(struct weir__amqp *e, size_t bytes)
{
    bool worth = e->out_head >= weir__amqp_pending(e) && bytes > e->out.cap - e->out.len;

    if (e->out_head && (worth || bytes > e->out.max - e->out.len)) weir__amqp_compact(e);
    /* With nothing to write nobody would come again, so one delivery always has its place, however
     * large it is. */
    if (!weir__amqp_pending(e)) {
        size_t most = bytes + WEIR__AMQP_ANSWER_BYTES;
        if (most > e->out.max) e->out.max = most;
    } else if (!weir__amqp_reserve(e, weir__buf_growth(&e->out, bytes))) {
        return NULL;
    }
    return weir__buf_room(&e->out, bytes);
}

/* Whether the output has room for the answer to a frame. */
static bool has_room(const struct weir__amqp *e)
{
    return weir__amqp_pending(e) <= weir__amqp_pending_max(e);
}

bool weir__amqp_choked(const struct weir__amqp *e)
{
    return e->in_head != e->in_tail && e->stage != WEIR__AMQP_STAGE_CLOSED && !has_room(e);
}

static void pump_rests(struct weir__amqp *e)
{
    if (!e->rests || e->stage != WEIR__AMQP_STAGE_LIVE) return;
    for (struct weir__amqp_session *s = e->sessions; s; s = s->next) {
        WEIR__STEP();
        if (s->rests) weir__amqp_pump(s);
    }
}

bool weir__amqp_sent(struct weir__amqp *e, size_t bytes)
{
    bool choked = weir__amqp_choked(e);

    assert(bytes <= weir__amqp_pending(e));
    if (!bytes) return false;
    e->out_head += bytes;
    e->spoke_ms = e->now_ms;
    if (e->out_head == e->out.len) e->out_head = e->out.len = 0;
    pump_rests(e);
    return choked && !weir__amqp_choked(e);
}

typedef bool handler(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);

/* Transfers do not come this way. */
static handler *const handlers[] = {
    [WEIR__AMQP_OPEN] = weir__amqp_on_open,
    [WEIR__AMQP_BEGIN] = weir__amqp_on_begin,
    [WEIR__AMQP_ATTACH] = weir__amqp_on_attach,
    [WEIR__AMQP_FLOW] = weir__amqp_on_flow,
    [WEIR__AMQP_DISPOSITION] = weir__amqp_on_disposition,
    [WEIR__AMQP_DETACH] = weir__amqp_on_detach,
    [WEIR__AMQP_END] = weir__amqp_on_end,
    [WEIR__AMQP_CLOSE] = weir__amqp_on_close,
};

/* What may come in this stage: first open, after our close only the peer's. */
static bool is_expected(const struct weir__amqp *e)
{
    if (e->stage == WEIR__AMQP_STAGE_OPENING) return e->fields.kind == WEIR__AMQP_OPEN;
    return e->fields.kind != WEIR__AMQP_OPEN;
}

static bool on_performative(struct weir__amqp *e, const struct weir__amqp_frame *f,
                            struct weir__amqp_event *ev)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(f->body);
    struct weir_error err;
    int rc = weir__amqp_composite_read(&c, WEIR__AMQP_PERFORMATIVES, &e->fields, &err);

    if (rc != 0)
        return weir__amqp_fail(e,
                               rc == WEIR_EINVAL ? WEIR__AMQP_COND_INVALID_FIELD
                                                 : WEIR__AMQP_COND_DECODE,
                               "%s", err.text);
    if (c.at != c.end)
        return weir__amqp_fail(e, WEIR__AMQP_COND_DECODE, "%s with bytes behind it",
                               weir__amqp_kind_name(e->fields.kind));
    if (!is_expected(e))
        return weir__amqp_fail(e, WEIR__AMQP_COND_ILLEGAL_STATE, "%s at the wrong time",
                               weir__amqp_kind_name(e->fields.kind));
    if (e->stage == WEIR__AMQP_STAGE_CLOSING && e->fields.kind != WEIR__AMQP_CLOSE) return false;
    return handlers[e->fields.kind](e, f->channel, ev);
}

static bool is_transfer(struct weir__bytes body)
{
    return body.len > 3 && body.at[0] == 0x00 && body.at[1] == 0x53 && body.at[2] == 0x14;
}

static bool is_long_transfer(struct weir__bytes body)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(body);
    struct weir__amqp_value v;

    if (weir__amqp_load8(&c) != 0 || !weir__amqp_read(&c, &v)) return false;
    if (v.type == WEIR__AMQP_ULONG) return v.u == 0x14;
    return v.type == WEIR__AMQP_SYMBOL && v.bytes.len == 18 &&
           !memcmp(v.bytes.at, "amqp:transfer:list", 18);
}

static bool on_amqp(struct weir__amqp *e, const struct weir__amqp_frame *f,
                    struct weir__amqp_event *ev)
{
    if (!f->body.len) return false; /* alive, no more */
    if (is_transfer(f->body) || is_long_transfer(f->body)) {
        if (e->stage == WEIR__AMQP_STAGE_CLOSING) return false;
        if (e->stage == WEIR__AMQP_STAGE_LIVE)
            return weir__amqp_on_transfer(e, f->channel, f->body, ev);
    }
    return on_performative(e, f, ev);
}

/* One frame from the input. *more is set when there is none. */
static bool on_frame(struct weir__amqp *e, struct weir__amqp_event *ev, bool *more)
{
    bool sasl = e->stage == WEIR__AMQP_STAGE_SASL;
    struct weir__amqp_frame f;
    const char *why;

    WEIR__STEP();
    switch (weir__amqp_frame_read(weir__bytes_of(e->in + e->in_head, e->in_tail - e->in_head),
                                  e->limits.frame_bytes, &f, &why)) {
    case WEIR__AMQP_FRAME_PART: *more = true; return false;
    case WEIR__AMQP_FRAME_BROKEN:
        return weir__amqp_fail(e, WEIR__AMQP_COND_FRAMING, "%s (%u bytes)", why, f.size);
    case WEIR__AMQP_FRAME_WHOLE: break;
    }
    weir__amqp_trace(e, false, e->in + e->in_head, f.size);
    e->in_head += f.size;
    e->frames++;
    if (f.type != (sasl ? WEIR__AMQP_FRAME_SASL : WEIR__AMQP_FRAME_AMQP))
        return weir__amqp_fail(e, WEIR__AMQP_COND_FRAMING, "a frame of type %u", f.type);
    return sasl ? weir__amqp_on_sasl(e, f.body, ev) : on_amqp(e, &f, ev);
}

/* Whether a frame may be taken now. */
static bool may_read(const struct weir__amqp *e)
{
    return e->stage != WEIR__AMQP_STAGE_JUDGED && e->stage != WEIR__AMQP_STAGE_CLOSED &&
           has_room(e);
}

static bool next_event(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    bool more = e->in_head == e->in_tail;

    for (unsigned quiet = 0;; quiet++) {
        if ((e->sweep || e->fallen) && weir__amqp_sweep(e, ev)) return true;
        if (e->run_session && weir__amqp_run_next(e, ev)) return true;
        if (more || !may_read(e)) return false;
        if (quiet == QUIET_FRAMES) {
            *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_PAUSE};
            return true;
        }
        if (e->stage == WEIR__AMQP_STAGE_HEADER || e->stage == WEIR__AMQP_STAGE_HEADER_2) {
            if (weir__amqp_on_header(e, ev, &more)) return true;
        } else if (on_frame(e, ev, &more)) {
            return true;
        }
    }
}

/* Apart, so that the usual way does not pay for it. */
static __attribute__((noinline)) bool next_slowly(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    if (e->dead_link || e->dead_session) release_dead(e);
    e->lent = next_event(e, ev);
    return e->lent;
}

bool weir__amqp_next(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    e->attaching = NULL;
    if (!weir__amqp_take_usual(e, ev)) return next_slowly(e, ev);
    e->lent = true;
    return true;
}
