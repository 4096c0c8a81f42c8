/* backup_check_test.c - what is found in a copy of a segment, where, and which of the newest events it has. */
#include "log/backup.h"
#include "log/stepped.h"

#define SEGMENT "log/00000001.seg"
#define NAME "00000001.seg"
#define PARTITIONS 2u
#define FRONT 8192u
#define BATCHES 4

static const uint32_t sizes[BATCHES] = {4 * KIB, 88, 4 * KIB, 8 * KIB};

struct found {
    int count;
    struct weir__backup_finding at[4];
};

/* Batches in both partitions by turns, and the segment as it is to be checked. */
static struct weir__segment fill(struct world *w)
{
    struct weir__segment seg;
    const struct weir__backup_log from = {w->o.fs, "log", 1};

    start(w);
    for (uint32_t i = 0; i < BATCHES; i++) {
        put_into(w, i % 2, sizes[i]);
        simclock_pass(&w->clock, 10);
    }
    assert_int_equal(weir__backup_segment_read(&from, NAME, &seg, NULL), 0);
    assert_int_equal(seg.data - seg.h.base, FRONT);
    return seg;
}

static int set_up(void **state)
{
    *state = world_new(
        (struct weir__log_options){.partitions = PARTITIONS, .segment_bytes_max = 64 * KIB});
    return 0;
}

static void note(const struct weir__backup_finding *f, void *user)
{
    struct found *found = user;

    assert_in_range(found->count, 0, 3);
    found->at[found->count++] = *f;
}

static struct found verify(struct world *w, const struct weir__segment *seg)
{
    struct found found = {0};
    struct weir_error err = {0};

    if (weir__backup_verify(w->o.fs, SEGMENT, seg, w->log->visible, note, &found, &err) != 0)
        fail_msg("%s", err.text);
    return found;
}

static void flip(struct world *w, uint64_t byte)
{
    simfs_flip(w->disk, SEGMENT, byte * 8);
}

/* What one byte that is another makes of a copy. */
static void what_is_wrong_is_found(void **state)
{
    static const struct {
        uint64_t byte, at, len;
        const char *text;
        bool spare;
    } cases[] = {
        {100, 0, FRONT, "one of two headers", true},
        {4096 + 5, 0, FRONT, "one of two headers", true},
        {64 * KIB - 1, 0, FRONT, "one of two headers", true},
        {64 * KIB - FRONT, 0, FRONT, "one of two headers", true},
        {FRONT + 20, FRONT, 4 * KIB, "no batch can be read", false},
        {FRONT + 100, FRONT, 4 * KIB, "a batch fails its checksum", false},
        {FRONT + 4 * KIB + 80, FRONT + 4 * KIB, 88, "a batch fails its checksum", false},
        {FRONT + 8 * KIB + 88 + 20, FRONT + 8 * KIB + 88, 8 * KIB, "no batch can be read", false},
        {FRONT + 16 * KIB + 87, FRONT + 8 * KIB + 88, 8 * KIB, "a batch fails its checksum", false},
    };
    struct world *w = *state;
    struct weir__segment seg = fill(w);

    assert_int_equal(verify(w, &seg).count, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct found found;

        flip(w, cases[i].byte);
        found = verify(w, &seg);
        flip(w, cases[i].byte);
        assert_int_equal(found.count, 1);
        assert_int_equal(found.at[0].at, cases[i].at);
        assert_int_equal(found.at[0].len, cases[i].len);
        assert_string_equal(found.at[0].text, cases[i].text);
        assert_int_equal(found.at[0].spare, cases[i].spare);
    }
    flip(w, FRONT + 16 * KIB + 88); /* behind the end */
    assert_int_equal(verify(w, &seg).count, 0);
}

/* Without any header something is lost, though its batches are found. */
static void a_header_that_is_gone_is_found(void **state)
{
    struct world *w = *state;
    struct weir__segment seg = fill(w);

    for (int round = 0; round < 2; round++) {
        struct found found;

        if (round == 0) flip(w, 100);
        if (round == 0) flip(w, 64 * KIB - 1);
        seg.lost = round == 1;
        found = verify(w, &seg);
        assert_int_equal(found.count, 1);
        assert_int_equal(found.at[0].at, 0);
        assert_int_equal(found.at[0].len, FRONT);
        assert_string_equal(found.at[0].text, "no header");
        assert_false(found.at[0].spare);
    }
}

static void what_cannot_be_checked_is_told(void **state)
{
    struct world *w = *state;
    struct weir__segment seg = fill(w);
    struct found found = {0};
    struct weir_error err = {0};
    int open_files = simfs_open_files(w->disk);

    assert_int_equal(weir__backup_verify(w->o.fs, "log/none", &seg, w->log->visible, note, &found,
                                         &err),
                     WEIR_ENOTFOUND);
    assert_memory_equal(err.text, "checking log/none: ", 19);
    for (uint64_t at = 1; at <= 3; at++) { /* two headers, and the batches */
        struct simfs_fault fault = {.kinds = SIMFS_READ, .at = at, .rc = WEIR_EBUSY};

        simfs_fail(w->disk, &fault);
        assert_int_equal(weir__backup_verify(w->o.fs, SEGMENT, &seg, w->log->visible, note, &found,
                                             &err),
                         WEIR_EBUSY);
        simfs_fail(w->disk, NULL);
        assert_memory_equal(err.text, "checking " SEGMENT ": ", 9 + sizeof SEGMENT - 1 + 2);
    }
    assert_int_equal(found.count, 0);
    assert_int_equal(simfs_open_files(w->disk), open_files);
}

/* ---- the newest events ---- */

static bool lacks(struct world *w, uint64_t end, struct weir__head *heads)
{
    const struct weir__backup_log from = {w->o.fs, "log", 1};
    struct weir_error err = {0};
    bool out = true;

    if (weir__backup_lacks(&from, NAME, end, PARTITIONS, heads, &out, &err) != 0)
        fail_msg("%s", err.text);
    return out;
}

/* Those that it has are taken out; one that it should have and has not shows that it is another's. One
 * that lies in front of it is not its own. */
static void the_newest_events_are_looked_for(void **state)
{
    static const struct weir__head none;
    struct world *w = *state;
    struct weir__segment seg = fill(w);
    const struct weir__head *now = w->log->durable_heads;
    struct weir__head heads[PARTITIONS];

    memcpy(heads, now, sizeof heads);
    assert_false(lacks(w, w->log->visible, heads));
    for (uint32_t i = 0; i < PARTITIONS; i++) assert_memory_equal(&heads[i], &none, sizeof none);
    memcpy(heads, now, sizeof heads);
    assert_true(lacks(w, now[1].last_offset, heads)); /* the last batch lies behind that */
    assert_memory_equal(&heads[0], &none, sizeof none);
    assert_memory_equal(&heads[1], &now[1], sizeof none);
    for (int i = 0; i < 2; i++) {
        memcpy(heads, now, sizeof heads);
        if (i == 0)
            heads[0].last_time_ms++;
        else
            heads[0].last_offset++;
        assert_true(lacks(w, w->log->visible, heads));
        assert_int_equal(heads[0].next_sequence, now[0].next_sequence);
    }
    memcpy(heads, now, sizeof heads);
    heads[0].last_offset = seg.data - 1;
    assert_false(lacks(w, w->log->visible, heads));
    heads[0].last_offset = seg.data;
    assert_true(lacks(w, w->log->visible, heads));
}

/* Of partitions that nobody asks about nothing is said. */
static void other_partitions_do_not_count(void **state)
{
    struct world *w = *state;
    const struct weir__backup_log from = {w->o.fs, "log", 1};
    struct weir__head heads[PARTITIONS];
    bool out = true;

    fill(w);
    memcpy(heads, w->log->durable_heads, sizeof heads);
    assert_int_equal(weir__backup_lacks(&from, NAME, w->log->visible, 1, heads, &out, NULL), 0);
    assert_false(out);
    assert_int_equal(heads[0].last_offset, 0);
    assert_memory_equal(&heads[1], &w->log->durable_heads[1], sizeof heads[1]);
}

static void of_damage_nobody_knows(void **state)
{
    struct world *w = *state;
    struct weir__segment seg = fill(w);
    const struct weir__backup_log from = {w->o.fs, "log", 1};
    struct weir__head heads[PARTITIONS];
    struct weir_error err = {0};
    char want[128];
    bool out;

    flip(w, FRONT + 20);
    memcpy(heads, w->log->durable_heads, sizeof heads);
    assert_int_equal(weir__backup_lacks(&from, NAME, w->log->visible, PARTITIONS, heads, &out,
                                        &err),
                     WEIR_ECORRUPT);
    assert_false(out);
    snprintf(want, sizeof want, "bytes %llu to %llu cannot be read", (unsigned long long)seg.data,
             (unsigned long long)(seg.data + 4 * KIB));
    assert_string_equal(err.text, want);
    assert_int_equal(weir__backup_lacks(&from, "none", 1, PARTITIONS, heads, &out, NULL),
                     WEIR_ENOTFOUND);
    assert_false(out);
}

/* As they stood in front of the segment. */
static void heads_in_front_are_read(void **state)
{
    struct world *w = *state;
    struct weir__head heads[PARTITIONS], want[PARTITIONS];
    int open_files;

    fill(w);
    memcpy(want, w->log->durable_heads, sizeof want);
    weir__mutex_lock(&w->log->lock);
    w->log->want_roll = true;
    assert_int_equal(weir__log_lead(w->log, NULL), 0);
    weir__mutex_unlock(&w->log->lock);
    open_files = simfs_open_files(w->disk);
    for (int i = 0; i < 2; i++) {
        const struct weir__backup_log from = {w->o.fs, "log", 1};
        const char *name = i ? weir__log_active(w->log)->name : NAME;

        if (i == 0) memset(heads, 'x', sizeof heads);
        assert_int_equal(weir__backup_heads(&from, name, PARTITIONS, heads, NULL), 0);
        if (i == 0) assert_int_equal(heads[0].next_sequence + heads[1].next_sequence, 0);
        if (i == 1) assert_memory_equal(heads, want, sizeof heads);
        assert_int_equal(weir__backup_heads(&from, "none", PARTITIONS, heads, NULL),
                         WEIR_ENOTFOUND);
    }
    assert_int_equal(simfs_open_files(w->disk), open_files);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_is_wrong_is_found),         CASE(a_header_that_is_gone_is_found),
        CASE(what_cannot_be_checked_is_told), CASE(the_newest_events_are_looked_for),
        CASE(other_partitions_do_not_count),  CASE(of_damage_nobody_knows),
        CASE(heads_in_front_are_read),
    };

    return cmocka_run_group_tests_name("backup_check", tests, NULL, NULL);
}
