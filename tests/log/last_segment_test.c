/* last_segment_test.c - where a log ends, when its control file is gone or says what cannot be, or
 * its last segment is damaged or lost: what an inspection tells, and where an opening goes on. */
#include "findings.h"

#include "log/control.h"
#include "log/segment.h"

#define LIMIT_3                                                                                    \
    (WEIR__LOG_ORIGIN + 3 * SEGMENT_BYTES - FRONT) /* behind its last byte for batches */
#define MANY UINT64_C(5000000)                     /* segments, too many to be true */

static struct weir__file *open_file(struct scene *s, const char *path)
{
    struct weir__file *f;

    assert_int_equal(s->at.o.fs->ops->open(s->at.o.fs, path, 0, &f, NULL), 0);
    return f;
}

/* Both copies, with good checksums. */
static void write_control(struct weir__file *f, struct weir__control *c)
{
    for (int copy = 0; copy < 2; copy++) assert_int_equal(weir__control_write(f, c, true, NULL), 0);
    weir__control_fini(c);
    weir__file_close(f);
}

static void change_control(struct scene *s, void (*change)(struct weir__control *))
{
    struct weir__control c = {.hub_id = s->at.o.hub_id};
    struct weir__file *f = open_file(s, CONTROL);
    int bad;

    assert_int_equal(weir__control_read(f, &c, &bad, NULL), 0);
    change(&c);
    write_control(f, &c);
}

static void lose_control(struct scene *s)
{
    assert_int_equal(s->at.o.fs->ops->remove(s->at.o.fs, CONTROL, NULL), 0);
}

/* ---- what is done to the log ---- */

/* Three batches more, of another opening. */
static void go_on(struct scene *s)
{
    struct weir__log *log;

    assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
    for (uint32_t i = 0; i < 3; i++) segments_put(log, BATCHES + i, true);
    assert_int_equal(weir__log_close(log, NULL), 0);
}

static void go_on_without_control(struct scene *s)
{
    go_on(s);
    lose_control(s);
}

/* The only batch of the last segment has a number that was given before. */
static void repeat_a_number(struct scene *s)
{
    struct weir__file *f = open_file(s, SEGMENT_3);
    uint8_t bytes[WEIR__BATCH_HEADER_BYTES];
    struct weir__segment_header h;
    struct weir__batch_header batch;
    struct weir__batch_stamp stamp;
    int bad;

    assert_int_equal(weir__segment_read_header(f, s->at.o.hub_id, &h, &bad, NULL), 0);
    weir__file_close(f);
    stamp = weir__batch_stamp(s->at.o.hub_id, h.secret);
    simfs_peek(s->at.disk, SEGMENT_3, bytes, sizeof bytes, FRONT);
    assert_true(weir__batch_decode(bytes, &stamp, &batch));
    assert_int_equal(batch.sequence, 12);
    batch.sequence = 11;
    weir__batch_encode(&batch, &stamp, bytes);
    simfs_poke(s->at.disk, SEGMENT_3, bytes, sizeof bytes, FRONT);
}

static void begin_with_the_last(struct weir__control *c)
{
    c->first_segment = c->last_segment;
}

static void expire_all_but_the_last(struct scene *s)
{
    change_control(s, begin_with_the_last);
}

static void begin_before_the_watermark(struct weir__control *c)
{
    c->first_segment = c->last_segment;
    c->watermark = c->active.data;
}

/* It was not written since the last segment was begun, but for the heads. */
static void expire_before_the_watermark(struct scene *s)
{
    go_on(s);
    change_control(s, begin_before_the_watermark);
}

static void mark_at_limit(struct weir__control *c)
{
    c->watermark = LIMIT_3;
}

static void mark_behind_limit(struct weir__control *c)
{
    c->watermark = LIMIT_3 + 1;
}

static void watermark_at_limit(struct scene *s)
{
    change_control(s, mark_at_limit);
}

static void watermark_behind_limit(struct scene *s)
{
    change_control(s, mark_behind_limit);
}

static void lose_the_last(struct scene *s)
{
    assert_int_equal(s->at.o.fs->ops->remove(s->at.o.fs, SEGMENT_3, NULL), 0);
}

static void number_many(struct weir__control *c)
{
    c->last_segment = MANY;
}

/* The files are the oldest and the newest two of very many. */
static void very_many(struct scene *s)
{
    static const char *const paths[] = {SEGMENT_2, SEGMENT_3};

    for (uint64_t i = 0; i < 2; i++) {
        struct weir__file *f = open_file(s, paths[i]);
        struct weir__segment_header h;
        uint8_t heads[PARTITIONS * WEIR__HEAD_BYTES];
        int bad;

        assert_int_equal(weir__segment_read_header(f, s->at.o.hub_id, &h, &bad, NULL), 0);
        simfs_peek(s->at.disk, paths[i], heads, sizeof heads, BLOCK);
        h.number = MANY - 1 + i;
        assert_int_equal(weir__segment_write_header(f, &h, s->at.o.hub_id, heads, NULL), 0);
        weir__file_close(f);
    }
    change_control(s, number_many);
}

/* ---- what is said ---- */

#define NO_CONTROL                                                                                 \
    "control control 0+0" NONE "it cannot be read, and was made again from segments 1 to 3"
#define LONGER_3(content)                                                                          \
    "segment 00000003.seg 0+65536" NONE                                                            \
    "segment 3: positions 1000000000139264 to 1000000000163584, " content

static const struct finding_case cases[] = {
    {go_on_without_control, {{0}}, 1, {NO_CONTROL, ALL_1, ALL_2, LONGER_3("4 batches, 7 events")}},
    /* The batch behind tells whose it was. */
    {go_on_without_control,
     {{SEGMENT_3, HEADER(2)}},
     2,
     {NO_CONTROL, ALL_1, ALL_2, LONGER_3("3 batches, 4 events"),
      "damage 00000003.seg 20352+6080 of 0: 13-15: " HOLE}},
    /* Of two of them nobody does: as many numbers as there were bytes are passed over. */
    {go_on_without_control,
     {{SEGMENT_3, HEADER(1)}, {SEGMENT_3, HEADER(2)}},
     4,
     {NO_CONTROL, ALL_1, ALL_2, "damage 00000003.seg 14272+12160 of 1: 12-13: " HOLE,
      LONGER_3("2 batches, 2 events"), "damage 00000003.seg 14272+12160 of 0: 13-12172: " HOLE,
      "damage 00000003.seg 14272+12160 of 2: 0-12159: " HOLE}},
    /* In an older segment the next one knows, and nothing is passed over. */
    {lose_control,
     {{SEGMENT_2, HEADER(1)}, {SEGMENT_2, HEADER(2)}},
     3,
     {NO_CONTROL, ALL_1, "damage 00000002.seg 14272+12160 of 1: 6-7: " HOLE,
      "damage 00000002.seg 14272+12160 of 0: 7-9: " HOLE,
      "index 00000002.seg 44672+0 of 0: 1-0: " REBUILT, SAYS_2("4 batches, 7 events"), ALL_3}},
    {repeat_a_number,
     {{0}},
     1,
     {ALL_1, ALL_2, SAYS_3("0 batches, 0 events"),
      "damage 00000003.seg 8192+6080 of 0: 12-12: " HOLE}},
    /* Where the partitions began is not known: any number may be the first. */
    {expire_all_but_the_last,
     {{SEGMENT_3, HEADS}, {SEGMENT_3, HEADS_AGAIN}},
     1,
     {"header 00000003.seg 0+0" NONE NO_HEADS, ALL_3}},
    {expire_all_but_the_last,
     {{SEGMENT_3, HEADS}, {SEGMENT_3, HEADS_AGAIN}, {SEGMENT_3, HEADER(0)}},
     2,
     {"header 00000003.seg 0+0" NONE NO_HEADS, SAYS_3("0 batches, 0 events"),
      "damage 00000003.seg 8192+6080" NONE NOT_KNOWN}},
    /* The control file knows where partition 0 ended, and that partition 2 had not begun. */
    {expire_before_the_watermark,
     {{SEGMENT_3, HEADS}, {SEGMENT_3, HEADS_AGAIN}, {SEGMENT_3, HEADER(1)}, {SEGMENT_3, HEADER(2)}},
     3,
     {"header 00000003.seg 0+0" NONE NO_HEADS, LONGER_3("2 batches, 2 events"),
      "damage 00000003.seg 14272+12160 of 0: 13-15: " HOLE,
      "damage 00000003.seg 14272+12160 of 2: 0-12159: " HOLE}},
    {watermark_at_limit,
     {{0}},
     1,
     {ALL_1, ALL_2,
      "segment 00000003.seg 0+65536" NONE
      "segment 3: positions 1000000000139264 to 1000000000188416, 1 batch, 1 event",
      "damage 00000003.seg 14272+43072" NONE NOT_KNOWN}},
    {watermark_behind_limit,
     {{0}},
     1,
     {"control control 0+0" NONE "its watermark 1000000000188417 lies behind segment 00000003.seg",
      ALL_1, ALL_2, ALL_3}},
    /* As the next opening will tell it, and what is known of it. */
    {lose_the_last,
     {{0}},
     4,
     {"damage (missing) 0+0" NONE "segment 3 is lost: no file can be shown to be it", ALL_1, ALL_2,
      "damage (missing) 0+0 of 0: 12-51276: the segment is lost: at least 12 to 12 were stored, "
      "and "
      "numbers up to 51276 are not given again",
      "damage (missing) 0+0 of 1: 12-51275: the segment is lost: how many were stored is not "
      "known, "
      "and numbers up to 51275 are not given again",
      "damage (missing) 0+0 of 2: 0-51263: the segment is lost: how many were stored is not known, "
      "and numbers up to 51263 are not given again"}},
    {very_many,
     {{0}},
     1,
     {"control control 0+0" NONE "it names 5000000 segments; those from 4999999 on are believed",
      "index 00000002.seg 44672+0 of 0: 1-0: " REBUILT,
      "segment 00000002.seg 0+65536" NONE
      "segment 4999999: positions 1000000000073728 to 1000000000110208, 6 batches, 12 events",
      "segment 00000003.seg 0+65536" NONE
      "segment 5000000: positions 1000000000139264 to 1000000000145344, 1 batch, 1 event"}},
};

static void findings_are_exact(void **state)
{
    (void)state;
    check_findings(cases, sizeof cases / sizeof cases[0]);
}

/* ---- where a log goes on, when the file of its last segment is gone ---- */

#define END_2 (WEIR__LOG_ORIGIN + 2 * SEGMENT_BYTES)
#define MARK (END_2 + FRONT + STEP)      /* the watermark, behind its only batch */
#define MOST (END_2 + 8 * SEGMENT_BYTES) /* that it can have reached, when nobody says how far */

/* In front of any place that can have been given before, and of no more than that. */
static void a_lost_end_is_passed_over(void **state)
{
    static const struct {
        uint64_t base, capacity, watermark; /* in the control file */
        uint64_t next;                      /* where the next segment begins */
        uint64_t passed;                    /* numbers: bytes from the watermark to there */
    } places[] = {
        {END_2, SEGMENT_BYTES, MARK, END_2 + SEGMENT_BYTES, END_2 + SEGMENT_BYTES - MARK},
        {END_2 + BLOCK, SEGMENT_BYTES, MARK, END_2 + BLOCK + SEGMENT_BYTES,
         END_2 + BLOCK + SEGMENT_BYTES - MARK},
        {END_2 - BLOCK, SEGMENT_BYTES, MARK, MOST, MOST - MARK}, /* it is none of this segment */
        {0, 0, MARK, MOST, MOST - MARK},
        {END_2 + BLOCK, 0, MARK, MOST, MOST - MARK},
        {0, 0, MOST, MOST, 0},
        {0, 0, MOST + 1, MOST + BLOCK, BLOCK - 1},
        {0, 0, 2 * MOST - 2 * BLOCK, 2 * MOST - 2 * BLOCK, 0},
        {0, 0, 2 * MOST, MOST, 0}, /* it cannot have come so far */
    };

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct weir__control c = {.hub_id = 5};
        struct weir__log_partition_info info;
        struct weir__log *log;
        struct weir__file *f;
        struct scene *s;
        int bad;

        set_up((void **)&s);
        f = open_file(s, CONTROL);
        assert_int_equal(weir__control_read(f, &c, &bad, NULL), 0);
        c.active.base = places[i].base;
        c.active.capacity = places[i].capacity;
        c.watermark = places[i].watermark;
        write_control(f, &c);
        assert_int_equal(s->at.o.fs->ops->remove(s->at.o.fs, SEGMENT_3, NULL), 0);
        assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
        segments_put(log, 0, false);
        assert_int_equal(weir__log_partition_info(log, 0, &info, NULL), 0);
        if (info.last_offset != places[i].next + FRONT)
            fail_msg("case %zu: %" PRIu64 " and not %" PRIu64, i, info.last_offset,
                     places[i].next + FRONT);
        assert_int_equal(info.next_sequence, 13 + places[i].passed + 1);
        assert_int_equal(weir__log_close(log, NULL), 0);
        tear_down((void **)&s);
    }
}

/* Reads from the beginning on, and is told of every number at once. */
static void expect_lost(struct weir__log *log, uint64_t first, uint64_t last)
{
    struct weir__log_reader *r;
    struct weir__log_view view;
    struct weir_error err;
    uint64_t missed, a, b;
    uint32_t count;

    assert_int_equal(weir__log_reader_open(&r, log, 0, first, 0, NULL), 0);
    assert_int_equal(weir__log_reader_next(r, &view, 1, &count, &missed, &err), WEIR_ECORRUPT);
    weir__log_reader_damage(r, &a, &b);
    assert_int_equal(a, first);
    assert_int_equal(b, last);
    weir__log_reader_close(r);
}

/* Numbers are passed over once, not with each opening. */
static void expect_next(struct scene *s, uint64_t next)
{
    struct weir__log_partition_info info;
    struct weir__log *log;

    assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
    assert_int_equal(weir__log_partition_info(log, 0, &info, NULL), 0);
    assert_int_equal(info.next_sequence, next);
    assert_int_equal(weir__log_close(log, NULL), 0);
}

/* Where the only segment began is known of the first of all; of a later one it is where the control file
 * says that the partition stood. */
static void an_only_segment_that_is_lost_is_told(void **state)
{
    static const struct {
        uint32_t batches;
        const char *path;
        uint64_t first, known;
    } only[] = {{3, SEGMENT_1, 0, 4}, {BATCHES, SEGMENT_3, 13, 13}};

    (void)state;
    for (size_t i = 0; i < sizeof only / sizeof only[0]; i++) {
        struct weir__log_partition_info info;
        struct scene s = {0};
        struct weir__log *log;

        segments_init(&s.at, PARTITIONS, only[i].batches, true);
        if (only[i].batches == BATCHES) expire_all_but_the_last(&s);
        assert_int_equal(s.at.o.fs->ops->remove(s.at.o.fs, only[i].path, NULL), 0);
        assert_int_equal(weir__log_open(&log, &s.at.o, NULL), 0);
        assert_int_equal(weir__log_partition_info(log, 0, &info, NULL), 0);
        assert_int_equal(info.begin_sequence, only[i].first);
        assert_true(info.next_sequence > only[i].known);
        expect_lost(log, info.begin_sequence, info.next_sequence - 1);
        assert_int_equal(weir__log_close(log, NULL), 0);
        expect_next(&s, info.next_sequence);
        segments_fini(&s.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_exact),
        cmocka_unit_test(a_lost_end_is_passed_over),
        cmocka_unit_test(an_only_segment_that_is_lost_is_told),
    };

    return cmocka_run_group_tests_name("last_segment", tests, NULL, NULL);
}
