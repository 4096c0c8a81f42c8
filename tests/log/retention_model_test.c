/* retention_model_test.c - retention against a plain model of it.
 *
 * Random histories on a simulated disk with simulated time: appends of all sizes, quiet times, wall
 * clocks that jump both ways, restarts in the same boot and in another, other limits, full disks.
 * The model knows each batch with the moment it came, and after every act:
 *
 *   what is within both limits is there
 *   what is older than the time and an eighth is gone, once upkeep had its turn when it was due
 *   files take no more than what weir__log_disk_max says, or, without a limit, what was used
 *   an append fails for want of space only when there is none, and works again when there is
 *
 *   log_retention_model_test               some hundreds of histories, and the sabotages, as tests
 *   log_retention_model_test HISTORIES     so many; prints counts */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/dice.h"
#include "support/pace.h"
#include "support/simfs.h"

#define ACTS 50
#define HISTORIES (300 / PACE)
#define SABOTAGE_HISTORIES_MAX 200
#define PARTITIONS_MAX 8u
#define BODY_BYTES_MAX (60u << 10)
#define MINUTE_MS INT64_C(60000)
#define DAY_MS (1440 * MINUTE_MS)
#define SLACK_MS 5000 /* upkeep looks when something is due, and a second is the least age */
#define CONTROL_BYTES (128u << 10)
#define IDLE_MS 61000 /* after this */
#define IDLE_BYTES (600u << 10)
#define WAIT weir__deadline_ns(20000)

struct batch {
    uint32_t partition, count;
    uint64_t sequence;
    uint64_t bytes;   /* stored */
    int64_t at_ms;    /* when it came, in time the machine was up */
    int64_t off_ms;   /* what wall clocks had claimed by then of time it was off */
    bool may_be_gone; /* it has been outside of a limit */
    int64_t left_ms;  /* its segment was not left before this: nobody was there to do it */
};

struct model {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log;
    uint64_t dice;
    struct batch *batches;
    size_t count, cap, gone; /* those before gone are known to be */
    uint64_t appended;       /* bytes, stored */
    int64_t up_ms, off_ms;   /* in all boots; what wall clocks claimed */
    int64_t settled_ms;      /* since then limits are as they are and the disk is not full */
    bool full;
    uint64_t capacity;              /* of the disk then */
    uint64_t kept, expired, checks; /* batches seen to be, and looks */
    uint64_t violations;
    char first[400];
};

__attribute__((format(printf, 2, 3))) static void violation(struct model *m, const char *fmt, ...)
{
    va_list args;

    if (m->violations++ > 0) return;
    va_start(args, fmt);
    vsnprintf(m->first, sizeof m->first, fmt, args);
    va_end(args);
}

static int64_t roll_ms(int64_t below, struct model *m)
{
    return (int64_t)dice_roll(&m->dice, (uint64_t)below);
}

static void open_log(struct model *m)
{
    struct weir_error err = {0};

    m->o.clock = simclock(&m->clock);
    if (weir__log_open(&m->log, &m->o, &err) != 0) violation(m, "opening: %s", err.text);
}

/* ---- what must hold ---- */

static bool within_limits(const struct model *m, const struct batch *b, uint64_t bytes_from_it)
{
    int64_t age_ms = m->up_ms - b->at_ms + m->off_ms - b->off_ms;

    return (m->o.retain_ms < 0 || age_ms <= m->o.retain_ms) &&
           (m->o.retain_bytes == 0 || bytes_from_it <= m->o.retain_bytes);
}

/* Newest first, so that what lies behind a batch is known when its turn comes. */
static void judge(struct model *m)
{
    uint64_t bytes = 0;

    for (size_t i = m->count; i-- > m->gone;) {
        bytes += m->batches[i].bytes;
        if (!within_limits(m, &m->batches[i], bytes)) m->batches[i].may_be_gone = true;
    }
}

static bool must_be_gone(const struct model *m, const struct batch *b)
{
    int64_t rolled_ms = b->at_ms + m->o.retain_ms / 8;

    if (m->o.retain_ms < 0 || m->full) return false;
    if (rolled_ms < m->settled_ms) rolled_ms = m->settled_ms;
    if (rolled_ms < b->left_ms) rolled_ms = b->left_ms;
    return m->up_ms - rolled_ms > m->o.retain_ms + SLACK_MS;
}

static void check_batches(struct model *m)
{
    uint64_t begins[PARTITIONS_MAX] = {0};
    struct weir__log_partition_info info;

    for (uint32_t p = 0; p < m->o.partitions; p++) {
        if (weir__log_partition_info(m->log, p, &info, NULL) != 0) violation(m, "no partition");
        begins[p] = info.begin_sequence;
    }
    for (size_t i = m->gone; i < m->count; i++) {
        const struct batch *b = &m->batches[i];
        bool there = begins[b->partition] <= b->sequence;

        if (!there && !b->may_be_gone) violation(m, "batch %zu is within the limits and gone", i);
        if (there && must_be_gone(m, b))
            violation(m, "batch %zu is %" PRId64 " ms old and there", i, m->up_ms - b->at_ms);
        m->kept += there;
        m->expired += !there;
        if (!there && i == m->gone) m->gone++;
    }
}

/* Where nothing limits the bytes, reserved space follows what was stored: a segment that was full
 * held half of it, and makes the next one at most eight times as large, as that one its spare. */
static void check_disk(struct model *m)
{
    struct weir__log_stats s;
    uint64_t used = simfs_used(m->disk), most, ahead = UINT64_C(128) * m->appended;

    weir__log_stats(m->log, &s);
    if (ahead > 2 * m->o.segment_bytes_max) ahead = 2 * m->o.segment_bytes_max;
    most = s.stored_bytes + s.stored_bytes / 6 + s.segments * (64u << 10) + ahead + (128u << 10);
    if (s.disk_bytes_max) most = s.disk_bytes_max;
    if (used > most + CONTROL_BYTES && !m->full) /* then a large segment cannot be left */
        violation(m,
                  "%" PRIu64 " KiB on disk for %" PRIu64 " KiB in %" PRIu64
                  " segments; at most %" PRIu64,
                  used >> 10, s.stored_bytes >> 10, s.segments, most >> 10);
    if (s.disk_bytes > used || s.disk_bytes + CONTROL_BYTES < used)
        violation(m, "stats say %" PRIu64 " bytes on disk, not %" PRIu64, s.disk_bytes, used);
}

/* An idle hub reserves nothing, or little. */
static void check_idle(struct model *m)
{
    struct weir__log_stats s;

    weir__log_stats(m->log, &s);
    if (m->clock.mono_ms - m->log->written_mono_ms < IDLE_MS || m->full) return;
    if (s.disk_bytes > s.stored_bytes + s.stored_bytes / 6 + s.segments * (64u << 10) + IDLE_BYTES +
                           s.log_bytes / 16)
        violation(m,
                  "%" PRIu64 " KiB on disk for %" PRIu64 " KiB in %" PRIu64
                  " segments, and nobody appends",
                  s.disk_bytes >> 10, s.stored_bytes >> 10, s.segments);
}

static void check(struct model *m)
{
    judge(m);
    check_batches(m);
    check_disk(m);
    m->checks++;
}

/* Everything from the oldest to the newest can be read. */
static void read_all(struct model *m)
{
    struct weir__log_reader *r = NULL;
    struct weir__log_view v[16];
    uint64_t missed, at;
    uint32_t count;

    for (uint32_t p = 0; p < m->o.partitions; p++) {
        struct weir__log_partition_info info = {0};

        weir__log_partition_info(m->log, p, &info, NULL);
        at = info.begin_sequence;
        if (weir__log_reader_open(&r, m->log, p, at, 0, NULL) != 0) violation(m, "no reader");
        do {
            if (weir__log_reader_next(r, v, 16, &count, &missed, NULL) != 0 || missed > 0)
                violation(m, "partition %u cannot be read behind %" PRIu64, p, at);
            for (uint32_t i = 0; i < count; i++) at = v[i].sequence + v[i].count;
        } while (count > 0 && m->violations == 0);
        if (at != info.next_sequence) violation(m, "partition %u ends too early", p);
        weir__log_reader_close(r);
    }
}

/* ---- acts ---- */

static void step(struct model *m)
{
    struct weir_error err = {0};
    int rc = weir__log_step(m->log, &err);

    if (rc != 0 && !(m->full && rc == WEIR_ENOSPACE)) violation(m, "upkeep: %s", err.text);
}

static void pass(struct model *m, int64_t ms)
{
    simclock_pass(&m->clock, ms);
    m->up_ms += ms;
}

/* Upkeep has its turn whenever the log says that something is due. */
static void idle(struct model *m, int64_t ms)
{
    while (ms > 0) {
        int64_t next = 0;

        weir__mutex_lock(&m->log->lock);
        next = weir__upkeep_wait_ms(m->log);
        weir__mutex_unlock(&m->log->lock);
        if (m->full && next < 1 + ms / 64) next = 1 + ms / 64; /* it would try every second */
        if (next < 1) next = 1;
        if (next > ms) next = ms;
        pass(m, next);
        ms -= next;
        step(m);
    }
}

static void do_idle(struct model *m)
{
    int64_t most = m->o.retain_ms > 0 ? m->o.retain_ms : 30 * DAY_MS;

    idle(m, 1 + roll_ms(dice_roll(&m->dice, 4) ? most / 4 + 1 : 2 * most, m));
    check_idle(m);
}

static void do_short_idle(struct model *m)
{
    pass(m, roll_ms(3000, m));
}

static uint64_t least_segment(uint64_t batch_bytes)
{
    uint64_t bytes = 64u << 10;

    while (bytes < batch_bytes + (48u << 10)) bytes *= 2;
    return bytes;
}

static void note_batch(struct model *m, const struct batch *b)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->batches = realloc(m->batches, m->cap * sizeof *m->batches);
        assert_non_null(m->batches);
    }
    m->batches[m->count++] = *b;
    m->appended += b->bytes;
}

static void append(struct model *m, uint32_t body_bytes)
{
    static const uint8_t body[BODY_BYTES_MAX];
    struct weir__log_batch batch = {.partition = (uint32_t)dice_roll(&m->dice, m->o.partitions),
                                    .count = 1 + (uint32_t)dice_roll(&m->dice, 8),
                                    .body = {weir__bytes_of(body, body_bytes)}};
    struct batch b = {batch.partition, batch.count, 0,     weir__batch_bytes(body_bytes),
                      m->up_ms,        m->off_ms,   false, 0};
    uint64_t room = m->full ? m->capacity - simfs_used(m->disk) : UINT64_MAX;
    struct weir__log_receipt receipt;
    struct weir_error err = {0};
    int rc = weir__log_append_wait(m->log, &batch, WAIT, &receipt, &err);

    if (rc == WEIR_ENOSPACE && m->full && room < least_segment(b.bytes)) return;
    if (rc != 0) {
        violation(m, "appending %u bytes with room for %" PRIu64 ": %s", body_bytes, room,
                  err.text);
        return;
    }
    b.sequence = receipt.sequence;
    note_batch(m, &b);
}

static void do_append(struct model *m)
{
    uint64_t kind = dice_roll(&m->dice, 8), many = 1 + dice_roll(&m->dice, kind == 7 ? 40 : 6);

    while (many-- > 0 && m->violations == 0) {
        uint32_t most = kind < 4 ? 300 : kind < 7 ? 9000 : BODY_BYTES_MAX;

        append(m, 16 + (uint32_t)dice_roll(&m->dice, most - 16));
        pass(m, roll_ms(300, m));
    }
}

static void do_jump(struct model *m)
{
    int64_t most = dice_roll(&m->dice, 2) ? 60 * MINUTE_MS : 3650 * DAY_MS;

    m->clock.wall_ms += roll_ms(2 * most, m) - most;
    if (m->clock.wall_ms < 1) m->clock.wall_ms = 1;
}

static void do_restart(struct model *m)
{
    int64_t off_ms = dice_roll(&m->dice, 2) ? roll_ms(2 * DAY_MS, m) : roll_ms(5000, m);
    int64_t wall_ms = m->clock.wall_ms;
    int rc = weir__log_close(m->log, NULL);

    m->log = NULL;
    if (rc != 0) violation(m, "closing: %s", weir_error_name(rc));
    m->clock.wall_ms += off_ms;
    if (dice_roll(&m->dice, 4) == 0) do_jump(m);
    if (m->clock.boot != 0 && dice_roll(&m->dice, 2)) { /* the machine went on */
        m->clock.mono_ms += off_ms;
        m->up_ms += off_ms;
        for (size_t i = m->gone; i < m->count; i++)
            if (m->batches[i].at_ms + m->o.retain_ms / 8 > m->up_ms - off_ms - SLACK_MS)
                m->batches[i].left_ms = m->up_ms;
    } else {
        m->clock.mono_ms = 1000 + roll_ms(DAY_MS, m);
        m->clock.boot = dice_roll(&m->dice, 4) ? dice_next(&m->dice) : 0;
        if (m->clock.wall_ms > wall_ms) m->off_ms += m->clock.wall_ms - wall_ms;
    }
    open_log(m);
}

static void choose_limits(struct model *m)
{
    static const int64_t times[] = {-1, MINUTE_MS, 60 * MINUTE_MS, DAY_MS, 7 * DAY_MS};
    static const uint64_t bytes[] = {0, 0, 1, 100u << 10, 1u << 20, 3u << 20, 10u << 20};

    m->o.retain_ms = times[dice_roll(&m->dice, 5)];
    m->o.retain_bytes = bytes[dice_roll(&m->dice, 7)];
}

static void do_limits(struct model *m)
{
    choose_limits(m);
    weir__log_set_retention(m->log, m->o.retain_ms, m->o.retain_bytes);
    m->settled_ms = m->up_ms;
    for (int i = 0; i < 2; i++) step(m); /* a roll, and what it makes possible */
}

static void do_full_disk(struct model *m)
{
    m->full = !m->full;
    m->capacity = m->full ? simfs_used(m->disk) + dice_roll(&m->dice, 1u << 20) : 0;
    simfs_capacity(m->disk, m->capacity);
    m->settled_ms = m->up_ms;
    if (!m->full) append(m, 16 + (uint32_t)dice_roll(&m->dice, BODY_BYTES_MAX - 16));
}

static const struct {
    void (*run)(struct model *);
    unsigned weight;
} acts[] = {
    {do_append, 40},  {do_idle, 16},  {do_short_idle, 8}, {do_jump, 8},
    {do_restart, 10}, {do_limits, 5}, {do_full_disk, 6},
};

static void act(struct model *m)
{
    unsigned total = 0, i = 0;
    uint64_t roll;

    for (size_t k = 0; k < sizeof acts / sizeof acts[0]; k++) total += acts[k].weight;
    roll = dice_roll(&m->dice, total);
    while (roll >= acts[i].weight) roll -= acts[i++].weight;
    acts[i].run(m);
}

/* ---- histories ---- */

static void model_init(struct model *m, uint64_t seed, unsigned sabotage)
{
    *m = (struct model){.dice = seed, .disk = simfs_new()};
    m->clock = (struct simclock){INT64_C(1700000000000), 1000, dice_roll(&m->dice, 4)};
    m->o = (struct weir__log_options){
        .fs = simfs_fs(m->disk),
        .clock = simclock(&m->clock),
        .dir = "log",
        .hub_id = 1,
        .partitions = 1 + (uint32_t)dice_roll(&m->dice, PARTITIONS_MAX),
        .batch_bytes_max = 64u << 10,
        .segment_bytes_max = (uint64_t)(256u << 10) << 2 * dice_roll(&m->dice, 3),
        .no_threads = true,
        .sabotage = sabotage,
    };
    choose_limits(m);
}

static void run_history(struct model *m, uint64_t seed, unsigned sabotage)
{
    struct weir_error err = {0};

    model_init(m, seed, sabotage);
    if (weir__log_create(&m->o, &err) != 0) violation(m, "creating: %s", err.text);
    open_log(m);
    for (int i = 0; i < ACTS && m->violations == 0; i++) {
        act(m);
        if (m->log) step(m);
        if (m->log) check(m);
        if (m->log && i % 16 == 15) read_all(m);
    }
    weir__log_close(m->log, NULL);
    simfs_free(m->disk);
    free(m->batches);
}

struct counts {
    uint64_t histories, batches, kept, expired, checks, violations;
    char first[480];
};

static void run_histories(struct counts *c, uint64_t from, uint64_t count, unsigned sabotage)
{
    struct model m;

    for (uint64_t seed = from; seed < from + count && c->violations == 0; seed++) {
        run_history(&m, seed, sabotage);
        c->histories++;
        c->batches += m.count;
        c->kept += m.kept;
        c->expired += m.expired;
        c->checks += m.checks;
        c->violations += m.violations;
        if (m.violations)
            snprintf(c->first, sizeof c->first, "history %" PRIu64 ": %s", seed, m.first);
    }
}

static void what_is_promised_is_kept(void **state)
{
    struct counts c = {0};

    (void)state;
    run_histories(&c, 1, HISTORIES, 0);
    if (c.violations > 0) fail_msg("%s", c.first);
    assert_true(c.expired > 0 && c.kept > 0);
}

static const struct {
    unsigned sabotage;
    const char *name;
} sabotages[] = {
    {WEIR__LOG_COUNT_CAPACITY, "count what is reserved"},
    {WEIR__LOG_SIZE_BY_DOUBLING, "double at every roll"},
};

static void sabotage_is_caught(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sabotages / sizeof sabotages[0]; i++) {
        struct counts c = {0};

        run_histories(&c, 1, SABOTAGE_HISTORIES_MAX, sabotages[i].sabotage);
        if (c.violations == 0) fail_msg("%s: nobody noticed", sabotages[i].name);
    }
}

/* ---- as a program ---- */

static int run_at_length(uint64_t histories)
{
    struct counts c = {0};
    int failures = 0;

    run_histories(&c, 1, histories, 0);
    printf("retention: %" PRIu64 " histories, %" PRIu64 " batches, %" PRIu64 " looks\n",
           c.histories, c.batches, c.checks);
    printf("  %" PRIu64 " times a batch was there, %" PRIu64 " times one had gone\n", c.kept,
           c.expired);
    printf("  violations (within the limits and gone, too old and there, more on disk than may be, "
           "refused with room): %" PRIu64 "\n",
           c.violations);
    if (c.violations > 0) printf("  first: %s\n", c.first), failures++;
    for (size_t i = 0; i < sizeof sabotages / sizeof sabotages[0]; i++) {
        struct counts s = {0};

        run_histories(&s, 1, SABOTAGE_HISTORIES_MAX, sabotages[i].sabotage);
        if (s.violations == 0)
            printf("sabotage, %s: NOT CAUGHT\n", sabotages[i].name), failures++;
        else
            printf("sabotage, %s: caught (%s)\n", sabotages[i].name, s.first);
    }
    return failures > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_promised_is_kept),
        cmocka_unit_test(sabotage_is_caught),
    };

    if (argc > 1) return run_at_length(strtoull(argv[1], NULL, 10));
    return cmocka_run_group_tests_name("retention_model", tests, NULL, NULL);
}
