/* clock.c - what time does to a connection: silence, slowness, rest.
 *
 * The engine knows the time of the last tick only. Where it must not be too late, for its own empty
 * frames, it counts from the tick before it spoke; where it must not be too early, for the peer's
 * silence, from the tick after it heard. */
#include <stdlib.h>

#include "amqp/state.h"
#include "base/steps.h"

/* A peer that wants to hear from us more often than this is not obeyed to the letter. */
#define HEARTBEAT_MIN_MS 100

#define SMALL_INPUT_BYTES 4096 /* an input buffer that never had to grow */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A peer that has said nothing, or has not come to the point. Returns when it will be too late. */
static int64_t check_silence(struct weir__amqp *e, int64_t now_ms)
{
    int64_t patience = e->o.silence_ms;

    if (e->stage < WEIR__AMQP_STAGE_LIVE) {
        if (now_ms - e->born_ms >= e->o.handshake_ms)
            weir__amqp_fail(e, WEIR__AMQP_COND_FORCED, "no open within %u ms", e->o.handshake_ms);
        return e->born_ms + e->o.handshake_ms;
    }
    if (e->stage == WEIR__AMQP_STAGE_CLOSING) {
        if (e->closing_ms == WEIR__AMQP_NOT_YET) e->closing_ms = now_ms;
        if (now_ms - e->closing_ms >= e->o.close_ms) {
            weir__amqp_problem(e, WEIR__AMQP_COND_FORCED, "close was not answered");
            weir__amqp_fall(e);
        }
        return e->closing_ms + e->o.close_ms;
    }
    if (e->held) e->heard_ms = now_ms;
    if (now_ms - e->heard_ms >= patience)
        weir__amqp_fail_all(e, WEIR__AMQP_COND_FORCED,
                            "The connection was inactive for more than the allowed %u milliseconds "
                            "and is closed by container '%.64s'.",
                            e->o.silence_ms, e->container);
    return e->heard_ms + patience;
}

/* A frame that comes byte by byte. */
static int64_t check_slowness(struct weir__amqp *e, int64_t now_ms)
{
    if (e->in_head == e->in_tail) return INT64_MAX;
    if (e->stage == WEIR__AMQP_STAGE_JUDGED || weir__amqp_pending(e) > e->limits.output_bytes)
        return INT64_MAX; /* it is we who do not read */
    if (!e->frame_since_ms || e->frame_since != e->frames || e->held) {
        e->frame_since = e->frames;
        e->frame_since_ms = now_ms;
    }
    if (now_ms - e->frame_since_ms >= e->o.frame_ms)
        weir__amqp_fail(e, WEIR__AMQP_COND_FORCED, "a frame took longer than %u ms", e->o.frame_ms);
    return e->frame_since_ms + e->o.frame_ms;
}

/* The oldest message of which not all frames came; when it began, by e->read_ms. */
static int64_t find_oldest(const struct weir__amqp *e)
{
    int64_t oldest = INT64_MAX;

    for (const struct weir__amqp_session *s = e->sessions; s; s = s->next)
        for (const struct weir__amqp_link *l = s->links; l; l = l->next)
            if (l->partial && l->role == WEIR__AMQP_RECEIVER)
                oldest = earlier(oldest, l->partial_ms);
    return oldest;
}

/* A message that comes frame by frame. Links are looked through only when one may be too late. */
static int64_t check_messages(struct weir__amqp *e, int64_t passed_ms)
{
    if (!e->held) e->read_ms += passed_ms;
    if (!e->partials) return INT64_MAX;
    if (e->read_ms >= e->messages_ms) e->messages_ms = find_oldest(e) + e->o.message_ms;
    if (e->read_ms >= e->messages_ms)
        weir__amqp_fail(e, WEIR__AMQP_COND_FORCED, "a message took longer than %u ms",
                        e->o.message_ms);
    return e->now_ms + (e->messages_ms - e->read_ms);
}

static int64_t keep_alive(struct weir__amqp *e, int64_t now_ms)
{
    uint8_t frame[WEIR__AMQP_FRAME_HEAD];
    int64_t every = (int64_t)e->peer_idle_ms * 2 / 5;

    if (!e->peer_idle_ms || e->stage != WEIR__AMQP_STAGE_LIVE) return INT64_MAX;
    if (every < HEARTBEAT_MIN_MS) every = HEARTBEAT_MIN_MS;
    if (now_ms - e->spoke_ms >= every) {
        weir__amqp_frame_head(frame, sizeof frame, WEIR__AMQP_FRAME_AMQP, 0);
        if (!weir__amqp_pending(e) && weir__buf_add(&e->out, frame, sizeof frame))
            weir__amqp_trace(e, true, frame, sizeof frame);
        e->spoke_ms = now_ms;
    }
    return e->spoke_ms + every;
}

void weir__amqp_hold(struct weir__amqp *e, bool held)
{
    e->held = held;
}

static void free_input(struct weir__amqp *e)
{
    free(e->in);
    e->in = NULL;
    e->in_head = e->in_tail = e->in_cap = 0;
}

/* Buffers that nobody needs go back: at once the input of a peer that says little, so that ten
 * thousand of them share a few, the others when the peer has been silent for a while. */
static int64_t take_rest(struct weir__amqp *e, int64_t now_ms)
{
    bool idle_in = e->in && e->in_head == e->in_tail;
    bool idle_out = e->out.at && !weir__amqp_pending(e) && !e->gathered_session;

    if ((!idle_in && !idle_out) || e->lent) return INT64_MAX;
    if (idle_in && e->in_cap <= SMALL_INPUT_BYTES) free_input(e);
    if (now_ms - e->heard_ms < WEIR__AMQP_REST_MS) return e->heard_ms + WEIR__AMQP_REST_MS;
    if (idle_out) weir__buf_fini(&e->out);
    if (idle_in) free_input(e);
    return INT64_MAX;
}

/* Messages were assembled here; the next one may be small. */
void weir__amqp_rest_links(struct weir__amqp *e)
{
    e->rest_due = false;
    for (struct weir__amqp_session *s = e->sessions; s; s = s->next)
        for (struct weir__amqp_link *l = s->links; l; l = l->next) {
            WEIR__STEP();
            if (l->partial || !l->buf.at) continue;
            e->partial_bytes -= l->buf.cap;
            weir__buf_fini(&l->buf);
        }
}

int64_t weir__amqp_tick(struct weir__amqp *e, int64_t now_ms)
{
    int64_t next, passed_ms = e->ticked ? now_ms - e->now_ms : 0;

    if (!e->ticked) e->born_ms = e->spoke_ms = e->heard_ms = now_ms;
    e->ticked = true;
    if (e->heard) e->heard_ms = now_ms;
    e->heard = false;
    e->now_ms = now_ms;
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return INT64_MAX;
    next = check_silence(e, now_ms);
    if (e->stage != WEIR__AMQP_STAGE_CLOSED) next = earlier(next, check_slowness(e, now_ms));
    if (e->stage != WEIR__AMQP_STAGE_CLOSED) next = earlier(next, check_messages(e, passed_ms));
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return now_ms;
    next = earlier(next, keep_alive(e, now_ms));
    next = earlier(next, take_rest(e, now_ms));
    if (!e->in && e->rest_due && !e->lent) weir__amqp_rest_links(e);
    return next;
}
