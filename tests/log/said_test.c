/* said_test.c - what a log tells its logger, and why a roll failed, word by word. */
#include "segments.h"

#include <stdio.h>

#include "log/state.h"

#define BATCHES 13u /* six in each of two segments, the last one alone in the third */
#define FAULT "simulated fault"

struct scene {
    struct segments at;
    struct weir__log *log;
    char said[2048]; /* a line each */
};

static void hear(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;
    size_t len = strlen(s->said);

    assert_string_equal(room, "log");
    snprintf(s->said + len, sizeof s->said - len, "%s %s\n",
             level == WEIR__ERROR  ? "error"
             : level == WEIR__WARN ? "warning"
                                   : "info",
             line);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    segments_init(&s->at, 3, BATCHES, true);
    s->at.o.logger = (struct weir__logger){hear, s};
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    simfs_fail(s->at.disk, NULL);
    weir__log_close(s->log, NULL);
    segments_fini(&s->at);
    free(s);
    return 0;
}

static void open_log(struct scene *s)
{
    struct weir_error err = {0};

    if (weir__log_open(&s->log, &s->at.o, &err) != 0) fail_msg("%s", err.text);
}

static void refuse(struct scene *s, unsigned kinds, uint64_t at, int rc)
{
    struct simfs_fault fault = {.kinds = kinds, .at = at, .rc = rc};

    simfs_fail(s->at.disk, &fault);
}

static void lose(struct scene *s, const char *path)
{
    assert_int_equal(s->at.o.fs->ops->remove(s->at.o.fs, path, NULL), 0);
}

/* Reads a partition to its end, or to what cannot be read. */
static int read_all(struct scene *s, struct weir_error *err)
{
    struct weir__log_view views[8];
    struct weir__log_reader *r;
    uint32_t count = 1;
    uint64_t missed;
    int rc = 0;

    assert_int_equal(weir__log_reader_open(&r, s->log, 0, 0, 0, NULL), 0);
    while (rc == 0 && count > 0) rc = weir__log_reader_next(r, views, 8, &count, &missed, err);
    weir__log_reader_close(r);
    return rc;
}

/* A disk that reads nothing any more: which events are passed over with the segment. */
static void a_segment_that_cannot_be_read_is_told(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_READ, .at = 1, .persistent = true, .rc = WEIR_EIO};
    struct scene *s = *state;
    struct weir_error err = {0};
    struct weir__log_view view;
    struct weir__log_reader *r;
    uint32_t count;
    uint64_t missed;

    open_log(s);
    assert_int_equal(weir__log_reader_open(&r, s->log, 0, 0, 0, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__log_reader_next(r, &view, 1, &count, &missed, &err), 0);
    simfs_fail(s->at.disk, &fault);
    assert_int_equal(weir__log_reader_next(r, &view, 1, &count, &missed, &err), WEIR_EIO);
    weir__log_reader_close(r);
    assert_string_equal(
        err.text, "events 6 to 12 of partition 0: nothing of segment 00000001.seg can be read");
}

/* ---- opening ---- */

static void a_lazy_log_is_told(void **state)
{
    struct scene *s = *state;

    s->at.o.sync_ms = 250;
    open_log(s);
    assert_string_equal(s->said, "warning lazy dir=log: acknowledged events reach the disk up to "
                                 "250 ms later and can be lost until then\n");
}

static void bad_copies_are_told(void **state)
{
    struct scene *s = *state;

    simfs_flip(s->at.disk, "log/00000002.seg", UINT64_C(20) * 8);
    simfs_flip(s->at.disk, "log/control", UINT64_C(20) * 8);
    open_log(s);
    assert_string_equal(
        s->said, "warning damage file=log/control: one copy is bad, the other serves\n"
                 "warning damage file=log/00000002.seg: one copy of its header is bad, the other "
                 "serves\n");
}

static void lost_files_are_told(void **state)
{
    struct scene *s = *state;
    struct weir__log_stats stats;

    lose(s, "log/00000002.seg");
    lose(s, "log/producers-00000001.tab");
    open_log(s);
    assert_string_equal(
        s->said, "error damage file=log/(missing): segment 2 is lost: no file can be shown to be "
                 "it\n"
                 "warning damage file=log/producers-00000001.tab: it is missing; up to 84 "
                 "producers may be forgotten: a repeat of theirs could be stored twice\n");
    weir__log_stats(s->log, &stats);
    assert_int_equal(stats.damaged_ranges, 2);
}

static void an_opening_without_room_is_told(void **state)
{
    struct scene *s = *state;

    refuse(s, SIMFS_WRITE, 1, WEIR_ENOSPACE);
    open_log(s);
    assert_string_equal(
        s->said,
        "error full dir=log: there is no room to begin; it can be read, "
        "and takes nothing in until there is: writing control file: log/control: " FAULT "\n");
    assert_int_equal(s->log->roll_rc, WEIR_ENOSPACE);
    simfs_fail(s->at.disk, NULL);
    assert_int_equal(weir__log_step(s->log, NULL), 0);
    assert_int_equal(s->log->roll_rc, 0); /* or upkeep would look every second */
}

/* The control file of an earlier time: the segments know better, and nothing is lost. */
static void an_old_control_file_is_told(void **state)
{
    static uint8_t control[1u << 20];
    struct scene *s = *state;
    struct weir__log_partition_info info;
    long len = simfs_peek(s->at.disk, "log/control", control, sizeof control, 0);

    assert_in_range(len, 1, sizeof control - 1);
    open_log(s);
    for (uint32_t i = BATCHES; i < BATCHES + PER_SEGMENT; i++) segments_put(s->log, i, true);
    assert_int_equal(weir__log_close(s->log, NULL), 0);
    simfs_put(s->at.disk, "log/control", control, (size_t)len);
    open_log(s);
    assert_string_equal(s->said, "error damage file=log/control: it is older than segment 4\n");
    assert_int_equal(weir__log_partition_info(s->log, 0, &info, NULL), 0);
    assert_int_equal(info.next_sequence, 19); /* 1, 3, 2 events, and again */
    assert_int_equal(read_all(s, NULL), 0);
}

/* ---- while it is open ---- */

static void a_bad_index_is_told_once(void **state)
{
    struct scene *s = *state;

    simfs_flip(s->at.disk, "log/00000002.seg",
               (SEGMENT_BYTES - 3 * (uint64_t)WEIR__FS_BLOCK + 4) * 8);
    open_log(s);
    for (int i = 0; i < 2; i++) assert_int_equal(read_all(s, NULL), 0);
    assert_string_equal(s->said, "warning rebuilding the index of segment log/00000002.seg\n");
}

static void a_file_that_goes_is_told_once(void **state)
{
    struct weir_error err = {0};
    struct weir__log_stats stats;
    struct scene *s = *state;

    open_log(s);
    lose(s, "log/00000002.seg");
    for (int i = 0; i < 2; i++) assert_int_equal(read_all(s, &err), WEIR_ECORRUPT);
    assert_string_equal(s->said, "error damage file=log/00000002.seg: it is gone\n");
    weir__log_stats(s->log, &stats);
    assert_int_equal(stats.damaged_ranges, 1);
}

static void roll(struct scene *s)
{
    weir__mutex_lock(&s->log->lock);
    s->log->want_roll = true;
    assert_int_equal(weir__log_lead(s->log, NULL), 0);
    weir__mutex_unlock(&s->log->lock);
}

static void an_index_that_is_not_stored_is_told(void **state)
{
    struct scene *s = *state;

    open_log(s);
    refuse(s, SIMFS_WRITE, 1, WEIR_EIO);
    roll(s);
    assert_string_equal(s->said,
                        "warning index of segment 00000003.seg not stored: log/00000003.seg: " FAULT
                        "\n");
    s->said[0] = 0;
    assert_int_equal(read_all(s, NULL), 0); /* it is in memory still */
    assert_string_equal(s->said, "");
}

/* Nothing is written where the disk has bad places, so it stays in memory, too. */
static void a_spoilt_segment_keeps_its_index(void **state)
{
    struct scene *s = *state;
    const struct weir__segment *last;
    uint64_t end;

    open_log(s);
    last = weir__log_active(s->log);
    end = weir__round_up(last->end - last->h.base, WEIR__FS_BLOCK);
    assert_int_equal(weir__log_close(s->log, NULL), 0);
    simfs_spoil(s->at.disk, "log/00000003.seg", end, SEGMENT_BYTES / 2);
    open_log(s);
    segments_put(s->log, BATCHES, false);
    assert_int_equal(weir__log_active(s->log)->h.number, 4);
    s->said[0] = 0;
    for (int i = 0; i < 2; i++) assert_int_equal(read_all(s, NULL), 0);
    assert_string_equal(s->said, "");
}

static void space_that_is_not_given_back_is_told(void **state)
{
    struct scene *s = *state;

    open_log(s);
    roll(s);
    refuse(s, SIMFS_RELEASE, 1, WEIR_EIO);
    assert_int_equal(weir__log_step(s->log, NULL), 0);
    assert_string_equal(
        s->said,
        "warning space of segment 00000003.seg not given back: log/00000003.seg: " FAULT "\n");
}

/* ---- more damage than can be remembered by place ---- */

#define DAMAGES 70u
#define SMALL UINT64_C(88) /* bytes of a small batch */
#define FRONT (2 * (uint64_t)WEIR__FS_BLOCK)

static uint64_t damages_of(struct scene *s)
{
    struct weir__log_stats stats;

    weir__log_stats(s->log, &stats);
    return stats.damaged_ranges;
}

/* Every other batch is bad. All of them are counted, 64 are remembered; also when the segment is
 * walked again because its index is bad. */
static void very_many_damages_are_counted(void **state)
{
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
    struct weir__log_partition_info info;
    struct scene s = {0};

    (void)state;
    segments_init(&s.at, 1, 0, false);
    open_log(&s);
    for (unsigned i = 0; i < 2 * DAMAGES; i++)
        assert_int_equal(weir__log_append_wait(s.log, &b, INT64_MAX, NULL, NULL), 0);
    assert_int_equal(weir__log_close(s.log, NULL), 0);
    for (unsigned i = 0; i < DAMAGES; i++)
        simfs_flip(s.at.disk, SEGMENT_1, (FRONT + 2 * SMALL * i + 20) * 8);
    open_log(&s);
    assert_int_equal(damages_of(&s), DAMAGES);
    assert_int_equal(s.log->damage_count, WEIR__LOG_DAMAGES_MAX);
    assert_int_equal(s.log->damages[63].at, FRONT + 2 * SMALL * 63);
    assert_int_equal(s.log->damages[63].to - s.log->damages[63].from, SMALL);
    assert_int_equal(weir__log_partition_info(s.log, 0, &info, NULL), 0);
    assert_int_equal(info.next_sequence, 2 * DAMAGES);
    roll(&s);
    assert_int_equal(weir__log_close(s.log, NULL), 0);
    simfs_flip(s.at.disk, SEGMENT_1, (SEGMENT_BYTES - 3 * (uint64_t)WEIR__FS_BLOCK + 4) * 8);
    open_log(&s);
    assert_int_equal(read_all(&s, NULL), WEIR_ECORRUPT);
    assert_int_equal(s.log->damage_count, WEIR__LOG_DAMAGES_MAX);
    assert_in_range(damages_of(&s), WEIR__LOG_DAMAGES_MAX, DAMAGES);
    assert_int_equal(weir__log_close(s.log, NULL), 0);
    segments_fini(&s.at);
}

/* ---- rolls that fail ---- */

/* Without producers. Each call is the one of its kind in the roll. */
static const struct {
    unsigned kinds;
    uint64_t at;
    int refused, rc;
    const char *text;
} rolls[] = {
    {SIMFS_OPEN, 1, WEIR_EBUSY, WEIR_EBUSY,
     "making segment 00000002.seg of 64 KiB: log/00000002.seg: " FAULT},
    {SIMFS_ALLOCATE, 1, WEIR_ENOSPACE, WEIR_ENOSPACE,
     "making segment 00000002.seg of 64 KiB: log/00000002.seg: " FAULT},
    {SIMFS_SYNC, 1, WEIR_EIO, WEIR_EIO,
     "making segment 00000002.seg of 64 KiB: log/00000002.seg: " FAULT},
    {SIMFS_SYNC_DIR, 1, WEIR_EIO, WEIR_EIO, "making segment 00000002.seg of 64 KiB: log: " FAULT},
    {SIMFS_WRITE, 2, WEIR_EBUSY, WEIR_EBUSY,
     "writing the header of segment 00000002.seg: log/00000002.seg: " FAULT},
    {SIMFS_WRITE, 3, WEIR_EBUSY, WEIR_EBUSY,
     "writing the header of segment 00000002.seg: log/00000002.seg: " FAULT},
    {SIMFS_SYNC, 2, WEIR_EIO, WEIR_EIO,
     "writing the header of segment 00000002.seg: log/00000002.seg: " FAULT},
    {SIMFS_WRITE, 4, WEIR_EBUSY, WEIR_EBUSY, "writing control file: log/control: " FAULT},
    {SIMFS_SYNC, 3, WEIR_EIO, WEIR_EFAILED, "syncing the control file: log/control: " FAULT},
    {SIMFS_SYNC, 4, WEIR_EIO, WEIR_EFAILED, "syncing the control file: log/control: " FAULT},
};

static void failed_rolls_say_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rolls / sizeof rolls[0]; i++) {
        struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
        struct weir_error err = {0};
        struct scene s = {0};
        int rc;

        segments_init(&s.at, 1, 1, false);
        open_log(&s);
        refuse(&s, rolls[i].kinds, rolls[i].at, rolls[i].refused);
        s.log->want_roll = true;
        rc = weir__log_append_wait(s.log, &b, weir__deadline_ns(20000), NULL, &err);
        if (rc != rolls[i].rc || strcmp(err.text, rolls[i].text) != 0)
            fail_msg("case %zu: %d, %s", i, rc, err.text);
        assert_int_equal(weir__log_state(s.log, NULL), rc == WEIR_EFAILED ? rc : 0);
        simfs_fail(s.at.disk, NULL);
        rc = weir__log_append_wait(s.log, &b, weir__deadline_ns(20000), NULL, NULL);
        assert_int_equal(rc, rolls[i].rc == WEIR_EFAILED ? WEIR_EFAILED : 0);
        weir__log_close(s.log, NULL);
        segments_fini(&s.at);
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_segment_that_cannot_be_read_is_told),
        CASE(a_lazy_log_is_told),
        CASE(bad_copies_are_told),
        CASE(lost_files_are_told),
        CASE(an_opening_without_room_is_told),
        CASE(an_old_control_file_is_told),
        CASE(a_bad_index_is_told_once),
        CASE(a_file_that_goes_is_told_once),
        CASE(an_index_that_is_not_stored_is_told),
        CASE(a_spoilt_segment_keeps_its_index),
        CASE(space_that_is_not_given_back_is_told),
        cmocka_unit_test(very_many_damages_are_counted),
        cmocka_unit_test(failed_rolls_say_why),
    };

    return cmocka_run_group_tests_name("said", tests, NULL, NULL);
}
