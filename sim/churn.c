/* churn.c - see churn.h. Hosts that read in the same millisecond get the same copy of the store, which
 * lives as long as one of them holds it: a thousand views of their own would not fit. */
#define _GNU_SOURCE
#include "sim/churn.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "processor/control.h"
#include "sim/simstore.h"

#define BEAT_MS 1000
#define EXPIRE_MS 3000
#define START_MS 250
#define PHASES 25 /* hosts begin at so many moments of START_MS */
#define SETTLE_MS_MAX 20000
#define NONE UINT32_MAX
#define PLAN_MS_MAX 10.0

static const struct weir_scope scope = {"sim", "hub", "$default"};

struct rows {
    struct weir_record *at;
    size_t count;
    uint64_t change; /* of the store, when they were copied */
    uint32_t holders;
};

struct snapshot {
    struct weir_member *members;
    size_t member_count;
    struct rows *rows;
    uint32_t holders;
};

struct host {
    bool up, leaving, asked;
    char id[16];
    uint64_t instance;
    struct weir__control *control;
    struct weir__control_step step;
    struct weir_view *view;
    struct snapshot *held;
    int64_t wake_ms, start_ms; /* start_ms: when it is started; -1: it was */
};

struct churn {
    struct weir__simstore *store;
    struct host *hosts;
    uint32_t host_count, host_cap, partitions;
    uint32_t *runner; /* the host in which a partition runs, or NONE */
    uint64_t instances, moves;
    int64_t now_ms;
    struct rows *latest; /* copy of the store's */
    struct weir__churn_result *out;
};

/* ---- copies of the store ---- */

static void drop_rows(struct rows *rows)
{
    if (!rows || --rows->holders > 0) return;
    free(rows->at);
    free(rows);
}

static void drop_snapshot(struct host *h)
{
    struct snapshot *s = h->held;

    h->held = NULL;
    if (h->view) memset(h->view, 0, sizeof *h->view);
    if (!s || --s->holders > 0) return;
    drop_rows(s->rows);
    free(s->members);
    free(s);
}

static struct rows *copy_rows(const struct weir__simstore *store)
{
    struct rows *rows = calloc(1, sizeof *rows);

    assert(rows);
    rows->at = malloc(store->partitions * sizeof *rows->at);
    assert(rows->at);
    rows->change = store->change;
    rows->holders = 1;
    for (uint32_t p = 0; p < store->partitions; p++)
        if (store->records[p].version[0]) rows->at[rows->count++] = store->records[p];
    return rows;
}

/* The rows are copied when they have changed, the members each time: they beat. */
static struct snapshot *take_snapshot(struct churn *c)
{
    struct snapshot *s = calloc(1, sizeof *s);

    assert(s);
    if (!c->latest || c->latest->change != c->store->change) {
        drop_rows(c->latest);
        c->latest = copy_rows(c->store);
    }
    s->rows = c->latest;
    s->rows->holders++;
    s->members = malloc((c->store->member_count + 1) * sizeof *s->members);
    assert(s->members);
    s->member_count = c->store->member_count;
    if (s->member_count > 0)
        memcpy(s->members, c->store->members, s->member_count * sizeof *s->members);
    return s;
}

static void give_view(struct churn *c, struct host *h, struct snapshot *s)
{
    h->view = h->step.view;
    drop_snapshot(h);
    s->holders++;
    h->held = s;
    *h->view = (struct weir_view){.now_ms = c->store->now_ms,
                                  .change = s->rows->change,
                                  .members = s->members,
                                  .member_count = s->member_count,
                                  .records = s->rows->at,
                                  .record_count = s->rows->count};
}

/* ---- hosts ---- */

static void start_host(struct churn *c, struct host *h)
{
    struct weir__control_options o = {.id = h->id,
                                      .weight = 1,
                                      .partitions = c->partitions,
                                      .beat_ms = BEAT_MS,
                                      .expire_ms = EXPIRE_MS,
                                      .settle_ms = 300,
                                      .start_ms = 2000,
                                      .handover_ms = 10000,
                                      .poll_ms = 50};
    int rc;

    o.instance = h->instance = ++c->instances;
    rc = weir__control_new(&h->control, &o, NULL);
    assert(rc == 0);
    (void)rc;
    h->up = true;
    h->leaving = h->asked = false;
    h->view = NULL;
    h->start_ms = -1;
    h->wake_ms = c->now_ms;
}

static void end_host(struct churn *c, struct host *h)
{
    uint32_t host = (uint32_t)(h - c->hosts);

    if (!h->up) return;
    drop_snapshot(h);
    weir__control_free(h->control);
    h->control = NULL;
    h->up = false;
    for (uint32_t p = 0; p < c->partitions; p++)
        if (c->runner[p] == host) c->runner[p] = NONE;
}

static int write_call(struct churn *c, struct host *h, struct weir_record *given)
{
    struct weir_store *s = &c->store->base;
    const struct weir__control_step *step = &h->step;
    int rc;

    if (step->what == WEIR__CONTROL_BEAT) return s->ops->beat(s, &scope, step->member, NULL);
    if (step->what == WEIR__CONTROL_LEAVE) return s->ops->leave(s, &scope, step->member, NULL);
    rc = s->ops->claim(s, &scope, step->record, step->owner, step->instance, given, NULL);
    if (rc == 0) c->moves++;
    return rc;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void answer_read(struct churn *c, struct host *h)
{
    double begun = cpu_ms(), took;

    weir__control_answer(h->control, c->now_ms, 0, NULL);
    took = cpu_ms() - begun;
    c->out->plans++;
    c->out->plans_slow += took > PLAN_MS_MAX;
    c->out->plan_ms_mean += took;
    if (took > c->out->plan_ms_max) c->out->plan_ms_max = took;
}

/* What a host is told. */
static void follow(struct churn *c, struct host *h)
{
    uint32_t host = (uint32_t)(h - c->hosts), p = h->step.partition;

    if (h->step.what == WEIR__CONTROL_START) {
        if (c->runner[p] != NONE && c->runner[p] != host && c->out->violation == NULL)
            c->out->violation = "a partition was started while it ran elsewhere";
        c->runner[p] = host;
    } else if (h->step.what == WEIR__CONTROL_DRAIN) {
        weir__control_drained(h->control, c->now_ms, p, 0);
    } else if (h->step.what == WEIR__CONTROL_STOP) {
        if (c->runner[p] == host) c->runner[p] = NONE;
    }
}

static void run_host(struct churn *c, struct host *h)
{
    while (h->up && !h->asked) {
        weir__control_next(h->control, c->now_ms, &h->step);
        if (h->step.what == WEIR__CONTROL_WAIT) {
            h->wake_ms = h->step.until_ms;
            return;
        }
        if (h->step.what == WEIR__CONTROL_DONE)
            end_host(c, h);
        else if (h->step.what < WEIR__CONTROL_START)
            h->asked = true;
        else
            follow(c, h);
    }
}

/* ---- a millisecond ---- */

static void do_writes(struct churn *c)
{
    for (uint32_t i = 0; i < c->host_count; i++) {
        struct host *h = &c->hosts[i];
        struct weir_record given;
        int rc;
        if (!h->up || !h->asked || h->step.what == WEIR__CONTROL_READ) continue;
        rc = write_call(c, h, &given);
        h->asked = false;
        weir__control_answer(h->control, c->now_ms, rc,
                             h->step.what == WEIR__CONTROL_CLAIM && rc == 0 ? &given : NULL);
        h->wake_ms = c->now_ms;
    }
}

static void do_reads(struct churn *c)
{
    struct snapshot *shared = NULL;

    for (uint32_t i = 0; i < c->host_count; i++) {
        struct host *h = &c->hosts[i];
        if (!h->up || !h->asked || h->step.what != WEIR__CONTROL_READ) continue;
        if (!shared) shared = take_snapshot(c);
        give_view(c, h, shared);
        h->asked = false;
        answer_read(c, h);
        h->wake_ms = c->now_ms;
    }
}

static void pass_ms(struct churn *c)
{
    c->now_ms++;
    c->store->now_ms = c->now_ms;
    do_writes(c);
    do_reads(c);
    for (uint32_t i = 0; i < c->host_count; i++) {
        struct host *h = &c->hosts[i];
        if (h->start_ms >= 0 && h->start_ms <= c->now_ms) start_host(c, h);
        if (h->up && !h->asked && h->wake_ms <= c->now_ms) run_host(c, h);
    }
}

/* ---- what it comes to ---- */

static struct host *find_owner(const struct churn *c, uint64_t instance)
{
    for (uint32_t i = 0; i < c->host_count; i++)
        if (c->hosts[i].up && c->hosts[i].instance == instance) return &c->hosts[i];
    return NULL;
}

/* held[i]: how many partitions host i owns. Returns how many hosts stay. */
static uint32_t count_held(const struct churn *c, uint32_t *held)
{
    uint32_t hosts = 0;

    memset(held, 0, c->host_count * sizeof *held);
    for (uint32_t p = 0; p < c->partitions; p++) {
        const struct weir_record *r = &c->store->records[p];
        const struct host *h = NULL;
        if (c->runner[p] != NONE && c->hosts[c->runner[p]].instance == r->instance)
            h = &c->hosts[c->runner[p]];
        else if (r->instance != 0)
            h = find_owner(c, r->instance);
        if (h && h->up) held[h - c->hosts]++;
    }
    for (uint32_t i = 0; i < c->host_count; i++)
        hosts += (c->hosts[i].up && !c->hosts[i].leaving) || c->hosts[i].start_ms >= 0;
    return hosts;
}

static bool is_settled(const struct churn *c, uint32_t *held)
{
    uint32_t hosts = count_held(c, held);

    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct host *h = &c->hosts[i];
        if (h->start_ms >= 0 || (h->up && h->leaving)) return false;
        if (h->up && held[i] != c->partitions / hosts &&
            held[i] != (c->partitions + hosts - 1) / hosts)
            return false;
    }
    for (uint32_t p = 0; p < c->partitions; p++)
        if (c->runner[p] == NONE ||
            c->hosts[c->runner[p]].instance != c->store->records[p].instance)
            return false;
    return true;
}

/* The fewest claims that lead there, from what the hosts that stay have. */
static uint32_t count_needed(const struct churn *c, uint32_t *held)
{
    uint32_t hosts = count_held(c, held), kept = 0;
    uint32_t least = c->partitions / hosts, more = c->partitions % hosts;

    for (uint32_t i = 0; i < c->host_count; i++) {
        if (!c->hosts[i].up || c->hosts[i].leaving) continue;
        kept += held[i] < least ? held[i] : least;
        if (held[i] > least && more > 0) {
            kept++;
            more--;
        }
    }
    return c->partitions - kept;
}

static void settle(struct churn *c, struct weir__churn_row *row, uint32_t *held)
{
    int64_t begun = c->now_ms;

    row->needed = count_needed(c, held);
    c->moves = 0;
    while (!is_settled(c, held) && c->now_ms - begun < SETTLE_MS_MAX)
        for (int ms = 0; ms < 10; ms++) pass_ms(c);
    row->ms = c->now_ms - begun;
    row->rounds = (double)row->ms / BEAT_MS;
    if (!is_settled(c, held)) c->out->violation = "not in balance after 20 s";
    for (int ms = 0; ms < 2 * EXPIRE_MS; ms++) pass_ms(c);
    row->moves = c->moves;
}

/* ---- the script ---- */

static void add_hosts(struct churn *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct host *h = &c->hosts[c->host_count];
        snprintf(h->id, sizeof h->id, "host-%05u", c->host_count++);
        h->start_ms = c->now_ms + 1 + (i % PHASES) * (START_MS / PHASES);
    }
}

/* One in so many of those that run. */
static void pick(struct churn *c, uint32_t in, void (*what)(struct churn *, struct host *))
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < c->host_count; i++)
        if (c->hosts[i].up && seen++ % in == 1) what(c, &c->hosts[i]);
}

static void leave_host(struct churn *c, struct host *h)
{
    h->leaving = true;
    h->wake_ms = c->now_ms;
    weir__control_leave(h->control, c->now_ms);
}

static void run_script(struct churn *c, uint32_t hosts, uint32_t *held)
{
    static const char *const names[] = {"start", "join", "leave", "crash", "half"};
    struct weir__churn_row *rows = c->out->rows;

    for (int e = 0; e < WEIR__CHURN_EVENTS; e++) rows[e].name = names[e];
    add_hosts(c, hosts);
    settle(c, &rows[WEIR__CHURN_START], held);
    add_hosts(c, hosts / 10);
    settle(c, &rows[WEIR__CHURN_JOIN], held);
    pick(c, 10, leave_host);
    settle(c, &rows[WEIR__CHURN_LEAVE], held);
    pick(c, 10, end_host);
    settle(c, &rows[WEIR__CHURN_CRASH], held);
    pick(c, 2, end_host);
    settle(c, &rows[WEIR__CHURN_HALF], held);
}

void weir__churn_run(uint32_t hosts, uint32_t partitions, struct weir__churn_result *out)
{
    struct churn c = {.partitions = partitions, .out = out, .host_cap = hosts * 2};
    uint32_t *held = calloc(c.host_cap, sizeof *held);

    assert(hosts >= 10);
    memset(out, 0, sizeof *out);
    c.store = weir__simstore_new(partitions);
    c.hosts = calloc(c.host_cap, sizeof *c.hosts);
    c.runner = malloc(partitions * sizeof *c.runner);
    assert(held && c.hosts && c.runner);
    memset(c.runner, 0xff, partitions * sizeof *c.runner);
    run_script(&c, hosts, held);
    if (out->plans > 0) out->plan_ms_mean /= (double)out->plans;
    for (uint32_t i = 0; i < c.host_count; i++) end_host(&c, &c.hosts[i]);
    drop_rows(c.latest);
    c.store->base.ops->close(&c.store->base);
    free(c.hosts);
    free(c.runner);
    free(held);
}
