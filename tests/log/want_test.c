/* want_test.c - opening, growing, copying and inspecting a log that needs a repair, while memory runs out
 * or the machine refuses a call once: there is no answer, or it is the one there would have been. */
#include "segments.h"

#include <inttypes.h>
#include <stdio.h>

#include "log/backup.h"
#include "log/state.h"
#include "support/allocs.h"
#include "support/pace.h"

#define PARTITIONS 3u
#define BATCHES 13u /* six in each of two segments, the last one alone in the third */
#define TRIES_MAX 1000
#define TEXT_BYTES 8192
#define CONTROL DIR_NAME "/control"
#define SEGMENT_2 DIR_NAME "/00000002.seg"
#define SEGMENT_3 DIR_NAME "/00000003.seg"

/* ---- what is wrong with the log ---- */

static void lose_headers(struct segments *s, const char *path)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];

    simfs_poke(s->disk, path, zeros, sizeof zeros, 0);
    simfs_poke(s->disk, path, zeros, sizeof zeros, simfs_size(s->disk, path) - sizeof zeros);
}

static void lose(struct segments *s, const char *path)
{
    struct weir__fs *fs = simfs_fs(s->disk);

    assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
    assert_int_equal(fs->ops->sync_dir(fs, DIR_NAME, NULL), 0);
}

static void nothing(struct segments *s)
{
    (void)s;
}

static void headless_first(struct segments *s)
{
    lose_headers(s, SEGMENT_1);
}

static void headless_middle(struct segments *s)
{
    lose_headers(s, SEGMENT_2);
}

static void headless_last(struct segments *s)
{
    lose_headers(s, SEGMENT_3);
}

static void headless_all_but_one(struct segments *s)
{
    lose_headers(s, SEGMENT_2);
    lose_headers(s, SEGMENT_3);
}

static void no_control(struct segments *s)
{
    lose(s, CONTROL);
}

static void no_control_headless_last(struct segments *s)
{
    lose(s, CONTROL);
    lose_headers(s, SEGMENT_3);
}

static void no_control_headless_middle(struct segments *s)
{
    lose(s, CONTROL);
    lose_headers(s, SEGMENT_2);
}

static void no_control_headless_oldest(struct segments *s)
{
    lose(s, CONTROL);
    lose(s, SEGMENT_1);
    lose_headers(s, SEGMENT_2);
}

static void lost_middle(struct segments *s)
{
    lose(s, SEGMENT_2);
}

static void lost_last(struct segments *s)
{
    lose(s, SEGMENT_3);
}

/* A bit of the only batch in the last segment: an unfinished write. */
static void torn(struct segments *s)
{
    simfs_flip(s->disk, SEGMENT_3, 8 * (2 * (uint64_t)WEIR__FS_BLOCK + 200));
}

static void no_producers(struct segments *s)
{
    lose(s, DIR_NAME "/producers-00000001.tab");
}

/* ---- the answers ---- */

struct answer {
    char text[TEXT_BYTES];
    size_t len;
};

static void say(struct answer *a, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    a->len += (size_t)vsnprintf(a->text + a->len, TEXT_BYTES - a->len, fmt, args);
    va_end(args);
    assert_true(a->len < TEXT_BYTES);
}

static void say_heads(struct answer *a, const char *what, const struct weir__head *heads)
{
    say(a, "%s", what);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        say(a, " %" PRIu64 " %" PRIu64 " %" PRId64 ",", heads[i].next_sequence,
            heads[i].last_offset, heads[i].last_time_ms);
    say(a, "\n");
}

static void say_log(struct answer *a, struct weir__log *log)
{
    struct weir__log_stats stats;

    for (size_t i = 0; i < log->segment_count; i++) {
        const struct weir__segment *seg = log->segments[i];

        say(a, "%s %" PRIu64 " %" PRIu64 "+%" PRIu64 " %" PRIu64 "-%" PRIu64 " %d%d%d", seg->name,
            seg->h.number, seg->h.base, seg->h.capacity, seg->data, seg->end, seg->lost,
            seg->headless, seg->spoilt);
        say(a, " %" PRId64 " %u %u\n", seg->h.time_ms, seg->h.epoch, seg->h.partitions);
    }
    say_heads(a, "end", log->durable_heads);
    say_heads(a, "begin", log->begin_heads);
    say_heads(a, "start", log->start_heads);
    weir__log_stats(log, &stats);
    say(a, "%" PRIu64 " damaged, %" PRIu64 " producers, %u roll %u\n", stats.damaged_ranges,
        (uint64_t)stats.producers, log->must_roll, log->epoch);
}

static int open_log(struct segments *s, struct answer *a)
{
    struct weir__log *log = NULL;
    int rc = weir__log_open(&log, &s->o, NULL);

    allocs_pause();
    if (rc == 0) {
        say_log(a, log);
        weir__log_close(log, NULL);
    }
    allocs_resume();
    return rc;
}

/* Another one beside it, and what was made. */
static int create_log(struct segments *s, struct answer *a)
{
    struct weir__log_options o = s->o;
    int rc;

    o.dir = "other";
    rc = weir__log_create(&o, NULL);
    s->o.dir = o.dir;
    allocs_pause();
    if (rc == 0) rc = open_log(s, a);
    allocs_resume();
    return rc;
}

/* An index that cannot be read is one that has to be made again. */
static void say_finding(const struct weir__log_finding *f, void *user)
{
    if (f->kind == WEIR__LOG_INDEX) return;
    allocs_pause();
    say(user, "%d %s %" PRIu64 "+%" PRIu64 " %" PRId64 " %" PRIu64 "-%" PRIu64 " %s\n", f->kind,
        f->file, f->at, f->len, f->partition, f->first_sequence, f->last_sequence, f->text);
    allocs_resume();
}

static int inspect_log(struct segments *s, struct answer *a)
{
    uint64_t damaged = 0;
    int rc = weir__log_inspect(&s->o, say_finding, a, &damaged, NULL);

    say(a, "%" PRIu64 " damaged\n", damaged);
    return rc;
}

/* Without memory it has as many partitions as before, and goes on. */
static int grow_log(struct segments *s, struct answer *a)
{
    struct weir__log *log = NULL;
    int rc;

    allocs_pause();
    rc = weir__log_open(&log, &s->o, NULL);
    allocs_resume();
    if (rc != 0) return rc;
    rc = weir__log_grow(log, 5 * PARTITIONS, NULL);
    allocs_pause();
    if (rc == WEIR_ENOMEM) assert_int_equal(weir__log_partitions(log), PARTITIONS);
    if (rc == WEIR_ENOMEM) segments_put(log, 0, false);
    say(a, "%u partitions\n", weir__log_partitions(log));
    weir__log_close(log, NULL);
    allocs_resume();
    return rc;
}

/* All that can be read of a partition, and where some places of it are. */
static int say_partition(struct weir__log *log, uint32_t partition, struct answer *a)
{
    struct weir__log_reader *r = NULL;
    struct weir__log_view views[4];
    uint64_t missed = 0, sequence = 0;
    uint32_t count = 1;
    int rc = weir__log_reader_open(&r, log, partition, 0, 0, NULL);

    while (rc == 0 && count > 0) {
        rc = weir__log_reader_next(r, views, 4, &count, &missed, NULL);
        for (uint32_t i = 0; rc == 0 && i < count; i++)
            say(a, "%" PRIu64 "+%u at %" PRIu64 ", ", views[i].sequence, views[i].count,
                views[i].offset);
    }
    weir__log_reader_close(r);
    for (size_t i = 0; rc == 0 && i < log->segment_count; i++) {
        int64_t offset = (int64_t)log->segments[i]->data + 10000;

        rc = weir__log_find(log, partition, WEIR__LOG_BY_OFFSET, offset, true, &sequence, NULL);
        say(a, "%" PRIu64 " at %" PRId64 "\n", sequence, offset);
    }
    return rc;
}

/* What is damaged is told so, whatever else fails. */
static int read_log(struct segments *s, struct answer *a)
{
    struct weir__log *log = NULL;
    int rc;

    allocs_pause();
    rc = weir__log_open(&log, &s->o, NULL);
    allocs_resume();
    for (uint32_t i = 0; rc == 0 && i < PARTITIONS; i++) rc = say_partition(log, i, a);
    allocs_pause();
    weir__log_close(log, NULL);
    allocs_resume();
    return rc;
}

/* An index that cannot be read is left out of a copy. */
static int say_row(const struct weir__backup_log *log, const struct weir__backup_moment *m,
                   struct answer *a)
{
    struct weir__backup_row row;
    int rc = weir__backup_row_read(log, m, &row, NULL);

    for (size_t i = 0; rc == 0 && i < row.count; i++) {
        const struct weir__segment *seg = &row.at[i];
        struct weir__backup_extent x;

        rc = weir__backup_measure(log, seg, seg->end, i + 1 < row.count, &x, NULL);
        if (rc == 0)
            say(a, "%s %" PRIu64 " %" PRIu64 "-%" PRIu64 " %d %" PRIu64 "\n", seg->name,
                seg->h.number, seg->data, seg->end, seg->lost, x.used);
    }
    weir__backup_row_fini(&row);
    return rc;
}

static int back_up_log(struct segments *s, struct answer *a)
{
    struct weir__backup_log log = {s->o.fs, DIR_NAME, s->o.hub_id};
    struct weir__backup_moment m;
    uint64_t first = 0;
    int rc = weir__backup_moment_take(&log, &m, NULL);

    if (rc != 0) return rc;
    rc = weir__backup_moment_settle(&log, &m, NULL);
    if (rc == 0) rc = weir__backup_moment_still(&log, &m, &first, NULL);
    if (rc == 0) rc = say_row(&log, &m, a);
    if (rc == 0) say_heads(a, "end", m.heads);
    say(a, "%" PRIu64 " %d, from %" PRIu64 "\n", m.end, m.damaged, first);
    weir__backup_moment_fini(&m);
    return rc;
}

/* ---- what fails ---- */

/* The disk's own memory never fails. */
static void spare_disk(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    (void)disk, (void)kind, (void)user;
    if (entering)
        allocs_pause();
    else
        allocs_resume();
}

/* Starts with a disk like this one. */
static struct segments copy_of(const struct segments *from)
{
    struct segments s = *from;

    s.disk = simfs_clone(from->disk);
    s.o.fs = simfs_fs(s.disk);
    simfs_hook(s.disk, spare_disk, NULL);
    return s;
}

typedef int (*ask_fn)(struct segments *, struct answer *);

struct trial {
    const char *name;
    ask_fn ask;
    int rc; /* of what fails */
    bool memory;
};

/* False: there is no such allocation, or call. */
static bool try_once(const struct segments *from, const struct trial *t, uint64_t at,
                     const struct answer *wanted)
{
    struct simfs_fault fault = {.kinds = SIMFS_ANY, .at = at, .rc = t->rc};
    static struct answer got;
    struct segments s = copy_of(from);
    bool struck;
    int rc;

    got.len = 0;
    if (!t->memory) simfs_fail(s.disk, &fault);
    allocs_fail(t->memory ? at : 0);
    rc = t->ask(&s, &got);
    struck = t->memory ? allocs_failed() : simfs_failed(s.disk);
    allocs_fail(0);
    simfs_fail(s.disk, NULL);
    if (rc != 0 && rc != t->rc && (t->memory || rc != WEIR_EFAILED))
        fail_msg("%s, %" PRIu64 ": %d", t->name, at, rc);
    if (rc == 0 && strcmp(got.text, wanted->text) != 0)
        fail_msg("%s, %" PRIu64 ":\n%s\ninstead of\n%s", t->name, at, got.text, wanted->text);
    assert_int_equal(simfs_open_files(s.disk), 0);
    simfs_free(s.disk);
    return struck;
}

static void try_all(struct segments *s, const char *name)
{
    const struct trial trials[] = {
        {name, create_log, WEIR_ENOMEM, true},  {name, create_log, WEIR_EBUSY, false},
        {name, open_log, WEIR_ENOMEM, true},    {name, open_log, WEIR_EBUSY, false},
        {name, read_log, WEIR_ENOMEM, true},    {name, read_log, WEIR_EBUSY, false},
        {name, grow_log, WEIR_ENOMEM, true},    {name, grow_log, WEIR_EBUSY, false},
        {name, back_up_log, WEIR_ENOMEM, true}, {name, back_up_log, WEIR_ENOMEM, false},
        {name, inspect_log, WEIR_ENOMEM, true}, {name, inspect_log, WEIR_EBUSY, false},
    };

    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        static struct answer wanted;
        struct segments whole = copy_of(s);
        uint64_t at = 1;
        int rc;

        wanted.len = 0;
        allocs_fail(0);
        rc = trials[i].ask(&whole, &wanted);
        simfs_free(whole.disk);
        if (rc != 0 && trials[i].ask == back_up_log) continue; /* it has no end that can be seen */
        if (rc == WEIR_ECORRUPT && trials[i].ask == read_log) continue;
        assert_int_equal(rc, 0);
        while (at < TRIES_MAX && try_once(s, &trials[i], at, &wanted)) at += PACE;
        assert_in_range(at, 6, TRIES_MAX - 1);
    }
}

static void there_is_no_answer_or_the_right_one(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(struct segments *);
    } scenes[] = {
        {"nothing", nothing},
        {"headless first", headless_first},
        {"headless middle", headless_middle},
        {"headless last", headless_last},
        {"headless all but one", headless_all_but_one},
        {"no control", no_control},
        {"no control, headless last", no_control_headless_last},
        {"no control, headless middle", no_control_headless_middle},
        {"no control, headless oldest", no_control_headless_oldest},
        {"lost middle", lost_middle},
        {"lost last", lost_last},
        {"torn", torn},
        {"no producers", no_producers},
    };

    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct segments s;

        allocs_pause();
        segments_init(&s, PARTITIONS, BATCHES, true);
        scenes[i].spoil(&s);
        allocs_resume();
        try_all(&s, scenes[i].name);
        segments_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_answer_or_the_right_one),
    };

    return cmocka_run_group_tests_name("want", tests, NULL, NULL);
}
