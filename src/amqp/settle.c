/* settle.c - dispositions, both ways.
 *
 * The peer may speak of any range of ids, four thousand million of them in one frame. It is cut to
 * the deliveries that exist and told to the owner as runs of those that are still unsettled, so
 * that the work is bounded by what we remember, and no delivery is told twice. A peer that leaves the
 * oldest delivery unsettled could have us walk over all the others again and again: blocks of ids
 * that were found settled are noted, for they stay so, and are passed over in one step. */
#include <stdlib.h>

#include "amqp/state.h"
#include "base/steps.h"

#define BLOCK WEIR__AMQP_RING_BLOCK
#define NOTED 1u /* beside the first id of a block, whose low bits are 0 */

/* Serial numbers: whether a comes before b. */
static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Cuts first..last to [low, next); false when nothing is left. */
static bool cut_range(const struct weir__amqp_ring *r, uint32_t *first, uint32_t *last)
{
    if (r->low == r->next || is_before(*last, r->low) || !is_before(*first, r->next)) return false;
    if (is_before(*first, r->low)) *first = r->low;
    if (!is_before(*last, r->next)) *last = r->next - 1;
    return true;
}

static void write_disposition(struct weir__amqp_session *s, bool role, uint32_t first,
                              uint32_t last, bool settled, const struct weir__amqp_value *state)
{
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_DISPOSITION);
    c.disposition.role = weir__amqp_unsigned(WEIR__AMQP_BOOL, role);
    c.disposition.first = weir__amqp_unsigned(WEIR__AMQP_UINT, first);
    c.disposition.last = weir__amqp_unsigned(WEIR__AMQP_UINT, last);
    c.disposition.settled = weir__amqp_unsigned(WEIR__AMQP_BOOL, settled);
    c.disposition.state = *state;
    weir__amqp_answer(s->e, s->channel, &c);
}

static void write_outcome(struct weir__amqp_session *s, const struct weir__amqp_settlement *m)
{
    uint8_t inner[1280], outer[1300];
    struct weir__amqp_composite c;
    struct weir__amqp_value state;

    weir__amqp_composite_init(&c, m->outcome);
    if (m->outcome == WEIR__AMQP_REJECTED)
        c.rejected.error = weir__amqp_error_value(s->e, &m->error, inner, sizeof inner);
    state = weir__amqp_composite_value(&c, outer, sizeof outer);
    write_disposition(s, WEIR__AMQP_RECEIVER, m->first, m->last, m->settled, &state);
}

void weir__amqp_gathered_flush(struct weir__amqp *e)
{
    struct weir__amqp_session *s = e->gathered_session;

    if (!s) return;
    e->gathered_session = NULL;
    if (e->stage == WEIR__AMQP_STAGE_LIVE) write_outcome(s, &e->gathered);
}

/* Nobody will settle what is left of a link that goes. */
void weir__amqp_disown(struct weir__amqp_link *l)
{
    struct weir__amqp_ring *r = l->role == WEIR__AMQP_RECEIVER ? &l->s->in : &l->s->out;

    for (uint32_t id = r->low; id != r->next; id++) {
        WEIR__STEP();
        if (weir__amqp_ring_owner(r, id) == l->handle + 1) weir__amqp_ring_clear(r, id, id + 1);
    }
}

/* A note is believed only while it can be true: its place may be left from ids of long ago. */
static bool is_noted(const struct weir__amqp_ring *r, uint32_t id)
{
    return r->settled && r->settled[(id & r->mask) / BLOCK] == (id | NOTED) &&
           !weir__amqp_ring_owner(r, id) && !weir__amqp_ring_owner(r, id + BLOCK - 1);
}

/* Goes on without when there is no memory for notes. */
static void note_block(struct weir__amqp *e, struct weir__amqp_ring *r, uint32_t id)
{
    size_t count = ((size_t)r->mask + 1) / BLOCK;

    if (!r->settled) {
        r->settled = calloc(count, sizeof *r->settled);
        if (r->settled) e->thing_bytes += count * sizeof *r->settled;
    }
    if (r->settled) r->settled[(id & r->mask) / BLOCK] = id | NOTED;
}

/* The first id from `at` to before end that is unsettled; end when there is none. */
static uint32_t pass_settled(struct weir__amqp *e, struct weir__amqp_ring *r, uint32_t at,
                             uint32_t end)
{
    uint32_t since = at; /* all from here on were found settled one by one */

    while (at != end) {
        WEIR__STEP();
        if (at % BLOCK == 0 && end - at >= BLOCK && is_noted(r, at)) {
            at += BLOCK;
            since = at;
            continue;
        }
        if (weir__amqp_ring_owner(r, at)) break;
        at++;
        if (at % BLOCK == 0 && at - since >= BLOCK) note_block(e, r, at - BLOCK);
    }
    return at;
}

static void forget(struct weir__amqp_session *s, uint32_t first, uint32_t last)
{
    if (!cut_range(&s->in, &first, &last)) return;
    weir__amqp_ring_clear(&s->in, first, last + 1);
    if (s->incoming_window <= s->in.mask / 2) weir__amqp_window_refill(s);
}

void weir__amqp_settle(struct weir__amqp_link *l, uint32_t first, uint32_t last,
                       enum weir__amqp_kind outcome, const struct weir__amqp_error *error)
{
    struct weir__amqp_session *s = l->s;
    struct weir__amqp *e = s->e;
    struct weir__amqp_settlement *g = &e->gathered;
    bool settled = l->rcv_mode == WEIR__AMQP_RECEIVE_FIRST;

    if (s->sent_end || e->stage != WEIR__AMQP_STAGE_LIVE) return;
    if (e->gathered_session == s && g->outcome == outcome && g->settled == settled && !error &&
        first == g->last + 1) {
        g->last = last;
    } else {
        weir__amqp_gathered_flush(e);
        *g = (struct weir__amqp_settlement){WEIR__AMQP_RECEIVER, first, last, settled, outcome,
                                            {{0}, {0}}};
        if (error) g->error = *error;
        e->gathered_session = s;
        if (error) weir__amqp_gathered_flush(e);
    }
    if (settled) forget(s, first, last);
}

static enum weir__amqp_kind outcome_of(const struct weir__amqp_value *state,
                                       struct weir__amqp_error *error)
{
    struct weir__amqp_composite c;

    *error = (struct weir__amqp_error){0};
    if (state->type == WEIR__AMQP_NULL ||
        weir__amqp_composite_of(state, WEIR__AMQP_OUTCOMES, &c, NULL) != 0)
        return WEIR__AMQP_KINDS;
    if (c.kind == WEIR__AMQP_REJECTED) *error = weir__amqp_error_read(&c.rejected.error);
    return c.kind;
}

/* A receiver that settles second has spoken: we settle, with its own outcome, and it may forget. */
static void settle_second(struct weir__amqp_session *s, uint32_t first, uint32_t last)
{
    struct weir__amqp_value state = s->e->fields.disposition.state;

    if (!is_before(last, s->out.next)) last = s->out.next - 1;
    write_disposition(s, WEIR__AMQP_SENDER, first, last, true, &state);
}

bool weir__amqp_on_disposition(struct weir__amqp *e, uint16_t channel, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = weir__amqp_session_at(e, channel);
    const struct weir__amqp_composite *f = &e->fields;
    uint32_t first = (uint32_t)f->disposition.first.u, last = first;
    struct weir__amqp_settlement *run = &e->run;

    (void)ev;
    if (!s) return false;
    if (f->disposition.last.type != WEIR__AMQP_NULL) last = (uint32_t)f->disposition.last.u;
    if (is_before(last, first))
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "disposition from %u to %u", first, last);
    run->role = f->disposition.role.u != 0;
    run->settled = f->disposition.settled.u != 0;
    run->outcome = outcome_of(&f->disposition.state, &run->error);
    if (run->role == WEIR__AMQP_RECEIVER && !run->settled) {
        if (run->outcome == WEIR__AMQP_KINDS) return false;
        if (is_before(first, s->out.next)) settle_second(s, first, last);
        run->settled = true;
    }
    if (!run->settled) return false; /* a sender that has not made up its mind */
    if (!cut_range(run->role == WEIR__AMQP_RECEIVER ? &s->out : &s->in, &first, &last))
        return false;
    run->first = first;
    run->last = last;
    e->run_session = s;
    return false; /* weir__amqp_run_next tells */
}

/* The next run of unsettled ids of one link in run.first..run.last; they are settled with it. What
 * happened since the last run may have moved the ring on. */
bool weir__amqp_run_next(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = e->run_session;
    struct weir__amqp_settlement *run = &e->run;
    struct weir__amqp_ring *r = run->role == WEIR__AMQP_RECEIVER ? &s->out : &s->in;
    uint32_t at, end, owner;

    e->run_session = NULL;
    if (!cut_range(r, &run->first, &run->last)) return false;
    at = run->first;
    end = run->last + 1;
    at = pass_settled(e, r, at, end);
    if (at == end) return false;
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_SETTLE, .session = s};
    ev->settle = *run;
    ev->settle.first = at;
    owner = weir__amqp_ring_owner(r, at);
    for (; at != end && weir__amqp_ring_owner(r, at) == owner; at++) WEIR__STEP();
    weir__amqp_ring_clear(r, ev->settle.first, at);
    ev->link = weir__amqp_slot(&s->ours, owner - 1);
    ev->settle.last = at - 1;
    run->first = at;
    if (at != end) e->run_session = s;
    if (r == &s->in && s->incoming_window <= s->in.mask / 2) weir__amqp_window_refill(s);
    return true;
}
