/* findings_test.c - what an inspection says, word by word: which file, which bytes of it, whose events,
 * and how much of it is damage. */
#include "findings.h"

/* ---- what is done to the log, beside turning bits ---- */

static void nothing(struct scene *s)
{
    (void)s;
}

/* The first segment is not of the log any more, so where the second begins is not known otherwise. */
static void expire(struct scene *s)
{
    struct weir__log *log;

    s->at.o.retain_bytes = PER_SEGMENT * weir__batch_bytes(BODY_BYTES);
    assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
    assert_int_equal(weir__log_step(log, NULL), 0);
    assert_int_equal(weir__log_close(log, NULL), 0);
}

static void add_files(struct scene *s)
{
    simfs_put(s->at.disk, DIR_NAME "/cut-1-2.bin", "x", 1);
    simfs_put(s->at.disk, DIR_NAME "/cut", "x", 1);
    simfs_put(s->at.disk, DIR_NAME "/00000044.seg", "x", 1); /* the next opening removes it */
}

static void lose_segment(struct scene *s)
{
    assert_int_equal(s->at.o.fs->ops->remove(s->at.o.fs, SEGMENT_2, NULL), 0);
    simfs_put(s->at.disk, DIR_NAME "/00000044.seg", "x", 1); /* it may have been this */
}

static void lose_producers(struct scene *s)
{
    assert_int_equal(s->at.o.fs->ops->remove(s->at.o.fs, PRODUCERS, NULL), 0);
}

static void cut_a_write(struct scene *s)
{
    struct simfs_fault fault = {
        .kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_EIO, .short_write = true, .seed = 4};
    static uint8_t body[5000];
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of(body, sizeof body)}};
    struct weir__log *log;

    memset(body, 'y', sizeof body);
    assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
    simfs_fail(s->at.disk, &fault);
    assert_int_equal(weir__log_append_wait(log, &b, weir__deadline_ns(20000), NULL, NULL),
                     WEIR_EUNKNOWN);
    simfs_fail(s->at.disk, NULL);
    weir__log_close(log, NULL);
}

/* ---- what is said ---- */

static const struct finding_case cases[] = {
    {nothing, {{0}}, 0, {ALL_1, ALL_2, ALL_3}},
    {nothing,
     {{SEGMENT_2, BODY(1)}},
     1,
     {ALL_1, "damage 00000002.seg 14272+6080 of 1: 6-7: batch body fails its checksum", ALL_2,
      ALL_3}},
    {nothing,
     {{SEGMENT_2, HEADER(1)}},
     1,
     {ALL_1, "damage 00000002.seg 14272+6080 of 1: 6-7: " HOLE,
      "index 00000002.seg 44672+0 of 1: 1-0: " REBUILT, SAYS_2("5 batches, 10 events"), ALL_3}},
    {nothing,
     {{SEGMENT_2, HEADER(1)}, {SEGMENT_2, HEADER(3)}},
     2,
     {ALL_1, "damage 00000002.seg 14272+6080" NONE NOT_KNOWN,
      "damage 00000002.seg 26432+6080 of 1: 6-8: " HOLE,
      "index 00000002.seg 44672+0 of 1: 1-0: " REBUILT, SAYS_2("4 batches, 9 events"), ALL_3}},
    {nothing,
     {{SEGMENT_2, HEADER(5)}}, /* the next segment knows what it was */
     1,
     {ALL_1, "index 00000002.seg 44672+0 of 1: 1-0: " REBUILT, SAYS_2("5 batches, 9 events"),
      "damage 00000002.seg 38592+6080 of 1: 9-11: " HOLE, ALL_3}},
    {nothing,
     {{SEGMENT_3, HEADER(0)}}, /* the control file does */
     1,
     {ALL_1, ALL_2, SAYS_3("0 batches, 0 events"),
      "damage 00000003.seg 8192+6080 of 0: 12-12: " HOLE}},
    {nothing, {{SEGMENT_2, 100}}, 1, {ALL_1, "copy 00000002.seg 0+0" NONE COPY, ALL_2, ALL_3}},
    {nothing,
     {{SEGMENT_2, 100}, {SEGMENT_2, SEGMENT_BYTES - BLOCK + 100}},
     1,
     {"header 00000002.seg 0+0" NONE
      "segment 2 has no readable header; its batches are found without",
      ALL_1, ALL_2, ALL_3}},
    {nothing,
     {{SEGMENT_2, HEADS_AGAIN}},
     1,
     {ALL_1, "copy 00000002.seg 0+0" NONE COPY, ALL_2, ALL_3}},
    {nothing,
     {{SEGMENT_2, HEADS}, {SEGMENT_2, HEADS_AGAIN}},
     1,
     {ALL_1, "header 00000002.seg 0+0" NONE NO_HEADS, ALL_2, ALL_3}},
    /* A hole that is told of is another than one whose owner nobody knows any more. */
    {nothing,
     {{SEGMENT_3, HEADS}, {SEGMENT_3, HEADS_AGAIN}, {SEGMENT_2, HEADER(1)}, {SEGMENT_2, HEADER(5)}},
     4,
     {ALL_1, "damage 00000002.seg 14272+6080 of 1: 6-7: " HOLE,
      "index 00000002.seg 44672+0 of 1: 1-0: " REBUILT, SAYS_2("4 batches, 7 events"),
      "damage 00000002.seg 38592+6080" NONE NOT_KNOWN, "header 00000003.seg 0+0" NONE NO_HEADS,
      ALL_3, "damage 00000003.seg 0+0 of 1: 9-11: " HOLE}},
    /* It is known all the same that numbers begin with 0. */
    {nothing,
     {{SEGMENT_1, HEADS}, {SEGMENT_1, HEADS_AGAIN}, {SEGMENT_1, INDEX}, {SEGMENT_1, HEADER(0)}},
     2,
     {"header 00000001.seg 0+0" NONE NO_HEADS, "damage 00000001.seg 8192+6080 of 0: 0-0: " HOLE,
      "index 00000001.seg 44672+0 of 0: 1-0: " REBUILT, SAYS_1("5 batches, 11 events"), ALL_2,
      ALL_3}},
    {expire, {{0}}, 0, {ALL_2, ALL_3}},
    {expire, /* the index knows where they began */
     {{SEGMENT_2, HEADS}, {SEGMENT_2, HEADS_AGAIN}, {SEGMENT_2, HEADER(0)}},
     2,
     {"header 00000002.seg 0+0" NONE NO_HEADS, "damage 00000002.seg 8192+6080 of 0: 6-6: " HOLE,
      "index 00000002.seg 44672+0 of 0: 1-0: " REBUILT, SAYS_2("5 batches, 11 events"), ALL_3}},
    {expire,
     {{SEGMENT_2, HEADS}, {SEGMENT_2, HEADS_AGAIN}, {SEGMENT_2, HEADER(0)}, {SEGMENT_2, INDEX}},
     2,
     {"header 00000002.seg 0+0" NONE NO_HEADS, "index 00000002.seg 44672+0 of 0: 1-0: " REBUILT,
      SAYS_2("5 batches, 11 events"), "damage 00000002.seg 8192+6080" NONE NOT_KNOWN, ALL_3}},
    {expire,
     {{SEGMENT_2, HEADS},
      {SEGMENT_2, HEADS_AGAIN},
      {SEGMENT_2, HEADER(0)},
      {SEGMENT_2, INDEX},
      {SEGMENT_3, HEADS},
      {SEGMENT_3, HEADS_AGAIN}},
     3,
     {"header 00000002.seg 0+0" NONE NO_HEADS, "index 00000002.seg 44672+0 of 0: 1-0: " REBUILT,
      SAYS_2("5 batches, 11 events"), "damage 00000002.seg 8192+6080" NONE NOT_KNOWN,
      "header 00000003.seg 0+0" NONE NO_HEADS, ALL_3}},
    {nothing,
     {{SEGMENT_1, INDEX}},
     0,
     {"index 00000001.seg 44672+0 of 0: 1-0: " REBUILT, ALL_1, ALL_2, ALL_3}},
    {nothing,
     {{CONTROL, 100}},
     1,
     {"copy control 0+0" NONE "one of two copies is unreadable; the other serves", ALL_1, ALL_2,
      ALL_3}},
    {nothing,
     {{CONTROL, 100}, {CONTROL, (64 << 10) + 100}},
     1,
     {"control control 0+0" NONE "it cannot be read, and was made again from segments 1 to 3",
      ALL_1, ALL_2, ALL_3}},
    {nothing,
     {{PRODUCERS, BLOCK + 100}},
     1,
     {ALL_1, ALL_2, ALL_3,
      "producers producers-00000001.tab 4096+4096" NONE
      "producers are unreadable: a batch that one of them repeats could be stored twice"}},
    {lose_producers,
     {{0}},
     1,
     {ALL_1, ALL_2, ALL_3,
      "producers producers-00000001.tab 0+0" NONE
      "producers are unreadable: a batch that one of them repeats could be stored twice"}},
    {add_files,
     {{0}},
     0,
     {ALL_1, ALL_2, ALL_3,
      "cut cut-1-2.bin 0+0" NONE "an unfinished write that an earlier opening cut"}},
    {lose_segment,
     {{0}},
     3,
     {"damage (missing) 0+0" NONE "segment 2 is lost: no file can be shown to be it", ALL_1,
      "damage (missing) 0+0 of 0: 6-11: " HOLE, "damage (missing) 0+0 of 1: 6-11: " HOLE, ALL_3,
      "ignored 00000044.seg 0+0" NONE "it is not of the log as it stands; it is kept"}},
    {cut_a_write,
     {{0}},
     0,
     {ALL_1, ALL_2, ALL_3,
      "torn 00000003.seg 14272+0" NONE
      "an unfinished write; the next opening cuts it and saves it aside. It can have been "
      "acknowledged only if the disk lost a completed flush"}},
};

static void findings_are_exact(void **state)
{
    (void)state;
    check_findings(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_exact),
    };

    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
