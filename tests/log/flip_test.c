/* flip_test.c - one flipped bit in every 512 bytes of every file of a log, and in every 8 of a
 * batch's header.
 *
 * The log has sealed segments and one that is being written, and is flipped twice over: as a clean
 * close left it, and as a loss of power left it. Each time it must open, and every batch is either
 * served byte for byte or reported as damaged: exactly the batch that holds the bit, and no other.
 * After the loss of power the very last batch lies above the watermark and may be cut instead. In
 * the file of producers it costs some of them what they published last, and is told.
 *
 *   log_flip_test       a sample
 *   log_flip_test all   every 512 bytes; prints counts */
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

#define SEGMENTS_BEFORE 2
#define BATCHES_PER_SEGMENT 40
#define TEST_STRIDE (UINT64_C(13) * PACE) /* sectors; odd, so that every kind of place is met */
#define INSPECT_STRIDE 16
#define HEADER_BYTES 80u
#define DAY_MS INT64_C(86400000)

struct counts {
    uint64_t flips, in_batches, in_producers, reported, cut, harmless, inspected, violations;
    char first[600];
};

/* Where a batch lies. */
struct place {
    size_t index; /* in the history */
    char path[64];
    uint64_t at, end; /* bytes of header and body */
};

struct flipper {
    struct workload w;
    struct simfs *base; /* what is flipped */
    struct place *places;
    size_t place_count;
    struct counts *counts;
    uint64_t may_lose;
};

static void violation(struct flipper *f, const char *path, uint64_t byte, const char *text)
{
    if (f->counts->violations++ == 0)
        snprintf(f->counts->first, sizeof f->counts->first, "%s byte %" PRIu64 ": %s", path, byte,
                 text);
}

/* A few segments, sealed by age, and a last one; every batch waited for, so that each header
 * carries the watermark up to itself. */
static void build_log(struct flipper *f)
{
    struct workload *w = &f->w;

    workload_init(w, 21);
    if (f->may_lose > 0) w->options.producers_tidy_blocks = 0; /* as it was appended, at rolls */
    assert_int_equal(workload_open(w, NULL), 0);
    for (int s = 0; s <= SEGMENTS_BEFORE; s++) {
        for (int i = 0; i < BATCHES_PER_SEGMENT; i++) {
            struct history_order o = {
                .partition = (uint32_t)dice_roll(&w->dice, w->options.partitions),
                .bytes = HISTORY_BODY_BYTES_MIN + (uint32_t)dice_roll(&w->dice, i % 8 ? 900 : 9000),
                .count = 1 + (uint32_t)dice_roll(&w->dice, 9),
                .producer_id = dice_roll(&w->dice, 3),
            };

            simclock_pass(&w->clock, 5);
            assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
        }
        if (s == SEGMENTS_BEFORE) break;
        simclock_pass(&w->clock, 2 * DAY_MS);
        workload_roll(w);
        for (int i = 0; i < 3; i++) assert_int_equal(weir__log_step(w->log, NULL), 0);
    }
}

/* Finds every batch by its first bytes. */
static void find_places(struct flipper *f)
{
    const char *path;
    uint8_t first[16];

    f->places = test_calloc(f->w.history->count, sizeof f->places[0]);
    for (size_t k = 0; (path = simfs_path(f->base, k)) != NULL; k++) {
        uint64_t size = simfs_size(f->base, path);
        uint8_t *all = test_malloc(size);

        assert_int_equal(simfs_peek(f->base, path, all, size, 0), size);
        for (size_t i = 0; i < f->w.history->count; i++) {
            const struct history_batch *b = &f->w.history->batches[i];
            uint8_t *hit;

            history_body(i + 1, b->partition, first, sizeof first);
            hit = memmem(all, size, first, sizeof first);
            if (!hit) continue;
            f->places[f->place_count] = (struct place){
                .index = i,
                .at = (uint64_t)(hit - all) - HEADER_BYTES,
                .end = (uint64_t)(hit - all) + b->bytes,
            };
            snprintf(f->places[f->place_count++].path, sizeof f->places[0].path, "%s", path);
        }
        test_free(all);
    }
    assert_int_equal(f->place_count, f->w.history->count);
}

static const struct place *place_of(const struct flipper *f, const char *path, uint64_t byte)
{
    for (size_t i = 0; i < f->place_count; i++)
        if (strcmp(f->places[i].path, path) == 0 && byte >= f->places[i].at &&
            byte < f->places[i].end)
            return &f->places[i];
    return NULL;
}

/* What the reading brought to light against what the bit was in. */
static void judge(struct flipper *f, struct history *h, const struct place *hit, const char *path,
                  uint64_t byte)
{
    const char *name = strrchr(path, '/') + 1;
    char text[64];

    if (h->violations > 0) violation(f, path, byte, h->first);
    if (!hit) {
        f->counts->harmless++;
        if (h->damaged > 0) violation(f, path, byte, "damage where no batch lies");
        return;
    }
    f->counts->in_batches++;
    if (h->damaged == 0 && f->may_lose > 0 && hit->index + 1 == h->count) {
        f->counts->cut++;
        return;
    }
    f->counts->reported++;
    snprintf(text, sizeof text, "%" PRIu64 " events damaged, %u expected", h->damaged,
             h->batches[hit->index].count);
    if (h->damaged != h->batches[hit->index].count) violation(f, path, byte, text);
    snprintf(text, sizeof text, "%" PRIu64, h->batches[hit->index].receipt.sequence);
    if (!strstr(h->damage, name) || !strstr(h->damage, text)) violation(f, path, byte, h->damage);
}

struct inspection {
    const char *path;
    uint64_t byte;
    bool named;
};

static void note_finding(const struct weir__log_finding *finding, void *user)
{
    struct inspection *i = user;

    if (strcmp(finding->file, i->path) != 0) return;
    if (finding->kind == WEIR__LOG_COPY) i->named = true;
    if ((finding->kind == WEIR__LOG_DAMAGE || finding->kind == WEIR__LOG_PRODUCERS) &&
        i->byte >= finding->at && i->byte < finding->at + finding->len)
        i->named = true;
}

static void inspect(struct flipper *f, struct weir__log_options *o, const struct place *hit,
                    const char *path, uint64_t byte)
{
    struct inspection i = {path, byte, false};
    struct weir_error err = {0};
    uint64_t damaged = 0;
    bool last = f->may_lose > 0 && hit && hit->index + 1 == f->w.history->count;
    bool producers = strstr(path, "/producers-") != NULL;

    f->counts->inspected++;
    if (weir__log_inspect(o, note_finding, &i, &damaged, &err) != 0)
        violation(f, path, byte, err.text);
    else if (((hit && !last) || producers) && (damaged != 1 || !i.named))
        violation(f, path, byte, "inspect does not name the place");
    else if (!hit && damaged > 0 && !i.named) /* a copy of a header is told too */
        violation(f, path, byte, "inspect finds damage somewhere else");
}

/* A bit in the file of producers: only the log's count of damage knows, and its warning. */
static void judge_producers(struct flipper *f, struct weir__log *log, const char *path,
                            uint64_t byte)
{
    struct weir__log_stats stats;

    if (!strstr(path, "/producers-")) return;
    f->counts->in_producers++;
    weir__log_stats(log, &stats);
    if (stats.damaged_ranges != 1) violation(f, path, byte, "producers forgotten in silence");
}

static void flip(struct flipper *f, const char *path, uint64_t bit)
{
    struct simfs *disk = simfs_clone(f->base);
    struct history *h = history_copy(f->w.history);
    const struct place *hit = place_of(f, path, bit / 8);
    struct weir__log_options o = f->w.options;
    struct weir__log *log = NULL;
    struct weir_error err = {0};

    h->may_damage = true;
    h->may_lose = f->may_lose;
    o.fs = simfs_fs(disk);
    simfs_flip(disk, path, bit);
    if (f->counts->flips++ % INSPECT_STRIDE == 0 || hit || strstr(path, "/producers-"))
        inspect(f, &o, hit, path, bit / 8);
    if (weir__log_open(&log, &o, &err) != 0) {
        violation(f, path, bit / 8, err.text);
    } else {
        history_check(h, log, true);
        judge(f, h, hit, path, bit / 8);
        judge_producers(f, log, path, bit / 8);
    }
    weir__log_close(log, NULL);
    history_free(h);
    simfs_free(disk);
}

static void flip_everywhere(struct flipper *f, uint64_t stride)
{
    uint64_t dice = 5;
    const char *path;

    find_places(f);
    for (size_t k = 0; (path = simfs_path(f->base, k)) != NULL; k++)
        for (uint64_t at = 0; at < simfs_size(f->base, path); at += stride * SIMFS_SECTOR)
            flip(f, path, at * 8 + dice_roll(&dice, (uint64_t)SIMFS_SECTOR * 8));
    for (size_t i = 0; i < f->place_count; i += stride) /* headers are rarely met by chance */
        for (uint64_t word = 0; word < HEADER_BYTES / 8; word++)
            flip(f, f->places[i].path, (f->places[i].at + 8 * word) * 8 + dice_roll(&dice, 64));
    test_free(f->places);
}

static void run_flips(bool clean, uint64_t stride, struct counts *counts)
{
    struct flipper f = {.counts = counts, .may_lose = clean ? 0 : 1};

    build_log(&f);
    if (clean) {
        assert_int_equal(workload_close(&f.w), 0);
        f.base = simfs_clone(f.w.disk);
    } else {
        f.base = simfs_crash(f.w.disk, SIMFS_KEEP_NONE, 0);
    }
    flip_everywhere(&f, stride);
    simfs_free(f.base);
    workload_fini(&f.w);
}

static void flips_after_a_clean_close(void **state)
{
    struct counts c = {0};

    (void)state;
    run_flips(true, TEST_STRIDE, &c);
    if (c.violations > 0) fail_msg("%s", c.first);
    if (PACE == 1) assert_in_range(c.in_batches, 10, c.flips);
    assert_int_equal(c.reported, c.in_batches);
    assert_true(c.in_producers > 0);
}

static void flips_after_a_loss_of_power(void **state)
{
    struct counts c = {0};

    (void)state;
    run_flips(false, TEST_STRIDE, &c);
    if (c.violations > 0) fail_msg("%s", c.first);
    if (PACE == 1) assert_in_range(c.in_batches, 10, c.flips);
}

/* ---- as a program ---- */

static int run_at_length(void)
{
    int failures = 0;

    for (int clean = 0; clean < 2; clean++) {
        struct counts c = {0};

        run_flips(clean, 1, &c);
        printf("%s: %" PRIu64 " bits flipped, in every 512 bytes of every file and 8 of a header\n",
               clean ? "clean close" : "loss of power", c.flips);
        printf("  in a batch %" PRIu64 ": reported %" PRIu64 ", cut above the watermark %" PRIu64
               "\n",
               c.in_batches, c.reported, c.cut);
        printf("  in the file of producers %" PRIu64 ": all told\n", c.in_producers);
        printf("  elsewhere %" PRIu64 ": nothing lost\n", c.harmless);
        printf("  wrong events served, or damage not told: %" PRIu64 "%s%s\n", c.violations,
               c.violations ? ": " : "", c.first);
        failures += c.violations > 0;
    }
    return failures > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flips_after_a_clean_close),
        cmocka_unit_test(flips_after_a_loss_of_power),
    };

    (void)argv;
    if (argc > 1) return run_at_length();
    return cmocka_run_group_tests_name("flip", tests, NULL, NULL);
}
