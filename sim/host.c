/* host.c - a copy of the program: drives its control as a processor does, with a handler for each
 * partition that was started. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/oracle.h"
#include "sim/world.h"

#define WORK_MS 500
#define LEAVE_MS 20000 /* weir_processor_stop waits so long */

static const struct weir__checkpoint_policy by_hand;

int64_t weir__host_clock(const struct world *w, const struct host *h)
{
    return w->now_ms + h->skew_ms;
}

static uint32_t index_of(const struct world *w, const struct host *h)
{
    return (uint32_t)(h - w->hosts);
}

/* ---- birth and death ---- */

void weir__host_start(struct world *w, uint32_t host, const char *id)
{
    struct host *h = &w->hosts[host];
    uint32_t life = h->life + 1;
    struct weir__control_options o = {
        .weight = 1,
        .partitions = w->partitions,
        .beat_ms = BEAT_MS,
        .expire_ms = EXPIRE_MS,
        .settle_ms = 300,
        .start_ms = 2000,
        .handover_ms = HANDOVER_MS,
        .poll_ms = 50,
        .sabotage_local_clock = w->options.sabotage == WEIR__SIM_LOCAL_CLOCK,
        .sabotage_steal_unseen = w->options.sabotage == WEIR__SIM_STEAL_UNSEEN,
    };
    int rc;

    assert(!h->up);
    memset(h, 0, sizeof *h);
    h->up = true;
    h->life = life;
    h->able_ms = w->now_ms;
    h->instance = ++w->instances;
    h->skew_ms = w->clock_ms + weir__world_roll(w, -w->skew_ms, w->skew_ms);
    snprintf(h->id, sizeof h->id, "%s", id);
    o.id = h->id;
    o.instance = h->instance;
    rc = weir__control_new(&h->control, &o, NULL);
    assert(rc == 0);
    (void)rc;
    weir__world_trace(w, "%s/%" PRIu64 " starts", h->id, h->instance);
    weir__world_push(w, weir__world_roll(w, 1, WORK_MS), EVENT_WORK, host, 0);
    weir__host_run(w, host);
}

static void add_counts(struct world *w, const struct host *h)
{
    struct weir__control_counts c;

    weir__control_counts(h->control, &c);
    w->result->claims += c.claims;
    w->result->fenced += c.fenced;
    w->result->starts += c.starts;
    w->result->handovers += c.handovers;
    w->result->takeovers += c.takeovers;
    w->result->steals += c.steals;
    w->result->lost += c.lost;
}

void weir__host_crash(struct world *w, uint32_t host)
{
    struct host *h = &w->hosts[host];

    if (!h->up) return;
    weir__world_trace(w, "%s/%" PRIu64 " ends", h->id, h->instance);
    add_counts(w, h);
    weir__control_free(h->control);
    h->control = NULL;
    h->up = false;
    h->life++;
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) /* one of its name is rid of it only now */
        if (strcmp(w->hosts[i].id, h->id) == 0) w->hosts[i].able_ms = w->now_ms;
}

void weir__host_leave(struct world *w, uint32_t host)
{
    struct host *h = &w->hosts[host];

    h->leaving = true;
    h->leave_by_ms = w->now_ms + LEAVE_MS;
    weir__control_leave(h->control, weir__host_clock(w, h));
    weir__host_run(w, host);
}

/* ---- frozen and thawed ---- */

void weir__host_pause(struct world *w, uint32_t host, int64_t ms, bool suspended)
{
    struct host *h = &w->hosts[host];

    weir__world_trace(w, "%s is frozen for %" PRId64 " ms", h->id, ms);
    h->paused = true;
    h->suspended = suspended;
    h->pause_ms = w->now_ms;
    h->pause_until_ms = w->now_ms + ms;
    weir__world_push(w, ms, EVENT_RESUME, host, 0);
}

/* What came meanwhile is found now, in any order; what it was about to do it does. */
static void resume(struct world *w, struct host *h)
{
    uint32_t host = index_of(w, h);

    if (!h->paused || w->now_ms < h->pause_until_ms) return;
    weir__world_trace(w, "%s thaws", h->id);
    h->paused = false;
    h->able_ms = w->now_ms;
    h->wake_ms = 0;
    if (h->suspended) h->skew_ms -= w->now_ms - h->pause_ms;
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct pump *pump = &h->pumps[p];
        if (!pump->started) continue;
        if (pump->stolen) weir__world_push(w, weir__world_roll(w, 1, 20), EVENT_STOLEN, host, p);
        if (!pump->linked) weir__world_push(w, weir__world_roll(w, 1, 20), EVENT_ATTACH, host, p);
        if (pump->draining && !pump->finished)
            weir__world_push(w, weir__world_roll(w, 1, 150), EVENT_DRAINED, host, p);
        pump->stolen = false;
    }
    weir__world_push(w, weir__world_roll(w, 0, WORK_MS), EVENT_WORK, host, 0);
    if (weir__chance_one_in(&w->chance, 2)) {
        weir__hub_work(w, host);
        h->to_mark = true;
    }
    weir__host_run(w, host);
}

/* ---- handlers ---- */

static void open_at(struct world *w, struct host *h, uint32_t p, const struct weir_record *r)
{
    struct pump *pump = &h->pumps[p];

    weir__checkpoint_init(&pump->checkpoint, r, &by_hand);
    pump->position = r->marked ? r->sequence + 1 : 0;
    pump->linked = false;
    weir__world_push(w, weir__world_roll(w, 2, 10), EVENT_ATTACH, index_of(w, h), p);
}

static void start_pump(struct world *w, struct host *h, uint32_t p, const struct weir_record *r)
{
    struct pump *pump = &h->pumps[p];
    uint32_t open = pump->open + 1;

    if (pump->started) weir__world_violate(w, "%s starts %u twice", h->id, p);
    memset(pump, 0, sizeof *pump);
    pump->started = true;
    pump->open = open;
    pump->epoch = r->epoch;
    weir__oracle_started(w, h, r);
    open_at(w, h, p, r);
}

static void drain_pump(struct world *w, struct host *h, uint32_t p)
{
    struct pump *pump = &h->pumps[p];
    int64_t takes = weir__world_roll(w, 0, 150);

    if (!pump->started) weir__world_violate(w, "%s drains %u that is not started", h->id, p);
    if (pump->draining) return; /* the program has released it */
    if (w->now_ms < h->lazy_until_ms) {
        takes = weir__world_roll(w, HANDOVER_MS + 3 * BEAT_MS, 2 * HANDOVER_MS);
        weir__fault_hit(w, FAULT_LAZY_HANDLER);
    }
    pump->draining = true;
    pump->drain_ms = w->now_ms;
    weir__world_push(w, takes, EVENT_DRAINED, index_of(w, h), p);
}

static void stop_pump(struct world *w, struct host *h, const struct weir__control_step *step)
{
    struct pump *pump = &h->pumps[step->partition];
    struct truth *t = &w->truths[step->partition];

    if (!pump->started) weir__world_violate(w, "%s stops %u twice", h->id, step->partition);
    if (step->reason != WEIR_CLOSED_LOST && !pump->drained)
        weir__world_violate(w, "%s stops %u before it is drained", h->id, step->partition);
    pump->started = false;
    if (t->reader == h->instance && t->reader_open == pump->open) {
        t->reader = 0;
        t->reader_epoch = 0;
    }
}

/* Once the last mark is stored, or refused. */
static void tell_drained(struct world *w, struct host *h, uint32_t p)
{
    struct pump *pump = &h->pumps[p];

    if (!pump->started || !pump->finished || pump->drained ||
        !weir__checkpoint_settled(&pump->checkpoint))
        return;
    pump->drained = true;
    weir__control_drained(h->control, weir__host_clock(w, h), p, pump->rest_ms);
}

static void finish_handler(struct world *w, struct host *h, uint32_t p)
{
    struct pump *pump = &h->pumps[p];

    pump->finished = true;
    weir__checkpoint_mark_given(&pump->checkpoint, NULL);
    h->to_mark = true;
    tell_drained(w, h, p);
}

/* ---- calls ---- */

static bool send_marks(struct world *w, struct host *h)
{
    struct call *call = &h->call;

    if (!h->to_mark) return false;
    h->to_mark = false;
    call->what = WEIR__CONTROL_WAIT;
    call->mark_count = 0;
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct pump *pump = &h->pumps[p];
        if (!pump->started ||
            !weir__checkpoint_take(&pump->checkpoint, ++h->turns, &call->marks[call->mark_count]))
            continue;
        call->opens[call->mark_count++] = pump->open;
    }
    if (call->mark_count == 0) return false;
    snprintf(call->member.id, sizeof call->member.id, "%s", h->id);
    call->member.instance = h->instance;
    weir__line_send(w, h);
    return true;
}

static void take_marks(struct world *w, struct host *h)
{
    struct call *call = &h->call;

    for (size_t i = 0; i < call->mark_count; i++) {
        uint32_t p = call->marks[i].partition;
        struct pump *pump = &h->pumps[p];
        int rc = call->rc != 0 ? call->rc : call->marks[i].rc;
        if (!pump->started || pump->open != call->opens[i]) continue;
        weir__checkpoint_answer(&pump->checkpoint, rc);
        if (rc == WEIR_EFENCED) weir__control_doubt(h->control, weir__host_clock(w, h), p);
        tell_drained(w, h, p);
    }
}

static void take_answer(struct world *w, struct host *h)
{
    struct call *call = &h->call;
    bool given = call->what == WEIR__CONTROL_CLAIM && call->rc == 0;

    h->busy = h->answered = false;
    if (call->what == WEIR__CONTROL_WAIT)
        take_marks(w, h);
    else
        weir__control_answer(h->control, weir__host_clock(w, h), call->rc,
                             given ? &call->record : NULL);
}

static void send_step(struct world *w, struct host *h, const struct weir__control_step *step)
{
    struct call *call = &h->call;

    call->what = step->what;
    call->member = *step->member;
    call->view = step->view;
    if (step->what == WEIR__CONTROL_CLAIM) {
        call->record = *step->record;
        snprintf(call->owner, sizeof call->owner, "%s", step->owner);
        call->instance = step->instance;
    }
    h->control_calls++;
    weir__line_send(w, h);
}

/* ---- one step after the other ---- */

static const char *name_of(enum weir__control_do what)
{
    static const char *const names[] = {"waits",  "beats", "reads",   "claims",  "leaves", "starts",
                                        "drains", "stops", "rewinds", "reports", "is done"};

    return names[what];
}

static void check_told(struct world *w, const struct host *h, const struct weir__control_step *step)
{
    bool leaving = h->leaving && step->what == WEIR__CONTROL_DRAIN;

    weir__world_trace(w, "%s %s %u epoch %" PRId64, h->id, name_of(step->what), step->partition,
                      h->pumps[step->partition].epoch);
    if (weir__control_unanswered_since(h->control) != 0 && !leaving)
        weir__world_violate(w, "%s %s %u while the store does not answer", h->id,
                            name_of(step->what), step->partition);
}

static void sleep_until(struct world *w, struct host *h, int64_t until_ms)
{
    int64_t in_ms = until_ms - weir__host_clock(w, h);

    assert(in_ms > 0);
    if (w->now_ms + in_ms == h->wake_ms) return;
    h->wake_ms = w->now_ms + in_ms;
    weir__world_push(w, in_ms, EVENT_WAKE, index_of(w, h), 0);
}

/* Takes one step. false: it has to wait for something. */
static bool take_step(struct world *w, struct host *h)
{
    struct weir__control_step step;

    weir__control_next(h->control, weir__host_clock(w, h), &step);
    if (step.what >= WEIR__CONTROL_START && step.what < WEIR__CONTROL_DONE) check_told(w, h, &step);
    switch (step.what) {
    case WEIR__CONTROL_WAIT:
        if (!send_marks(w, h)) sleep_until(w, h, step.until_ms);
        return false;
    case WEIR__CONTROL_BEAT:
    case WEIR__CONTROL_READ:
    case WEIR__CONTROL_CLAIM:
    case WEIR__CONTROL_LEAVE: send_step(w, h, &step); return false;
    case WEIR__CONTROL_START: start_pump(w, h, step.partition, step.record); return true;
    case WEIR__CONTROL_DRAIN: drain_pump(w, h, step.partition); return true;
    case WEIR__CONTROL_STOP: stop_pump(w, h, &step); return true;
    case WEIR__CONTROL_REWIND:
        open_at(w, h, step.partition, step.record);
        tell_drained(w, h, step.partition); /* the program may have released it meanwhile */
        return true;
    case WEIR__CONTROL_REPORT: return true;
    case WEIR__CONTROL_DONE: weir__host_crash(w, index_of(w, h)); return false;
    }
    return false;
}

/* Marks and the control's calls share one wire: either may come first. */
void weir__host_run(struct world *w, uint32_t host)
{
    struct host *h = &w->hosts[host];

    while (h->up && !h->paused && !weir__world_broken(w)) {
        if (h->busy && !h->answered) return;
        if (h->busy) take_answer(w, h);
        if (h->to_mark && weir__chance_one_in(&w->chance, 2) && send_marks(w, h)) return;
        if (!take_step(w, h)) return;
    }
}

void weir__host_cut_hub(struct world *w, uint32_t host, int64_t ms)
{
    struct host *h = &w->hosts[host];

    h->hub_cut_until_ms = w->now_ms + ms;
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct pump *pump = &h->pumps[p];
        if (!pump->started || !pump->linked) continue;
        pump->linked = false;
        weir__world_push(w, weir__world_roll(w, 100, 600), EVENT_ATTACH, host, p);
    }
}

static void work(struct world *w, uint32_t host)
{
    struct host *h = &w->hosts[host];

    weir__world_push(w, WORK_MS, EVENT_WORK, host, 0);
    weir__hub_work(w, host);
    h->to_mark = true;
    if (h->leaving && w->now_ms > h->leave_by_ms)
        weir__host_crash(w, host);
    else
        weir__host_run(w, host);
}

void weir__host_event(struct world *w, const struct event *e)
{
    struct host *h = &w->hosts[e->host];
    struct pump *pump = &h->pumps[e->partition];

    if (e->kind == EVENT_RESUME) {
        resume(w, h);
    } else if (h->paused) {
        return; /* it is done when the host thaws */
    } else if (e->kind == EVENT_WORK) {
        work(w, e->host);
    } else if (e->kind == EVENT_WAKE) {
        if (w->now_ms == h->wake_ms) weir__host_run(w, e->host);
    } else if (pump->started && pump->open == e->open && !pump->finished) {
        finish_handler(w, h, e->partition);
        weir__host_run(w, e->host);
    }
}
