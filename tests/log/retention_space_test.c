/* retention_space_test.c - what a log takes of the disk, and what becomes of it when something runs
 * out: space, descriptors. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/tempdir.h"
#include "support/workload.h"

#define WAIT weir__deadline_ns(20000)
#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 5);
    w->options.segment_bytes_min = 0;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct workload *w = *state;
    int rc = 0;

    if (w->log) history_check(w->history, w->log, false);
    if (w->history->violations > 0) {
        print_error("%s\n", w->history->first);
        rc = -1;
    }
    workload_fini(w);
    test_free(w);
    return rc;
}

static void start(struct workload *w)
{
    struct weir_error err = {0};

    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
}

static int offer(struct workload *w, uint32_t bytes)
{
    struct history_order o = {.partition = 0, .bytes = bytes, .count = 1};

    return history_append_wait(w->history, w->log, &o);
}

static void put(struct workload *w, uint32_t bytes)
{
    assert_int_equal(offer(w, bytes), 0);
}

static void step(struct workload *w)
{
    struct weir_error err = {0};

    if (weir__log_step(w->log, &err) != 0) fail_msg("%s", err.text);
}

static struct weir__log_stats stats_of(struct workload *w)
{
    struct weir__log_stats stats;

    weir__log_stats(w->log, &stats);
    return stats;
}

static void refuse(struct workload *w, unsigned kinds, uint64_t at, int rc, bool persistent)
{
    struct simfs_fault fault = {.kinds = kinds, .at = at, .rc = rc, .persistent = persistent};

    simfs_fail(w->disk, &fault);
}

static int count_segments(struct workload *w)
{
    const char *path;
    int count = 0;

    for (size_t i = 0; (path = simfs_path(w->disk, i)) != NULL; i++)
        count += strstr(path, ".seg") != NULL;
    return count;
}

static int roll(struct weir__log *log)
{
    int rc;

    weir__mutex_lock(&log->lock);
    log->want_roll = true;
    rc = weir__log_lead(log, NULL);
    weir__mutex_unlock(&log->lock);
    return rc;
}

/* ---- a real disk ---- */

static uint64_t blocks_in(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    struct stat st;
    uint64_t bytes = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL)
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_blocks * 512;
    closedir(d);
    return bytes;
}

/* One event an hour for sixty days; how much there is of the disk at the worst moment. */
static uint64_t trickle(const char *dir, int64_t retain_ms)
{
    struct simclock clock = {INT64_C(1700000000000), 1000, 1};
    struct weir__log_options o = {.dir = dir,
                                  .hub_id = 1,
                                  .partitions = 4,
                                  .clock = simclock(&clock),
                                  .retain_ms = retain_ms,
                                  .no_threads = true};
    struct weir__log_batch batch = {.count = 1, .body = {weir__bytes_of("warm", 4)}};
    struct weir__log *log = NULL;
    uint64_t most = 0, now;

    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&log, &o, NULL), 0);
    for (int hour = 0; hour < 60 * 24; hour++) {
        simclock_pass(&clock, HOUR_MS);
        batch.partition = (uint32_t)hour % 4;
        assert_int_equal(weir__log_append_wait(log, &batch, WAIT, NULL, NULL), 0);
        assert_int_equal(weir__log_step(log, NULL), 0);
        now = blocks_in(dir);
        if (now > most) most = now;
    }
    assert_int_equal(weir__log_close(log, NULL), 0);
    assert_int_equal(weir__log_destroy(NULL, dir, NULL), 0);
    return most;
}

static void an_event_an_hour_takes_little(void **state)
{
    const int64_t times[] = {7 * DAY_MS, -1};
    char root[TEMPDIR_BYTES], dir[TEMPDIR_BYTES + 8];

    (void)state;
    tempdir_make(root);
    snprintf(dir, sizeof dir, "%s/log", root);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        uint64_t most = trickle(dir, times[i]);

        print_message("an event an hour for 60 days, kept %" PRId64 " days: %" PRIu64 " KiB\n",
                      times[i] / DAY_MS, most >> 10);
        assert_in_range(most, 64u << 10, 1u << 20);
    }
    tempdir_remove(root);
}

/* ---- reserved space ---- */

static void an_idle_hub_reserves_nothing(void **state)
{
    struct workload *w = *state;
    uint64_t segments;
    int rc;

    w->options.segment_bytes_max = 16u << 20;
    start(w);
    for (int i = 0; i < 90; i++) put(w, 9000);
    step(w);
    assert_true(stats_of(w).log_bytes > 2 * stats_of(w).stored_bytes); /* ready for more */
    simclock_pass(&w->clock, 61000);
    step(w);
    for (int opened = 0; opened < 2; opened++) {
        struct weir__log_stats s = stats_of(w);

        assert_in_range(s.disk_bytes, s.stored_bytes, s.stored_bytes + (512u << 10));
        workload_close(w);
        start(w);
        step(w);
    }
    simfs_capacity(w->disk, simfs_used(w->disk)); /* it wakes up, and there is no room */
    rc = offer(w, 9000);
    assert_true(rc == 0 || rc == WEIR_ENOSPACE);
    simfs_capacity(w->disk, 0);
    segments = stats_of(w).segments;
    for (int i = 0; i < 40; i++) put(w, 9000); /* into what it had reserved before */
    assert_int_equal(stats_of(w).segments, segments);
}

/* A segment that is left early gives its space back; as the next one it has it again. */
static void space_is_given_back_and_taken(void **state)
{
    struct workload *w = *state;

    w->options.segment_bytes_min = 1u << 20;
    w->options.retain_ms = 8 * DAY_MS;
    start(w);
    for (int day = 0; day < 5; day++) {
        put(w, 1000);
        simclock_pass(&w->clock, DAY_MS + 1000);
        step(w);
    }
    assert_true(simfs_calls(w->disk, SIMFS_RELEASE) >= 5);
    assert_int_equal(stats_of(w).log_bytes, 6u << 20);
    for (int opened = 0; opened < 2; opened++) {
        assert_in_range(stats_of(w).disk_bytes, 100u << 10, 600u << 10);
        workload_close(w);
        start(w);
    }
    for (int day = 0; day < 12; day++) { /* expired ones come round */
        put(w, 1000);
        simclock_pass(&w->clock, DAY_MS + 1000);
        put(w, 1000);
        step(w);
    }
    w->history->may_expire = true;
    w->history->keep_from_ms = w->clock.wall_ms - 8 * DAY_MS;
    assert_true(stats_of(w).begin_time_ms >= w->clock.wall_ms - 10 * DAY_MS);
    simfs_capacity(w->disk, simfs_used(w->disk)); /* what is reserved can be used */
    while (weir__log_fits(w->log, 0, weir__batch_bytes(9000))) put(w, 9000);
}

/* The process ended between leaving a segment and giving its space back. */
static void space_is_given_back_after_a_restart(void **state)
{
    struct workload *w = *state;
    uint64_t before;

    w->options.segment_bytes_min = 1u << 20;
    start(w);
    put(w, 1000);
    assert_int_equal(roll(w->log), 0);
    put(w, 1000);
    workload_close(w);
    before = simfs_used(w->disk);
    start(w);
    weir__mutex_lock(&w->log->lock);
    weir__spare_release(w->log);
    weir__mutex_unlock(&w->log->lock);
    assert_in_range(simfs_used(w->disk), before - (1u << 20), before - (900u << 10));
    history_check(w->history, w->log, true);
}

/* ---- a full disk ---- */

static void smaller_segments_are_tried(void **state)
{
    struct workload *w = *state;
    int rc;

    w->options.segment_bytes_max = 16u << 20;
    w->options.segment_bytes_min = 1u << 20;
    start(w);
    while (weir__log_fits(w->log, 0, weir__batch_bytes(9000))) put(w, 9000);
    simfs_capacity(w->disk, simfs_used(w->disk) + (300u << 10));
    do {
        rc = offer(w, 9000);
    } while (rc == 0);
    assert_int_equal(rc, WEIR_ENOSPACE);
    assert_in_range(simfs_used(w->disk), 1u << 20, (1u << 20) + (400u << 10));
    assert_true(stats_of(w).stored_bytes > (1u << 20) + (150u << 10)); /* of the 300 KiB */
    put(w, 16); /* there is room for a small one where a large one finds none */
}

/* No number is used up by trying, and the first append finds the room there is by then. */
static void publishing_works_again_at_once(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 0, .bytes = 30000, .count = 1};
    uint64_t name;

    start(w);
    while (weir__log_fits(w->log, 0, weir__batch_bytes(30000))) put(w, 30000);
    simfs_capacity(w->disk, simfs_used(w->disk));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(offer(w, 30000), WEIR_ENOSPACE);
        assert_int_equal(history_append(w->history, w->log, &o), WEIR_ENOSPACE);
        assert_int_equal(weir__log_step(w->log, NULL), WEIR_ENOSPACE);
    }
    name = w->log->next_name;
    assert_int_equal(name, 2);
    simfs_capacity(w->disk, 0);
    assert_int_equal(history_append(w->history, w->log, &o), 0); /* without waiting */
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(weir__log_state(w->log, NULL), 0);
}

/* Upkeep tries again, too, so that nobody has to. */
static void upkeep_rolls_when_there_is_room(void **state)
{
    struct workload *w = *state;
    struct weir_error err = {0};

    start(w);
    while (weir__log_fits(w->log, 0, weir__batch_bytes(30000))) put(w, 30000);
    simfs_capacity(w->disk, simfs_used(w->disk));
    assert_int_equal(offer(w, 30000), WEIR_ENOSPACE);
    assert_int_equal(stats_of(w).segments, 1);
    assert_int_equal(weir__log_ready(w->log, &err), WEIR_ENOSPACE);
    assert_string_equal(err.text, "no new segment: no space left");
    simfs_capacity(w->disk, 0);
    step(w);
    assert_int_equal(stats_of(w).segments, 2);
    assert_int_equal(weir__log_ready(w->log, &err), 0);
}

/* ---- descriptors and memory ---- */

/* None is to be had, at any of the calls of a roll: that append fails, the next one works. */
static void a_roll_survives_every_shortage(void **state)
{
    const int codes[] = {WEIR_EBUSY, WEIR_ENOMEM};
    const unsigned kinds = SIMFS_OPEN | SIMFS_REMOVE | SIMFS_ALLOCATE | SIMFS_WRITE | SIMFS_SIZE;

    for (uint64_t round = 0; round < 40; round++) {
        struct workload *w = *state;
        int rc;

        workload_fini(w);
        workload_init(w, 5);
        w->options.segment_bytes_min = 0;
        start(w);
        while (weir__log_fits(w->log, 0, weir__batch_bytes(9000))) put(w, 9000);
        if (round / 2 % 2) step(w); /* with a spare, and without */
        refuse(w, kinds, 1 + round / 4, codes[round % 2], round % 8 > 5);
        rc = roll(w->log);
        assert_true(rc == 0 || simfs_failed(w->disk));
        simfs_fail(w->disk, NULL);
        assert_int_equal(weir__log_state(w->log, NULL), 0);
        put(w, 9000);
        step(w);
        workload_close(w);
        start(w);
        history_check(w->history, w->log, true);
        assert_int_equal(w->history->violations, 0);
    }
}

/* With a spare at hand a roll opens nothing. */
static void a_roll_onto_a_spare_needs_no_descriptor(void **state)
{
    struct workload *w = *state;

    start(w);
    while (weir__log_fits(w->log, 0, weir__batch_bytes(9000))) put(w, 9000);
    step(w);
    refuse(w, SIMFS_OPEN | SIMFS_ALLOCATE | SIMFS_LIST, 1, WEIR_EBUSY, true);
    put(w, 9000);
    assert_int_equal(stats_of(w).segments, 2);
    assert_false(simfs_failed(w->disk));
    simfs_fail(w->disk, NULL);
}

/* What its file says to be; 0: a spare. */
static uint64_t number_of(struct workload *w, const struct weir__segment *seg)
{
    struct weir__fs *fs = simfs_fs(w->disk);
    struct weir__segment_header h;
    struct weir__file *f = NULL;
    int bad;

    assert_int_equal(weir__log_open_name(fs, WORKLOAD_DIR, seg->name, WEIR__FS_READ_ONLY, &f, NULL),
                     0);
    assert_int_equal(weir__segment_read_header(f, w->options.hub_id, &h, &bad, NULL), 0);
    assert_int_equal(bad, 0);
    assert_true(h.secret == w->log->control.secret);
    weir__file_close(f);
    return h.number;
}

/* Should the control file be lost, no opening takes it for what it was. */
static void a_spare_does_not_say_what_it_was(void **state)
{
    struct workload *w = *state;
    char first[WEIR__SEGMENT_NAME_BYTES];

    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
    w->options.retain_bytes = 2u << 20;
    start(w);
    do {
        memcpy(first, w->log->segments[0]->name, sizeof first);
        assert_true(number_of(w, w->log->segments[0]) > 0);
        put(w, 9000);
        step(w);
    } while (!w->log->spare || strcmp(w->log->spare->name, first) != 0);
    assert_int_equal(number_of(w, w->log->spare), 0);
}

/* An expiry that cannot read where partitions begin waits for the next look. */
static void an_expiry_without_a_descriptor_waits(void **state)
{
    struct workload *w = *state;
    struct weir__log_partition_info info = {0};

    w->options.retain_bytes = 256u << 10;
    start(w);
    for (int i = 0; i < 40; i++) put(w, 9000);
    refuse(w, SIMFS_OPEN, 1, WEIR_EBUSY, true);
    assert_int_equal(weir__log_step(w->log, NULL), WEIR_EBUSY);
    weir__log_partition_info(w->log, 0, &info, NULL);
    assert_int_equal(info.begin_sequence, 0);
    simfs_fail(w->disk, NULL);
    history_check(w->history, w->log, false);
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
    step(w);
    weir__log_partition_info(w->log, 0, &info, NULL);
    assert_in_range(info.begin_sequence, 1, 39);
    assert_in_range(stats_of(w).stored_bytes, 256u << 10, 400u << 10);
}

static void count_removals(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)room;
    *(unsigned *)user += level == WEIR__WARN && strstr(line, "removing ");
}

/* A file that cannot be removed is told, and one that can be is not. */
static void a_removal_that_fails_is_told(void **state)
{
    struct workload *w = *state;
    unsigned told = 0;

    w->options.retain_bytes = 256u << 10;
    w->options.logger = (struct weir__logger){count_removals, &told};
    start(w);
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
    for (int i = 0; i < 80; i++) put(w, 9000);
    step(w);
    assert_int_equal(told, 0);
    for (int i = 0; i < 80; i++) put(w, 9000);
    refuse(w, SIMFS_REMOVE, 1, WEIR_EIO, true);
    step(w);
    assert_true(simfs_failed(w->disk));
    assert_true(told > 0);
    simfs_fail(w->disk, NULL);
}

/* ---- what is told ---- */

static void stats_tell_what_is_kept(void **state)
{
    struct workload *w = *state;
    int64_t begun_ms;
    struct weir__log_stats s;

    w->options.retain_ms = 8 * DAY_MS;
    start(w);
    s = stats_of(w);
    assert_int_equal(s.stored_bytes, 0);
    assert_int_equal(s.begin_time_ms, 0);
    assert_int_equal(s.next_expiry_ms, -1);
    assert_int_equal(s.disk_bytes_max, 0);
    begun_ms = w->clock.wall_ms;
    put(w, 1000);
    s = stats_of(w);
    assert_int_equal(s.stored_bytes, weir__batch_bytes(1000));
    assert_int_equal(s.begin_time_ms, begun_ms);
    assert_int_equal(s.next_expiry_bytes, s.stored_bytes);
    assert_int_equal(s.next_expiry_ms, 9 * DAY_MS + 1);
    simclock_pass(&w->clock, DAY_MS);
    step(w);
    put(w, 100);
    for (int opened = 0; opened < 2; opened++) {
        s = stats_of(w);
        assert_int_equal(s.segments, 2);
        assert_int_equal(s.begin_time_ms, begun_ms);
        assert_int_equal(s.next_expiry_bytes, weir__batch_bytes(1000));
        assert_int_equal(s.next_expiry_ms, 8 * DAY_MS + 1);
        workload_close(w);
        start(w);
    }
    weir__log_set_retention(w->log, -1, 1u << 20);
    s = stats_of(w);
    assert_int_equal(s.next_expiry_ms, -1);
    assert_int_equal(s.next_expiry_bytes, weir__batch_bytes(1000));
    assert_in_range(s.disk_bytes_max, 1u << 20, 2u << 20);
    assert_int_equal(count_segments(w), 2);
}

/* A first batch that is larger than the first segment leaves that one empty. */
static void stats_pass_over_empty_segments(void **state)
{
    struct workload *w = *state;
    struct weir__log_stats s;
    int64_t begun_ms;

    w->options.retain_ms = 8 * DAY_MS;
    w->options.batch_bytes_max = 128u << 10;
    start(w);
    begun_ms = w->clock.wall_ms;
    put(w, 100u << 10);
    simclock_pass(&w->clock, DAY_MS);
    step(w);
    put(w, 100);
    for (int opened = 0; opened < 2; opened++) {
        s = stats_of(w);
        assert_int_equal(s.segments, 3);
        assert_int_equal(s.begin_time_ms, begun_ms);
        assert_int_equal(s.next_expiry_bytes, weir__batch_bytes(100u << 10));
        assert_int_equal(s.next_expiry_ms, 8 * DAY_MS + 1);
        workload_close(w);
        start(w);
    }
}

int main(void)
{
#define ON_SIM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_an_hour_takes_little),
        ON_SIM(an_idle_hub_reserves_nothing),
        ON_SIM(space_is_given_back_and_taken),
        ON_SIM(space_is_given_back_after_a_restart),
        ON_SIM(smaller_segments_are_tried),
        ON_SIM(publishing_works_again_at_once),
        ON_SIM(upkeep_rolls_when_there_is_room),
        ON_SIM(a_roll_survives_every_shortage),
        ON_SIM(a_roll_onto_a_spare_needs_no_descriptor),
        ON_SIM(a_spare_does_not_say_what_it_was),
        ON_SIM(an_expiry_without_a_descriptor_waits),
        ON_SIM(a_removal_that_fails_is_told),
        ON_SIM(stats_tell_what_is_kept),
        ON_SIM(stats_pass_over_empty_segments),
    };

    return cmocka_run_group_tests_name("retention_space", tests, NULL, NULL);
}
