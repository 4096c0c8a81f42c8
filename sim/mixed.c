/* mixed.c - a run: hosts of both kinds start, then things happen to them, then they are left
 * alone. */
#include "sim/mixed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/mixed_world.h"

#define START_MS 30000 /* within which the hosts are started */
#define FAULT_GAP_MS 60000
#define FREEZE_MS 150000 /* at most */
#define LOSSY_MS 30000
#define TRIES_MAX 20
#define STORE_MS 1000000000 /* by which the store's clock is ahead */
#define HOUR_MS 3600000
#define LEAVE_MS 15000     /* a copy that leaves is gone by then */
#define GIVE_UP_MS 180000  /* Python's expiry, the longest */
#define ROUNDS 3           /* for what does not go one by one */
#define CALLS_PER_HOUR 186 /* 3.1 in a minute */

static const struct weir_scope scope = {"sim", "hub", "$default"};

void weir__mixed_trace(struct mixed *m, const char *fmt, ...)
{
    va_list args;

    if (!m->options.trace) return;
    printf("%10.3f ", (double)m->now_ms / 1000);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

void weir__mixed_violate(struct mixed *m, const char *fmt, ...)
{
    va_list args;

    if (m->result->violations > 0) return;
    va_start(args, fmt);
    vsnprintf(m->result->violation, sizeof m->result->violation, fmt, args);
    va_end(args);
    m->result->violations = 1;
    m->result->violation_ms = m->now_ms;
    weir__mixed_trace(m, "VIOLATION %s", m->result->violation);
}

int64_t weir__mixed_roll(struct mixed *m, int64_t least, int64_t most)
{
    return weir__chance_between(&m->chance, least, most);
}

void weir__mixed_hit(struct mixed *m, enum mixed_fault fault)
{
    m->result->faults[fault]++;
}

int weir__mixed_claim(struct mixed *m, struct mixed_copy *who, struct weir_record *expected,
                      const char *owner, uint64_t instance)
{
    struct weir_record before = m->store->records[expected->partition];
    struct weir_store *s = &m->store->base;
    uint32_t p = expected->partition;
    int rc = s->ops->claim(s, &scope, expected, owner, instance, expected, NULL);

    if (rc != 0) return rc;
    if (who) weir__mixed_judge(m, who, &before, owner, instance);
    if (strcmp(before.owner, owner) == 0 && before.instance == instance) return 0;
    weir__mixed_trace(m, "%u: '%s' -> '%s'", p, before.owner, owner);
    m->moved_ms = m->now_ms;
    m->result->moves++;
    m->free_ms[p] = owner[0] ? -1 : m->now_ms;
    return 0;
}

/* ---- time ---- */

static void run_until(struct mixed *m, int64_t end_ms)
{
    while (m->result->violations == 0) {
        int64_t due = INT64_MAX;
        uint32_t who = 0;
        for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
            int64_t copy = weir__copy_due(&m->copies[i]);
            int64_t stranger = weir__stranger_due(&m->strangers[i]);
            if (copy < due) due = copy, who = i;
            if (stranger < due) due = stranger, who = MIXED_HOSTS_MAX + i;
        }
        if (due > end_ms) break;
        if (due > m->now_ms) m->now_ms = due;
        m->store->now_ms = m->now_ms + STORE_MS;
        if (who < MIXED_HOSTS_MAX)
            weir__copy_step(m, &m->copies[who]);
        else
            weir__stranger_step(m, &m->strangers[who - MIXED_HOSTS_MAX]);
    }
    m->now_ms = end_ms;
    m->store->now_ms = m->now_ms + STORE_MS;
}

/* ---- what happens ---- */

static struct mixed_copy *pick_copy(struct mixed *m, bool up)
{
    uint32_t first = (uint32_t)weir__mixed_roll(m, 0, MIXED_HOSTS_MAX - 1);

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        struct mixed_copy *c = &m->copies[(first + i) % MIXED_HOSTS_MAX];
        bool idle = !c->leaving && c->frozen_until_ms <= m->now_ms;
        if (up ? c->up && idle : !c->up) return c;
    }
    return NULL;
}

static struct mixed_stranger *pick_stranger(struct mixed *m, bool up)
{
    uint32_t first = (uint32_t)weir__mixed_roll(m, 0, MIXED_HOSTS_MAX - 1);

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        struct mixed_stranger *s = &m->strangers[(first + i) % MIXED_HOSTS_MAX];
        if (up ? s->up && s->frozen_until_ms <= m->now_ms : !s->up) return s;
    }
    return NULL;
}

static void start_copy(struct mixed *m, struct mixed_copy *c, const char *name)
{
    char id[16];

    snprintf(id, sizeof id, "%s", name);
    if (!id[0]) snprintf(id, sizeof id, "%c-c%u", (char)weir__mixed_roll(m, 'a', 'z'), m->names++);
    weir__copy_start(m, c, id);
}

static void start_stranger(struct mixed *m, struct mixed_stranger *s, const char *name)
{
    const struct weir__foreign_dialect *d =
        &weir__foreign_dialects[weir__mixed_roll(m, 0, WEIR__FOREIGN_DIALECTS - 1)];
    char id[16];

    snprintf(id, sizeof id, "%s", name);
    if (!id[0]) snprintf(id, sizeof id, "%c-f%u", (char)weir__mixed_roll(m, 'a', 'z'), m->names++);
    weir__stranger_start(m, s, id, name[0] ? s->dialect : d);
}

static bool hit_copy(struct mixed *m, enum mixed_fault fault)
{
    bool join = fault == MIXED_COPY_JOIN, again = fault == MIXED_COPY_RESTART;
    struct mixed_copy *c = m->options.foreign_only ? NULL : pick_copy(m, !join && !again);

    if (!c || (again && !c->id[0])) return false;
    switch (fault) {
    case MIXED_COPY_JOIN: start_copy(m, c, ""); break;
    case MIXED_COPY_RESTART: start_copy(m, c, c->id); break;
    case MIXED_COPY_LEAVE:
        c->leaving = true;
        c->wake_ms = m->now_ms;
        weir__control_leave(c->control, m->now_ms);
        break;
    case MIXED_COPY_CRASH: weir__copy_crash(m, c); break;
    case MIXED_COPY_FREEZE:
        c->frozen_until_ms = m->now_ms + weir__mixed_roll(m, 500, FREEZE_MS);
        break;
    default: c->lossy_until_ms = m->now_ms + weir__mixed_roll(m, 1000, LOSSY_MS); break;
    }
    weir__mixed_trace(m, "%s: %s", weir__mixed_fault_name(fault), c->id);
    return true;
}

static bool hit_stranger(struct mixed *m, enum mixed_fault fault)
{
    bool join = fault == MIXED_FOREIGN_JOIN, again = fault == MIXED_FOREIGN_RESTART;
    struct mixed_stranger *s = pick_stranger(m, !join && !again);

    if (!s || (again && !s->id[0])) return false;
    switch (fault) {
    case MIXED_FOREIGN_JOIN: start_stranger(m, s, ""); break;
    case MIXED_FOREIGN_RESTART: start_stranger(m, s, s->id); break;
    case MIXED_FOREIGN_LEAVE: weir__stranger_leave(m, s); break;
    case MIXED_FOREIGN_CRASH: s->up = false; break;
    case MIXED_FOREIGN_FREEZE:
        s->frozen_until_ms = m->now_ms + weir__mixed_roll(m, 500, FREEZE_MS);
        break;
    default: return false;
    }
    weir__mixed_trace(m, "%s: %s", weir__mixed_fault_name(fault), s->id);
    return true;
}

static const struct row {
    const char *name;
    bool (*hit)(struct mixed *, enum mixed_fault); /* NULL: comes with another */
    bool counted;                                  /* here; else where it strikes */
} rows[MIXED_FAULTS] = {
    [MIXED_COPY_JOIN] = {"copy joins", hit_copy, true},
    [MIXED_COPY_RESTART] = {"copy comes back", hit_copy, true},
    [MIXED_COPY_LEAVE] = {"copy leaves", hit_copy, true},
    [MIXED_COPY_CRASH] = {"copy crashes", hit_copy, true},
    [MIXED_COPY_FREEZE] = {"copy freezes", hit_copy, true},
    [MIXED_LOST_REQUEST] = {"lost request", hit_copy, false},
    [MIXED_LOST_REPLY] = {"lost reply", NULL, false},
    [MIXED_FOREIGN_JOIN] = {"foreign joins", hit_stranger, true},
    [MIXED_FOREIGN_RESTART] = {"foreign comes back", hit_stranger, true},
    [MIXED_FOREIGN_LEAVE] = {"foreign leaves", hit_stranger, true},
    [MIXED_FOREIGN_CRASH] = {"foreign crashes", hit_stranger, true},
    [MIXED_FOREIGN_FREEZE] = {"foreign freezes", hit_stranger, true},
    [MIXED_FOREIGN_DIED] = {"foreign dies of a release", NULL, false},
};

_Static_assert(MIXED_FAULTS == WEIR__MIXED_FAULTS, "mixed.h counts them");

const char *weir__mixed_fault_name(size_t fault)
{
    return fault < MIXED_FAULTS ? rows[fault].name : "";
}

static void happen(struct mixed *m)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        enum mixed_fault fault = (enum mixed_fault)weir__mixed_roll(m, 0, MIXED_FAULTS - 1);
        if (!rows[fault].hit || !rows[fault].hit(m, fault)) continue;
        if (rows[fault].counted) weir__mixed_hit(m, fault);
        return;
    }
}

/* ---- the run ---- */

static void start_hosts(struct mixed *m)
{
    uint32_t copies = m->options.copies ? m->options.copies : (uint32_t)weir__mixed_roll(m, 1, 4);
    uint32_t foreigns =
        m->options.foreigns ? m->options.foreigns : (uint32_t)weir__mixed_roll(m, 1, 4);
    uint32_t all = copies + foreigns;

    if (m->options.foreign_only) copies = 0;
    while (copies + foreigns > 0) {
        bool ours = weir__mixed_roll(m, 1, copies + foreigns) <= copies;
        run_until(m, m->now_ms + weir__mixed_roll(m, 0, START_MS / all));
        if (ours)
            start_copy(m, &m->copies[--copies], "");
        else
            start_stranger(m, &m->strangers[--foreigns], "");
    }
}

/* Nobody is frozen any more, nothing is lost, who leaves is gone, and of each kind one is there. */
static void heal(struct mixed *m)
{
    bool copy = m->options.foreign_only, stranger = false;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        struct mixed_copy *c = &m->copies[i];
        struct mixed_stranger *s = &m->strangers[i];
        c->lossy_until_ms = 0;
        if (c->frozen_until_ms > m->now_ms) c->frozen_until_ms = m->now_ms;
        if (s->frozen_until_ms > m->now_ms) s->frozen_until_ms = m->now_ms;
        copy = copy || (c->up && !c->leaving);
        stranger = stranger || s->up;
    }
    if (!copy) start_copy(m, pick_copy(m, false), "");
    if (!stranger) start_stranger(m, pick_stranger(m, false), "");
    run_until(m, m->now_ms + LEAVE_MS);
    weir__mixed_trace(m, "all is well");
}

static int64_t slowest_round(const struct mixed *m)
{
    int64_t slowest = MIXED_BEAT_MS;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        const struct mixed_stranger *s = &m->strangers[i];
        int64_t round = s->up ? s->dialect->interval_ms * s->dialect->most_percent / 100 : 0;
        if (round > slowest) slowest = round;
    }
    return slowest;
}

/* Lets so much time pass that all must be in balance. */
static void settle(struct mixed *m)
{
    int64_t begun = m->now_ms, died = (int64_t)m->result->faults[MIXED_FOREIGN_DIED];
    int64_t dead_ms = 3 * m->gap_ms > GIVE_UP_MS ? 3 * m->gap_ms : GIVE_UP_MS;
    int64_t round_ms = slowest_round(m), rest_ms;
    uint32_t heads = weir__mixed_heads(m);
    double rounds;
    uint32_t share = (m->partitions + heads - 1) / heads;
    char why[128];

    run_until(m, begun + dead_ms + (share + ROUNDS) * round_ms);
    if ((int64_t)m->result->faults[MIXED_FOREIGN_DIED] > died) { /* that was another change */
        settle(m);
        return;
    }
    m->result->rounds_spare = share + ROUNDS;
    if (!weir__mixed_alive(m)) return; /* all were C++ */
    rest_ms = m->moved_ms - begun;
    m->result->settle_worst_ms = rest_ms > 0 ? rest_ms : 0;
    rounds = rest_ms > dead_ms ? (double)(rest_ms - dead_ms) / (double)round_ms : 0;
    m->result->rounds_worst = rounds;
    m->result->rounds_spare -= rounds;
    if (!weir__mixed_balanced(m, why, sizeof why))
        weir__mixed_violate(m, "not in balance %" PRId64 " s after the last change: %s",
                            (m->now_ms - begun) / 1000, why);
}

static uint32_t count_running(const struct mixed *m, const struct mixed_copy *c)
{
    uint32_t running = 0;

    for (uint32_t p = 0; p < m->partitions; p++) running += c->running[p];
    return running;
}

/* Nothing moves for an hour, and the copies call the store as often as they may. */
static void stay_quiet(struct mixed *m)
{
    int64_t begun = m->now_ms;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) m->copies[i].beats = m->copies[i].claims = 0;
    run_until(m, begun + HOUR_MS);
    if (m->moved_ms > begun)
        weir__mixed_violate(m, "a record changed its owner %" PRId64 " s after all was in balance",
                            (m->moved_ms - begun) / 1000);
    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        const struct mixed_copy *c = &m->copies[i];
        uint32_t owned = count_running(m, c);
        if (!c->up) continue;
        m->result->calls_ours += c->claims;
        m->result->minutes_ours += 60 * (uint64_t)owned;
        if (c->claims > (uint64_t)CALLS_PER_HOUR * owned)
            weir__mixed_violate(m, "%s renewed %u partitions %" PRIu64 " times in an hour", c->id,
                                owned, c->claims);
        if (c->beats > 2 * (HOUR_MS / MIXED_BEAT_MS + 1))
            weir__mixed_violate(m, "%s made %" PRIu64 " calls in an hour", c->id, c->beats);
    }
}

void weir__mixed_run(const struct weir__mixed_options *o, struct weir__mixed_result *out)
{
    struct mixed *m = calloc(1, sizeof *m);
    int64_t faults;

    assert(m);
    memset(out, 0, sizeof *out);
    m->options = *o;
    m->result = out;
    m->chance = o->seed;
    weir__chance_next(&m->chance);
    m->partitions = o->partitions ? o->partitions : (uint32_t)weir__mixed_roll(m, 4, 40);
    assert(m->partitions <= WEIR__FOREIGN_PARTITIONS_MAX);
    m->store = weir__simstore_new(m->partitions);
    start_hosts(m);
    for (faults = weir__mixed_roll(m, 4, 12); faults > 0 && out->violations == 0; faults--) {
        run_until(m, m->now_ms + weir__mixed_roll(m, 0, FAULT_GAP_MS));
        happen(m);
    }
    heal(m);
    settle(m);
    if (out->violations == 0) stay_quiet(m);
    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) weir__copy_crash(m, &m->copies[i]);
    out->runs = 1;
    out->simulated_ms = m->now_ms;
    m->store->base.ops->close(&m->store->base);
    free(m);
}

void weir__mixed_add(struct weir__mixed_result *sum, const struct weir__mixed_result *one)
{
    if (sum->violation[0] == '\0') {
        memcpy(sum->violation, one->violation, sizeof sum->violation);
        sum->violation_ms = one->violation_ms;
    }
    if (sum->runs == 0 || one->rounds_spare < sum->rounds_spare)
        sum->rounds_spare = one->rounds_spare;
    sum->runs += one->runs;
    sum->violations += one->violations;
    sum->simulated_ms += one->simulated_ms;
    for (size_t i = 0; i < WEIR__MIXED_FAULTS; i++) sum->faults[i] += one->faults[i];
    for (size_t i = 0; i < WEIR__FOREIGN_DIALECTS; i++) sum->dialects[i] += one->dialects[i];
    sum->moves += one->moves;
    sum->stolen += one->stolen;
    sum->lost += one->lost;
    sum->calls_ours += one->calls_ours;
    sum->minutes_ours += one->minutes_ours;
    sum->uneven += one->uneven;
    if (one->settle_worst_ms > sum->settle_worst_ms) sum->settle_worst_ms = one->settle_worst_ms;
    if (one->rounds_worst > sum->rounds_worst) sum->rounds_worst = one->rounds_worst;
}
