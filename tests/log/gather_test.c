/* gather_test.c - files that claim to be the same segment, or to lie where another one does. */
#include "segments.h"

#include <stdio.h>

#include "log/state.h"

#define BATCHES 13u /* six in each of two segments, the last one alone in the third */
#define SEGMENT_2 DIR_NAME "/00000002.seg"
#define SEGMENT_9 DIR_NAME "/00000009.seg"

struct scene {
    struct segments at;
    char said[1024]; /* a line each */
};

static void hear(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;
    size_t len = strlen(s->said);

    (void)level, (void)room;
    snprintf(s->said + len, sizeof s->said - len, "%s\n", line);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    segments_init(&s->at, 3, BATCHES, false);
    s->at.o.logger = (struct weir__logger){hear, s};
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    segments_fini(&s->at);
    free(s);
    return 0;
}

static void copy(struct scene *s, const char *from, const char *to, uint8_t all[SEGMENT_BYTES])
{
    assert_int_equal(simfs_peek(s->at.disk, from, all, SEGMENT_BYTES, 0), SEGMENT_BYTES);
    simfs_put(s->at.disk, to, all, SEGMENT_BYTES);
}

/* A file that holds what another one holds, under a header that says something else. */
static void forge(struct scene *s, const char *from, const char *path, int epochs_later,
                  int64_t bytes_further)
{
    static uint8_t all[SEGMENT_BYTES];
    struct weir__fs *fs = s->at.o.fs;
    struct weir__segment_header h;
    struct weir__file *f = NULL;
    int bad;

    copy(s, from, path, all);
    assert_int_equal(fs->ops->open(fs, path, 0, &f, NULL), 0);
    assert_int_equal(weir__segment_read_header(f, s->at.o.hub_id, &h, &bad, NULL), 0);
    h.epoch += (uint32_t)epochs_later;
    h.base += (uint64_t)bytes_further;
    assert_int_equal(weir__segment_write_header(f, &h, s->at.o.hub_id, all + WEIR__FS_BLOCK, NULL),
                     0);
    assert_int_equal(f->ops->sync(f, NULL), 0);
    weir__file_close(f);
}

/* A segment that is lost lies between the others, and nothing is stored in it. */
static void check_lost(struct weir__log *log)
{
    struct weir__log_stats stats;
    uint64_t stored = 0;

    for (size_t i = 0; i < log->segment_count; i++) {
        const struct weir__segment *seg = log->segments[i];

        if (!seg->lost) stored += seg->end - seg->data;
        if (!seg->lost) continue;
        assert_int_equal(seg->data, seg->h.base);
        assert_int_equal(seg->end, seg->h.base);
        assert_int_equal(seg->h.base, log->segments[i - 1]->h.base + SEGMENT_BYTES);
        assert_int_equal(seg->h.capacity, SEGMENT_BYTES);
        assert_int_equal(seg->h.partitions, 3);
    }
    weir__log_stats(log, &stats);
    assert_int_equal(stats.stored_bytes, stored);
}

static void open_and_close(struct scene *s)
{
    struct weir_error err = {0};
    struct weir__log *log;

    if (weir__log_open(&log, &s->at.o, &err) != 0) fail_msg("%s", err.text);
    check_lost(log);
    assert_int_equal(weir__log_close(log, NULL), 0);
}

#define KEPT(file) "damage file=log/" file ": it is not of the log as it stands; it is kept\n"

/* Of two files with one number, the one that a later opening made counts; of one opening, the first by
 * name. The other one stays. */
static void the_later_file_counts(void **state)
{
    const struct {
        const char *path;
        int epochs_later;
        const char *said;
    } cases[] = {{SEGMENT_2, 1, KEPT("00000002.seg")},
                 {SEGMENT_2, -1, KEPT("00000009.seg")},
                 {SEGMENT_1, 1, KEPT("00000001.seg")},
                 {SEGMENT_1, 0, KEPT("00000009.seg")}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *s = *state;

        forge(s, cases[i].path, SEGMENT_9, cases[i].epochs_later, 0);
        open_and_close(s);
        assert_string_equal(s->said, cases[i].said);
        tear_down(state);
        set_up(state);
    }
}

/* Without a header, what lies in a file says that it is of the log, also of the oldest segment. */
static void a_copy_without_a_header_is_kept(void **state)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    static uint8_t all[SEGMENT_BYTES];
    const char *const from[] = {SEGMENT_1, SEGMENT_2};
    struct scene *s = *state;

    for (int i = 0; i < 2; i++) {
        s->said[0] = 0;
        copy(s, from[i], SEGMENT_9, all);
        simfs_poke(s->at.disk, SEGMENT_9, zeros, sizeof zeros, 0);
        simfs_poke(s->at.disk, SEGMENT_9, zeros, sizeof zeros, SEGMENT_BYTES - sizeof zeros);
        open_and_close(s);
        assert_string_equal(s->said, KEPT("00000009.seg"));
    }
}

/* One that reaches into the segment behind it is not what it says, and stays as well. */
static void overlaps_are_not_believed(void **state)
{
    const int64_t further[] = {WEIR__FS_BLOCK, 2 * (int64_t)SEGMENT_BYTES};
    struct scene *s = *state;

    for (int i = 0; i < 2; i++) {
        s->said[0] = 0;
        forge(s, SEGMENT_2, SEGMENT_2, 0, i == 0 ? further[0] : further[1] - further[0]);
        open_and_close(s);
        assert_string_equal(
            s->said,
            "damage file=log/00000002.seg: it says to be segment 2, but reaches into the one "
            "behind it\n"
            "damage file=log/(missing): segment 2 is lost: no file can be shown to be it\n" KEPT(
                "00000002.seg"));
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_later_file_counts),
        CASE(a_copy_without_a_header_is_kept),
        CASE(overlaps_are_not_believed),
    };

    return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
