/* sectors_test.c - sectors that went bad: garbled, zero, or unreadable; anywhere, one or several.
 *
 * A log with sealed segments, one that is being written, and files that were used again, as a clean
 * close or a loss of power left it. Whatever is hit, two copies of something among it, the log
 * opens, and
 *
 *   every batch whose own bytes are whole is served, byte for byte, with its old place
 *   every other is in a range that is told as damaged, or was the last and is cut
 *   nothing else is served, no range is told that holds nothing, and every skip leads forward
 *   an inspection before says the same
 *   it takes new batches, whose numbers are new, and never writes over what it could not read
 *
 *   log_sectors_test         some hundreds
 *   log_sectors_test COUNT   so many; prints counts */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/dice.h"
#include "support/pace.h"
#include "support/workload.h"

#define PARTITIONS 5u
#define BATCHES_PER_SEGMENT 30
#define SEQUENCES_MAX 4096u
#define HEADER_BYTES 80u
#define FAULTS_MAX 6
#define TURNS_MAX 4000
#define TEST_FAULTS (600 / PACE)
#define SABOTAGE_FAULTS_MAX 2000
#define CONTROL_COPY_AT (64u << 10)
#define DAY_MS INT64_C(86400000)

enum kind { GARBLED, ZERO, UNREADABLE };

static const char *const kind_names[] = {"garbled", "zero", "EIO"};

struct fault {
    enum kind kind;
    char path[64];
    uint64_t at; /* of the sector */
};

/* Where a batch lies. */
struct place {
    char path[64];
    uint64_t at, end;
};

enum shape { CLEAN, POWER_LOST, EXPIRED, SHAPES };

struct bench {
    struct workload w;
    struct simfs *base;         /* what is hit */
    struct place *places;       /* end 0: it has expired */
    uint64_t begin[PARTITIONS]; /* sequence numbers before have expired */
    bool power_lost;
};

struct counts {
    uint64_t faults, disks, served, damaged, cut, inspected, control_lost, headers_lost, violations;
    char first[700];
};

struct trial {
    struct bench *b;
    struct counts *counts;
    struct fault faults[FAULTS_MAX];
    int fault_count;
    struct simfs *disk;
    bool vague; /* neighbours were hit above the watermark: nobody can know whose they were */
    bool control_lost;                         /* both copies were hit */
    bool told[PARTITIONS][SEQUENCES_MAX];      /* as damaged by readers, */
    bool inspected[PARTITIONS][SEQUENCES_MAX]; /* by inspect */
    bool *served, *sure, *maybe;               /* per batch: read; hit; in a block that was hit */
};

/* ---- a log ---- */

static void fill(struct workload *w, int batches)
{
    for (int i = 0; i < batches; i++) {
        struct history_order o = {
            .partition = (uint32_t)dice_roll(&w->dice, PARTITIONS),
            .bytes = HISTORY_BODY_BYTES_MIN + (uint32_t)dice_roll(&w->dice, i % 6 ? 900 : 9000),
            .count = 1 + (uint32_t)dice_roll(&w->dice, 9),
            .producer_id = dice_roll(&w->dice, 3),
        };

        simclock_pass(&w->clock, 5);
        assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
    }
}

static void roll(struct workload *w)
{
    simclock_pass(&w->clock, 2 * DAY_MS);
    workload_roll(w);
    for (int i = 0; i < 3; i++) assert_int_equal(weir__log_step(w->log, NULL), 0);
}

/* Finds every batch by its first bytes. */
static void find_places(struct bench *b)
{
    const char *path;
    uint8_t first[16];

    b->places = test_calloc(b->w.history->count, sizeof b->places[0]);
    for (size_t k = 0; (path = simfs_path(b->base, k)) != NULL; k++) {
        uint64_t size = simfs_size(b->base, path);
        uint8_t *all = test_malloc(size);

        assert_int_equal(simfs_peek(b->base, path, all, size, 0), size);
        for (size_t i = 0; i < b->w.history->count; i++) {
            const struct history_batch *batch = &b->w.history->batches[i];
            uint8_t *hit;

            history_body(i + 1, batch->partition, first, sizeof first);
            hit = memmem(all, size, first, sizeof first);
            if (!hit || batch->receipt.sequence < b->begin[batch->partition]) continue;
            b->places[i].at = (uint64_t)(hit - all) - HEADER_BYTES;
            b->places[i].end = (uint64_t)(hit - all) + batch->bytes;
            snprintf(b->places[i].path, sizeof b->places[i].path, "%s", path);
        }
        test_free(all);
    }
}

static void build(struct bench *b, enum shape shape)
{
    struct workload *w = &b->w;

    *b = (struct bench){.power_lost = shape == POWER_LOST};
    workload_init(w, 33 + (uint64_t)shape);
    if (shape == EXPIRED) w->options.retain_ms = 4 * DAY_MS;
    assert_int_equal(workload_open(w, NULL), 0);
    for (int s = 0; s < (shape == EXPIRED ? 6 : 3); s++) {
        fill(w, BATCHES_PER_SEGMENT);
        roll(w);
    }
    fill(w, BATCHES_PER_SEGMENT);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        struct weir__log_partition_info info;

        assert_int_equal(weir__log_partition_info(w->log, p, &info, NULL), 0);
        b->begin[p] = info.begin_sequence;
        assert_int_equal(info.begin_sequence > 0, shape == EXPIRED);
    }
    if (shape == POWER_LOST) {
        b->base = simfs_crash(w->disk, SIMFS_KEEP_NONE, 0);
    } else {
        assert_int_equal(workload_close(w), 0);
        b->base = simfs_clone(w->disk);
    }
    find_places(b);
}

static void tear_down(struct bench *b)
{
    simfs_free(b->base);
    test_free(b->places);
    workload_fini(&b->w);
}

/* ---- hitting it ---- */

static bool is_segment(const char *path)
{
    return strstr(path, ".seg") != NULL;
}

static void violation(struct trial *t, const char *fmt, ...)
{
    char text[400];
    va_list args;
    size_t len = 0;
    struct counts *c = t->counts;

    if (c->violations++ > 0) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (int i = 0; i < t->fault_count && len < sizeof c->first; i++)
        len += (size_t)snprintf(c->first + len, sizeof c->first - len, "%s %s %" PRIu64 "; ",
                                kind_names[t->faults[i].kind], t->faults[i].path, t->faults[i].at);
    if (len < sizeof c->first) snprintf(c->first + len, sizeof c->first - len, "%s", text);
}

static void add_fault(struct trial *t, enum kind kind, const char *path, uint64_t at)
{
    struct fault *f = &t->faults[t->fault_count++];

    f->kind = kind;
    f->at = at / SIMFS_SECTOR * SIMFS_SECTOR;
    snprintf(f->path, sizeof f->path, "%s", path);
}

static void strike(struct trial *t, const struct fault *f, uint64_t *dice)
{
    uint8_t bytes[SIMFS_SECTOR] = {0};

    t->counts->faults++;
    if (f->kind == UNREADABLE) {
        simfs_spoil(t->disk, f->path, f->at, SIMFS_SECTOR);
        return;
    }
    for (size_t i = 0; f->kind == GARBLED && i < sizeof bytes; i++)
        bytes[i] = (uint8_t)dice_next(dice);
    simfs_poke(t->disk, f->path, bytes, sizeof bytes, f->at);
}

static bool overlaps(const struct fault *f, const struct place *p, uint64_t unit)
{
    uint64_t from = f->at / unit * unit;

    return strcmp(f->path, p->path) == 0 && p->at < from + unit && p->end > from;
}

/* Zeros over zeros hit nothing. */
static bool changed(struct trial *t, const struct place *p)
{
    size_t len = p->end - p->at;
    uint8_t *before = test_malloc(len), *after = test_malloc(len);
    bool differ;

    simfs_peek(t->b->base, p->path, before, len, p->at);
    simfs_peek(t->disk, p->path, after, len, p->at);
    differ = memcmp(before, after, len) != 0;
    test_free(before);
    test_free(after);
    return differ;
}

static void judge_hits(struct trial *t)
{
    for (size_t i = 0; i < t->b->w.history->count; i++) {
        const struct place *p = &t->b->places[i];

        if (p->end == 0) continue; /* expired */
        for (int k = 0; k < t->fault_count; k++) {
            const struct fault *f = &t->faults[k];

            if (f->kind == UNREADABLE && overlaps(f, p, SIMFS_SECTOR)) t->sure[i] = true;
            if (f->kind == UNREADABLE && overlaps(f, p, WEIR__FS_BLOCK)) t->maybe[i] = true;
            if (f->kind != UNREADABLE && overlaps(f, p, SIMFS_SECTOR) && changed(t, p))
                t->sure[i] = true;
        }
    }
}

/* Then every partition without a later batch shows a range at its end; see docs/guarantees.md. */
static void judge_vagueness(struct trial *t)
{
    bool before = false;

    for (size_t i = 0; i < t->b->w.history->count; i++) {
        bool hit = t->sure[i] || t->maybe[i];

        if (hit && before) t->vague = t->b->power_lost || t->control_lost;
        before = hit;
    }
}

/* ---- looking at it ---- */

static void mark(bool told[SEQUENCES_MAX], uint64_t first, uint64_t last)
{
    for (uint64_t s = first; s <= last && s < SEQUENCES_MAX; s++) told[s] = true;
}

static void note_finding(const struct weir__log_finding *f, void *user)
{
    struct trial *t = user;

    if (f->kind == WEIR__LOG_DAMAGE && f->partition >= 0)
        mark(t->inspected[f->partition], f->first_sequence, f->last_sequence);
}

static void inspect(struct trial *t, struct weir__log_options *o)
{
    struct weir_error err = {0};
    uint64_t damaged = 0;
    int rc = weir__log_inspect(o, note_finding, t, &damaged, &err);

    t->counts->inspected++;
    if (rc != 0) violation(t, "inspect: %s", err.text);
}

static void check_view(struct trial *t, uint32_t partition, const struct weir__log_view *v)
{
    const struct history *h = t->b->w.history;
    uint64_t number = v->body.len >= HISTORY_BODY_BYTES_MIN ? weir__load64(v->body.at) : 0;
    const struct history_batch *b;
    uint8_t *body;

    if (number == 0 || number > h->count) {
        violation(t, "partition %u: a batch that nobody sent", partition);
        return;
    }
    b = &h->batches[number - 1];
    body = test_malloc(b->bytes);
    history_body(number, b->partition, body, b->bytes);
    if (b->partition != partition || v->sequence != b->receipt.sequence ||
        v->offset != b->receipt.offset || v->time_ms != b->receipt.time_ms ||
        v->body.len != b->bytes || memcmp(v->body.at, body, b->bytes) != 0)
        violation(t, "partition %u: batch %" PRIu64 " is not as it was", partition, number);
    test_free(body);
    t->served[number - 1] = true;
    t->counts->served++;
}

/* Steps over what is told as damaged; false when that leads nowhere. */
static bool step_over(struct trial *t, struct weir__log_reader *r, uint32_t partition)
{
    uint64_t first, last, at = weir__log_reader_sequence(r);

    weir__log_reader_damage(r, &first, &last);
    if (first != at || last < first) {
        violation(t, "partition %u: damage %" PRIu64 " to %" PRIu64 " told at %" PRIu64, partition,
                  first, last, at);
        return false;
    }
    if (last >= SEQUENCES_MAX && !t->vague) {
        violation(t, "partition %u: damage up to %" PRIu64, partition, last);
        return false;
    }
    mark(t->told[partition], first, last);
    weir__log_reader_seek(r, last + 1);
    return true;
}

static void read_partition(struct trial *t, struct weir__log *log, uint32_t partition)
{
    struct weir__log_partition_info info;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v[8];
    struct weir_error err = {0};
    uint64_t missed = 0;
    uint32_t count = 1;
    int rc = weir__log_partition_info(log, partition, &info, NULL);

    if (rc == 0) rc = weir__log_reader_open(&r, log, partition, info.begin_sequence, 0, NULL);
    for (int turns = 0; rc == 0 && count > 0; turns++) {
        rc = weir__log_reader_next(r, v, 8, &count, &missed, &err);
        for (uint32_t i = 0; rc == 0 && i < count; i++) check_view(t, partition, &v[i]);
        if ((rc == WEIR_ECORRUPT || rc == WEIR_EIO) && step_over(t, r, partition))
            rc = 0, count = 1;
        if (turns > TURNS_MAX) rc = WEIR_EBUSY;
    }
    if (rc != 0) violation(t, "reading partition %u: %d %s", partition, rc, err.text);
    if (rc == 0 && weir__log_reader_sequence(r) != info.next_sequence)
        violation(t, "partition %u ends at %" PRIu64, partition, weir__log_reader_sequence(r));
    weir__log_reader_close(r);
}

/* Whether nothing behind this batch proves that it had been on disk. */
static bool may_be_cut(const struct trial *t, size_t index)
{
    if (!t->b->power_lost && !t->control_lost) return false;
    for (size_t i = index; i < t->b->w.history->count; i++)
        if (!t->sure[i] && !t->maybe[i]) return false;
    return true;
}

static bool was_told(bool told[SEQUENCES_MAX], const struct history_batch *b)
{
    for (uint64_t s = b->receipt.sequence; s < b->receipt.sequence + b->count; s++)
        if (!told[s]) return false;
    return true;
}

static void judge_batches(struct trial *t)
{
    const struct history *h = t->b->w.history;

    for (size_t i = 0; i < h->count; i++) {
        const struct history_batch *b = &h->batches[i];
        bool told = was_told(t->told[b->partition], b);

        if (t->b->places[i].end == 0) continue;
        if (t->served[i]) {
            if (t->sure[i]) violation(t, "batch %zu was hit, and is served", i + 1);
            continue;
        }
        if (!t->sure[i] && !t->maybe[i])
            violation(t, "batch %zu is whole, and is not served", i + 1);
        else if (told)
            t->counts->damaged++;
        else if (may_be_cut(t, i))
            t->counts->cut++;
        else
            violation(t, "batch %zu is lost, and nobody says so", i + 1);
    }
}

static uint64_t acked_of(const struct history *h, uint32_t partition)
{
    uint64_t next = 0;

    for (size_t i = 0; i < h->count; i++)
        if (h->batches[i].partition == partition)
            next = h->batches[i].receipt.sequence + h->batches[i].count;
    return next;
}

/* Ranges hold what was stored and is not served, and an inspection finds the same. */
static void judge_ranges(struct trial *t)
{
    const struct history *h = t->b->w.history;
    bool stored[PARTITIONS][SEQUENCES_MAX] = {{false}},
         maybe[PARTITIONS][SEQUENCES_MAX] = {{false}};

    for (size_t i = 0; i < h->count; i++) {
        const struct history_batch *b = &h->batches[i];
        uint64_t last = b->receipt.sequence + b->count - 1;

        if (t->b->places[i].end == 0) continue;
        if (!t->served[i]) mark(stored[b->partition], b->receipt.sequence, last);
        if (t->maybe[i]) mark(maybe[b->partition], b->receipt.sequence, last);
    }
    for (uint32_t p = 0; p < PARTITIONS; p++)
        for (uint64_t s = 0; s < SEQUENCES_MAX; s++) {
            if (t->told[p][s] && !stored[p][s] && !(t->vague && s >= acked_of(h, p)))
                violation(t, "partition %u: %" PRIu64 " is told as damaged", p, s);
            /* Readers read bytes, a walk reads blocks: it may miss a batch beside a bad sector. */
            if (t->told[p][s] != t->inspected[p][s] && !(t->inspected[p][s] && maybe[p][s]))
                violation(t, "partition %u: inspect and readers disagree about %" PRIu64, p, s);
        }
}

/* Not the control file, which is two copies to be written over, and not the spare. */
static bool holds_batches(const struct bench *b, const char *path)
{
    for (size_t i = 0; i < b->w.history->count; i++)
        if (b->places[i].end > 0 && strcmp(b->places[i].path, path) == 0) return true;
    return false;
}

/* It goes on: what is new is kept, and what was served before still is. */
static void go_on(struct trial *t, struct weir__log *log, struct weir__log_options *o)
{
    struct history *h = history_copy(t->b->w.history);
    struct history_order order = {.bytes = 700, .count = 3};
    struct weir_error err = {0};

    for (size_t i = 0; i < h->count; i++)
        if (!t->served[i]) h->batches[i].fate = HISTORY_UNKNOWN;
    h->may_damage = true;
    h->violations = 0;
    h->may_expire = true;
    for (order.partition = 0; order.partition < PARTITIONS; order.partition++)
        if (history_append_wait(h, log, &order) != 0) violation(t, "it takes nothing in");
    history_check(h, log, false);
    if (weir__log_close(log, &err) != 0) violation(t, "closing: %s", err.text);
    if (weir__log_open(&log, o, &err) != 0) {
        violation(t, "opening again: %s", err.text);
    } else {
        history_check(h, log, true);
        weir__log_close(log, NULL);
    }
    if (h->violations > 0) violation(t, "going on: %s", h->first);
    for (int i = 0; i < t->fault_count; i++)
        if (holds_batches(t->b, t->faults[i].path) &&
            simfs_spoilt_writes(t->disk, t->faults[i].path) > 0)
            violation(t, "it wrote over what it could not read");
    history_free(h);
}

static void run_trial(struct trial *t, unsigned sabotage, uint64_t *dice)
{
    struct weir__log_options o = t->b->w.options;
    struct simclock clock = t->b->w.clock;
    size_t count = t->b->w.history->count;
    struct weir__log *log = NULL;
    struct weir_error err = {0};

    t->disk = simfs_clone(t->b->base);
    t->served = test_calloc(3 * count, sizeof *t->served);
    t->sure = t->served + count;
    t->maybe = t->sure + count;
    for (int i = 0; i < t->fault_count; i++) strike(t, &t->faults[i], dice);
    judge_hits(t);
    judge_vagueness(t);
    o.fs = simfs_fs(t->disk);
    o.clock = simclock(&clock);
    o.sabotage = sabotage;
    o.retain_ms = -1;
    t->counts->disks++;
    inspect(t, &o);
    if (weir__log_open(&log, &o, &err) != 0) {
        violation(t, "it does not open: %s", err.text);
    } else {
        for (uint32_t p = 0; p < PARTITIONS; p++) read_partition(t, log, p);
        judge_batches(t);
        judge_ranges(t);
        go_on(t, log, &o);
    }
    if (simfs_open_files(t->disk) > 0) violation(t, "a file was left open");
    test_free(t->served);
    simfs_free(t->disk);
}

/* ---- where ---- */

static const char *random_file(struct bench *b, uint64_t *dice)
{
    size_t count = 0;

    while (simfs_path(b->base, count)) count++;
    return simfs_path(b->base, dice_roll(dice, count));
}

static const char *random_segment(struct bench *b, uint64_t *dice)
{
    const char *path;

    do path = random_file(b, dice);
    while (!is_segment(path));
    return path;
}

/* Both copies of a segment's header, or of its heads. */
static void hit_header(struct trial *t, enum kind kind, bool heads, uint64_t *dice)
{
    const char *path = random_segment(t->b, dice);
    uint64_t size = simfs_size(t->b->base, path), skip = heads ? WEIR__FS_BLOCK : 0;

    add_fault(t, kind, path, skip);
    add_fault(t, kind, path, size - WEIR__FS_BLOCK - skip);
    t->counts->headers_lost++;
}

static void hit_control(struct trial *t, enum kind kind)
{
    add_fault(t, kind, WORKLOAD_DIR "/control", 0);
    add_fault(t, kind, WORKLOAD_DIR "/control", CONTROL_COPY_AT);
    t->control_lost = true;
    t->counts->control_lost++;
}

static void hit_batch(struct trial *t, enum kind kind, uint64_t *dice)
{
    const struct place *p = &t->b->places[dice_roll(dice, t->b->w.history->count)];

    if (p->end > 0) add_fault(t, kind, p->path, p->at + dice_roll(dice, p->end - p->at));
}

static void hit_anywhere(struct trial *t, enum kind kind, uint64_t *dice)
{
    const char *path = random_file(t->b, dice);
    uint64_t size = simfs_size(t->b->base, path);
    bool front = dice_roll(dice, 2) > 0;

    if (is_segment(path) && front) size = size / 8; /* most of it was never written */
    if (strcmp(path, WORKLOAD_DIR "/control") == 0) {
        size = WEIR__FS_BLOCK; /* one copy of the control file */
        add_fault(t, kind, path, dice_roll(dice, size) + (front ? CONTROL_COPY_AT : 0));
        return;
    }
    add_fault(t, kind, path, dice_roll(dice, size));
}

static void choose_faults(struct trial *t, uint64_t *dice)
{
    enum kind kind = (enum kind)dice_roll(dice, 3);

    switch (dice_roll(dice, 8)) {
    case 0: hit_header(t, kind, false, dice); break;
    case 1: hit_header(t, kind, true, dice); break;
    case 2: hit_control(t, kind); break;
    case 3:
        hit_control(t, kind);
        hit_header(t, kind, dice_roll(dice, 2) > 0, dice);
        break;
    case 4:
        hit_header(t, kind, dice_roll(dice, 2) > 0, dice);
        hit_batch(t, kind, dice);
        break;
    case 5:
        hit_batch(t, kind, dice);
        hit_batch(t, kind, dice);
        break;
    default: hit_anywhere(t, kind, dice);
    }
}

static void run_faults(enum shape shape, uint64_t faults, unsigned sabotage, uint64_t seed,
                       struct counts *c)
{
    struct trial *t = test_malloc(sizeof *t);
    struct bench b;
    uint64_t dice = seed, until = c->faults + faults;

    build(&b, shape);
    while (c->faults < until && c->violations == 0) {
        *t = (struct trial){.b = &b, .counts = c};
        choose_faults(t, &dice);
        run_trial(t, sabotage, &dice);
    }
    tear_down(&b);
    test_free(t);
}

static void whatever_is_hit_the_rest_is_served(void **state)
{
    struct counts c = {0};

    (void)state;
    for (int s = 0; s < SHAPES; s++) run_faults((enum shape)s, TEST_FAULTS / SHAPES, 0, 77, &c);
    if (c.violations > 0) fail_msg("%s", c.first);
    if (PACE == 1) assert_true(c.damaged > 50 && c.control_lost > 20 && c.headers_lost > 20);
}

static void skipping_backwards_is_caught(void **state)
{
    struct counts c = {0};

    (void)state;
    run_faults(CLEAN, SABOTAGE_FAULTS_MAX, WEIR__LOG_SKIP_BACK, 5, &c);
    assert_true(c.violations > 0);
}

/* ---- as a program ---- */

static int run_at_length(uint64_t faults)
{
    struct counts c = {0};

    for (uint64_t seed = 1; c.faults < faults && c.violations == 0; seed++)
        run_faults((enum shape)(seed % SHAPES), 500, 0, seed, &c);
    printf("sector faults: %" PRIu64 " on %" PRIu64
           " disks; both copies of the control file %" PRIu64
           " times, of a header or its heads %" PRIu64 " times\n",
           c.faults, c.disks, c.control_lost, c.headers_lost);
    printf("  every disk opened; batches served %" PRIu64 ", told as damaged %" PRIu64
           ", cut at the end %" PRIu64 "\n",
           c.served, c.damaged, c.cut);
    printf("  wrong, not told, told and whole, or inspected otherwise: %" PRIu64 "%s%s\n",
           c.violations, c.violations ? ": " : "", c.first);
    memset(&c.first, 0, sizeof c.first);
    if (c.violations > 0) return 1;
    run_faults(CLEAN, SABOTAGE_FAULTS_MAX, WEIR__LOG_SKIP_BACK, 5, &c);
    printf("sabotage, skip backwards: %s\n", c.violations ? c.first : "NOT CAUGHT");
    return c.violations == 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_hit_the_rest_is_served),
        cmocka_unit_test(skipping_backwards_is_caught),
    };

    if (argc > 1) return run_at_length(strtoull(argv[1], NULL, 10));
    return cmocka_run_group_tests_name("sectors", tests, NULL, NULL);
}
