/* crash_test.c - the crash matrix.
 *
 * A workload runs on a simulated disk. Before every outside call that can change something, power
 * is lost in many ways at once: each way is a copy of the disk with another choice of what was not
 * yet synced. Each copy is opened and read back against what was acknowledged up to then. Then it
 * gets new batches of the size of those that went missing, loses power again, behind them or in the
 * middle of writing them, and is read again: whatever the first crash left behind must not come
 * back. The workload itself loses power now and then, so recovery too is cut off at every call.
 *
 * Senders may be hostile: in some runs their bodies are full of headers of batches, made with all
 * that a sender can know.
 *
 *   log_crash_test             a few seconds of it, and the sabotages, as tests
 *   log_crash_test POINTS      goes on until so many distinct disks were checked; prints counts
 *
 * A point is distinct when the disk left behind is. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/dice.h"
#include "support/hashset.h"
#include "support/pace.h"
#include "support/workload.h"

#define STEPS_PER_RUN 60
#define REGROWN_MAX 3
#define TEST_POINTS (2000 / PACE)
#define TEST_FORGED (1000 / PACE) /* disks with forged bodies */
#define SABOTAGE_RUNS_MAX 40
#define REPORT_POINTS 5000
#define DAY_MS INT64_C(86400000)

struct matrix {
    struct workload w;
    struct hashset *disks;  /* distinct ones */
    struct hashset *points; /* distinct in disk and in what was acknowledged */
    uint64_t dice;
    uint64_t opened;  /* disks opened after a loss of power */
    uint64_t batches; /* read back and compared */
    uint64_t violations;
    uint64_t calls;
    char first[512];
    uint64_t cut_in;    /* calls until the workload loses power; 0: it does not */
    struct simfs *left; /* what that left */
    bool busy;          /* the hook does not watch itself */
    bool report;
    bool forging;
    uint64_t forged; /* disks with unfinished batches of hostile senders */
    size_t reported;
    struct {
        uint64_t runs, cuts, rolled, expired, cut, tidied; /* workloads, and what they came to do */
    } reach;
};

static void note_violations(struct matrix *m, const struct history *h, const char *when)
{
    if (h->violations == 0) return;
    if (m->violations == 0) snprintf(m->first, sizeof m->first, "%s: %s", when, h->first);
    m->violations += h->violations;
}

/* A log that was being made: it opens, or it can be cleared away and made anew. */
static int remake(struct weir__log_options *o, struct weir__log **out, struct weir_error *err)
{
    int rc = weir__log_open(out, o, NULL);

    if (rc == 0) return 0;
    rc = weir__log_destroy(o->fs, o->dir, err);
    if (rc != 0 && rc != WEIR_ENOTFOUND) return rc;
    rc = weir__log_create(o, err);
    return rc == 0 ? weir__log_open(out, o, err) : rc;
}

static struct weir__log *open_left(struct matrix *m, struct simfs *disk, struct simclock *clock,
                                   struct history *h)
{
    struct weir__log_options o = m->w.options;
    struct weir__log *log = NULL;
    struct weir_error err = {0};
    int rc;

    o.fs = simfs_fs(disk);
    o.clock = simclock(clock);
    rc = m->w.created ? weir__log_open(&log, &o, &err) : remake(&o, &log, &err);
    if (rc != 0) history_violation(h, "opening after a crash: %s", err.text);
    m->opened++;
    if (rc != 0) return NULL;
    history_check(h, log, true);
    m->batches += h->found;
    for (uint32_t p = 0; p < m->w.options.partitions; p++)
        for (uint64_t id = 1; id <= WORKLOAD_PRODUCERS; id++)
            if (history_repeat(h, log, p, id) != 0)
                history_violation(h, "producer %" PRIu64 " of partition %u may not repeat", id, p);
    return log;
}

/* New batches just as long as the first ones that went missing now, where a ghost would fit behind
 * them; and now and then one more that nobody waits for. */
static void regrow(struct matrix *m, struct history *h, struct weir__log *log, size_t from)
{
    struct history_order o = {.partition = 0, .bytes = 600, .count = 3};
    uint64_t wanted = 1 + dice_roll(&m->dice, REGROWN_MAX), grown = 0;
    size_t count = h->count;

    for (size_t i = from; i < count && grown < wanted; i++) {
        if (h->batches[i].fate != HISTORY_GONE) continue;
        o.partition = h->batches[i].partition;
        o.bytes = h->batches[i].bytes;
        o.count = h->batches[i].count;
        grown++;
        if (history_append_wait(h, log, &o) != 0) history_violation(h, "no append after a crash");
    }
    if (grown == 0 && history_append_wait(h, log, &o) != 0)
        history_violation(h, "no append after a crash");
    if (wanted == REGROWN_MAX) history_append(h, log, &o);
}

static size_t first_undecided(const struct history *h)
{
    size_t i = 0;

    while (i < h->count && h->batches[i].fate != HISTORY_PENDING &&
           h->batches[i].fate != HISTORY_UNKNOWN)
        i++;
    return i;
}

/* The second loss of power: what it left, and what had been acknowledged by then. */
struct second {
    struct matrix *m;
    struct history *h;
    struct simfs *left;
    struct history *then;
};

/* Mostly torn between blocks: that is where an old batch can follow a new one without a seam. */
static void lose_power_again(struct simfs *disk, struct second *s)
{
    static const enum simfs_keep ways[] = {SIMFS_KEEP_PREFIX, SIMFS_KEEP_ALL_BUT,
                                           SIMFS_KEEP_RANDOM};
    uint64_t n = dice_next(&s->m->dice), sectors = WEIR__FS_BLOCK / SIMFS_SECTOR;
    enum simfs_keep keep = ways[dice_roll(&s->m->dice, 3)];

    if (dice_roll(&s->m->dice, 2) > 0) {
        keep = SIMFS_KEEP_PREFIX;
        n = n % 4 * sectors + sectors - 1;
    }
    s->left = simfs_crash(disk, keep, n);
    s->then = history_copy(s->h);
}

/* At the first sync: the new batches are written, and nothing holds the disk to them yet. */
static void interrupt_sync(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    struct second *s = user;

    if (entering && kind == SIMFS_SYNC && !s->left) lose_power_again(disk, s);
}

/* Checks one disk that a loss of power left; taken. */
static void check_left(struct matrix *m, struct simfs *disk)
{
    struct history *h = history_copy(m->w.history);
    struct second second = {.m = m, .h = h};
    struct simclock clock = m->w.clock;
    size_t undecided = first_undecided(h);
    struct weir__log *log;

    h->violations = 0;
    m->forged += h->forging && undecided < h->count;
    log = open_left(m, disk, &clock, h);
    note_violations(m, h, "first crash");
    if (log && h->violations == 0) {
        if (dice_roll(&m->dice, 2) > 0) simfs_hook(disk, interrupt_sync, &second);
        regrow(m, h, log, undecided);
        simfs_hook(disk, NULL, NULL);
        if (!second.left) lose_power_again(disk, &second);
    }
    simfs_stop(disk, 1);
    weir__log_close(log, NULL);
    if (second.left) {
        log = open_left(m, second.left, &clock, second.then);
        note_violations(m, second.then, "second crash");
        weir__log_close(log, NULL);
        simfs_free(second.left);
        history_free(second.then);
    }
    simfs_free(disk);
    history_free(h);
}

/* One way to lose power at this moment, unless the same has been checked before. */
static void try_crash(struct matrix *m, enum simfs_keep keep, uint64_t n)
{
    struct simfs *left = simfs_crash(m->w.disk, keep, n);
    uint64_t hash = simfs_hash(left);

    hashset_add(m->disks, hash);
    if (hashset_add(m->points, dice_mix(hash ^ (m->w.history->acked << 20) ^ m->w.created)))
        check_left(m, left);
    else
        simfs_free(left);
    if (m->report && hashset_count(m->disks) >= m->reported + REPORT_POINTS) {
        m->reported = hashset_count(m->disks);
        fprintf(stderr, "  %zu distinct disks\n", m->reported);
    }
}

static void lose_power(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    static const struct {
        enum simfs_keep keep;
        int times;
    } ways[] = {
        {SIMFS_KEEP_NONE, 1},    {SIMFS_KEEP_ALL, 1},    {SIMFS_KEEP_ONE, 2},
        {SIMFS_KEEP_ALL_BUT, 3}, {SIMFS_KEEP_PREFIX, 2}, {SIMFS_KEEP_RANDOM, 4},
    };
    struct matrix *m = user;

    if (!entering || m->busy || !(kind & (SIMFS_CHANGES | SIMFS_OPEN))) return;
    m->busy = true;
    m->calls++;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (int k = 0; k < ways[i].times; k++) try_crash(m, ways[i].keep, dice_next(&m->dice));
    if (m->cut_in > 0 && --m->cut_in == 0) { /* this time for the workload itself */
        m->left = simfs_crash(disk, dice_roll(&m->dice, 2) ? SIMFS_KEEP_ALL_BUT : SIMFS_KEEP_RANDOM,
                              dice_next(&m->dice));
        simfs_stop(disk, 1);
        m->w.history->may_fail = true;
    }
    m->busy = false;
}

static void matrix_init(struct matrix *m)
{
    *m = (struct matrix){.disks = hashset_new(), .points = hashset_new()};
}

static void matrix_fini(struct matrix *m)
{
    hashset_free(m->disks);
    hashset_free(m->points);
}

/* A matrix proves nothing about what its workloads never do. */
static void note_reach(struct matrix *m)
{
    struct weir__log_partition_info info = {0};
    struct weir__log_stats stats = {0};
    const char *path;
    bool expired = false, cut = false, tidied = false;

    m->reach.runs++;
    if (!m->w.log) return;
    weir__log_stats(m->w.log, &stats);
    for (uint32_t p = 0; p < m->w.options.partitions; p++)
        if (weir__log_partition_info(m->w.log, p, &info, NULL) == 0 && info.begin_sequence > 0)
            expired = true;
    for (size_t i = 0; (path = simfs_path(m->w.disk, i)) != NULL; i++)
        if (strstr(path, "/cut-"))
            cut = true;
        else if (strstr(path, "/producers-") && !strstr(path, "-00000001."))
            tidied = true;
    m->reach.rolled += stats.segments > 1 || expired;
    m->reach.expired += expired;
    m->reach.cut += cut;
    m->reach.tidied += tidied;
}

/* The workload goes on with what its own loss of power left. Sometimes power is lost again before
 * the log is open. */
static int come_up(struct matrix *m)
{
    while (m->left) {
        struct simfs *left = m->left;

        m->left = NULL;
        if (dice_roll(&m->dice, 3) == 0) m->cut_in = 1 + dice_roll(&m->dice, 4);
        m->reach.cuts++;
        workload_adopt(&m->w, left);
    }
    return m->w.log ? 0 : WEIR_EFAILED;
}

/* One workload from its creation on. Ends early once something was found, or enough disks seen. */
static void run_matrix(struct matrix *m, uint64_t seed, unsigned sabotage, uint64_t points)
{
    struct weir_error err = {0};
    int rc;

    workload_init(&m->w, seed);
    m->dice = dice_mix(seed);
    m->w.options.sabotage = sabotage;
    m->w.small = seed % 3 == 0;
    if (seed % 5 < 2) m->w.options.segment_bytes_min = 0; /* small ones: more rolls */
    m->w.aligned = seed % 4 == 1 || sabotage == WEIR__LOG_SKIP_EPOCH;
    if (seed % 2 == 1) m->w.options.retain_ms = DAY_MS;
    m->w.history->forging = m->forging || sabotage == WEIR__LOG_TRUST_FOUND;
    simfs_hook(m->w.disk, lose_power, m);
    rc = workload_open(&m->w, &err);
    if (rc != 0) history_violation(m->w.history, "making the log: %s", err.text);
    for (int i = 0; i < STEPS_PER_RUN && rc == 0 && hashset_count(m->disks) < points; i++) {
        if (m->cut_in == 0 && dice_roll(&m->dice, 10) == 0) m->cut_in = 1 + dice_roll(&m->dice, 6);
        rc = workload_step(&m->w);
        if (m->left) rc = come_up(m);
        if (rc == WEIR_EBUSY || rc == WEIR_ESEQUENCE) rc = 0;
        if (m->violations + m->w.history->violations > 0) break;
    }
    if (rc != 0) history_violation(m->w.history, "the workload failed: %s", weir_error_name(rc));
    simfs_hook(m->w.disk, NULL, NULL);
    m->cut_in = 0;
    note_reach(m);
    note_violations(m, m->w.history, "workload");
    workload_fini(&m->w);
}

static void nothing_acknowledged_is_lost(void **state)
{
    struct matrix m;

    (void)state;
    matrix_init(&m);
    for (uint64_t seed = 1; hashset_count(m.disks) < TEST_POINTS && m.violations == 0; seed++)
        run_matrix(&m, seed, 0, TEST_POINTS);
    if (m.violations > 0) fail_msg("%s", m.first);
    assert_true(hashset_count(m.disks) >= TEST_POINTS);
    if (PACE == 1) assert_true(m.reach.rolled && m.reach.expired && m.reach.cut && m.reach.tidied);
    matrix_fini(&m);
}

/* Whatever a sender puts into events, recovery takes none of it for a batch. */
static void no_forged_batch_is_believed(void **state)
{
    struct matrix m;

    (void)state;
    matrix_init(&m);
    m.forging = true;
    for (uint64_t seed = 1; m.forged < TEST_FORGED && m.violations == 0; seed++)
        run_matrix(&m, seed, 0, UINT64_MAX);
    if (m.violations > 0) fail_msg("%s", m.first);
    matrix_fini(&m);
}

/* How many distinct disks it took until the harness noticed; 0: it never did. */
static size_t catch_sabotage(unsigned sabotage, char first[512])
{
    struct matrix m;
    size_t disks = 0;

    matrix_init(&m);
    for (uint64_t seed = 1; seed <= SABOTAGE_RUNS_MAX && m.violations == 0; seed++)
        run_matrix(&m, seed, sabotage, UINT64_MAX);
    if (m.violations > 0) disks = hashset_count(m.disks) + 1;
    memcpy(first, m.first, sizeof m.first);
    matrix_fini(&m);
    return disks;
}

static const struct {
    unsigned sabotage;
    const char *name;
} sabotages[] = {
    {WEIR__LOG_SKIP_SYNC, "no fdatasync"},
    {WEIR__LOG_SKIP_DIR_SYNC, "no fsync of the folder"},
    {WEIR__LOG_SKIP_EPOCH, "no new epoch at open"},
    {WEIR__LOG_TRUST_FOUND, "trust a found header"},
};

static void every_sabotage_is_caught(void **state)
{
    char first[512];

    (void)state;
    for (size_t i = 0; i < sizeof sabotages / sizeof sabotages[0]; i++)
        if (catch_sabotage(sabotages[i].sabotage, first) == 0)
            fail_msg("%s: nobody noticed", sabotages[i].name);
}

/* ---- as a program ---- */

static int run_at_length(uint64_t points)
{
    struct matrix m;
    char first[512];
    int failures = 0;
    time_t start = time(NULL);

    matrix_init(&m);
    m.report = true;
    for (uint64_t seed = 1; hashset_count(m.disks) < points && m.violations == 0; seed++) {
        m.forging = seed % 5 == 0;
        run_matrix(&m, seed, 0, points);
    }
    printf("crash points: %zu distinct disks at %" PRIu64 " outside calls, in %lld s\n",
           hashset_count(m.disks), m.calls, (long long)(time(NULL) - start));
    printf("  %" PRIu64 " recoveries, %" PRIu64 " batches read back and compared\n", m.opened,
           m.batches);
    printf("  %" PRIu64 " workloads that lost power themselves %" PRIu64 " times: %" PRIu64
           " rolled, %" PRIu64 " let segments expire, %" PRIu64 " cut a torn tail, %" PRIu64
           " made a new file of producers\n",
           m.reach.runs, m.reach.cuts, m.reach.rolled, m.reach.expired, m.reach.cut,
           m.reach.tidied);
    printf("  %" PRIu64
           " of them with forged batch headers in unfinished bodies: none may be believed\n",
           m.forged);
    printf(
        "  violations (acknowledged and lost, changed, out of order, twice, back again): %" PRIu64
        "\n",
        m.violations);
    if (m.violations > 0) printf("  first: %s\n", m.first), failures++;
    for (size_t i = 0; i < sizeof sabotages / sizeof sabotages[0]; i++) {
        size_t disks = catch_sabotage(sabotages[i].sabotage, first);

        if (disks == 0)
            printf("sabotage, %s: NOT CAUGHT\n", sabotages[i].name), failures++;
        else
            printf("sabotage, %s: caught after %zu disks (%s)\n", sabotages[i].name, disks, first);
    }
    matrix_fini(&m);
    return failures > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost),
        cmocka_unit_test(no_forged_batch_is_believed),
        cmocka_unit_test(every_sabotage_is_caught),
    };

    if (argc > 1) return run_at_length(strtoull(argv[1], NULL, 10));
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
