/* findings_test.c - what an inspection says, word by word: which file, which bytes of it, whose events,
 * and how much of it is damage. */
#include "segments.h"

#include <inttypes.h>
#include <stdio.h>

#define PARTITIONS 3u /* the last has no events */
#define BATCHES 13u   /* six in each of two segments, the last one alone in the third */
#define BLOCK ((uint64_t)WEIR__FS_BLOCK)
#define FRONT (2 * BLOCK)                 /* a header and the heads */
#define STEP 6080u                        /* a batch */
#define HEADER(n) (FRONT + (n)*STEP + 10) /* of a batch, from 0 */
#define BODY(n) (HEADER(n) + WEIR__BATCH_HEADER_BYTES)
#define HEADS BLOCK
#define HEADS_AGAIN (SEGMENT_BYTES - FRONT)
#define INDEX (SEGMENT_BYTES - FRONT - BLOCK + 4)
#define SEGMENT_2 DIR_NAME "/00000002.seg"
#define SEGMENT_3 DIR_NAME "/00000003.seg"
#define CONTROL DIR_NAME "/control"
#define PRODUCERS DIR_NAME "/producers-00000001.tab"

struct scene {
    struct segments at;
    char said[4096]; /* a line for each finding */
    uint64_t damaged;
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    segments_init(&s->at, PARTITIONS, BATCHES, true);
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

static void add_line(char all[4096], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_line(char all[4096], const char *fmt, ...)
{
    size_t len = strlen(all);
    va_list args;

    va_start(args, fmt);
    vsnprintf(all + len, 4096 - len, fmt, args);
    va_end(args);
}

static void note(const struct weir__log_finding *f, void *user)
{
    static const char *const kinds[] = {"segment", "damage",    "copy",   "torn",    "index",
                                        "cut",     "producers", "header", "control", "ignored"};
    struct scene *s = user;

    assert_memory_equal(f->file, DIR_NAME "/", strlen(DIR_NAME) + 1);
    add_line(s->said, "%s %s %" PRIu64 "+%" PRIu64 " of %d: %" PRIu64 "-%" PRIu64 ": %s\n",
             kinds[f->kind], f->file + strlen(DIR_NAME) + 1, f->at, f->len, (int)f->partition,
             f->first_sequence, f->last_sequence, f->text);
}

static void inspect(struct scene *s)
{
    struct weir_error err = {0};

    s->said[0] = 0;
    if (weir__log_inspect(&s->at.o, note, s, &s->damaged, &err) != 0) fail_msg("%s", err.text);
}

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

#define NONE " of -1: 1-0: "
#define SAYS_1(content)                                                                            \
    "segment 00000001.seg 0+65536" NONE                                                            \
    "segment 1: positions 1000000000008192 to 1000000000044672, " content
#define SAYS_2(content)                                                                            \
    "segment 00000002.seg 0+65536" NONE                                                            \
    "segment 2: positions 1000000000073728 to 1000000000110208, " content
#define SAYS_3(content)                                                                            \
    "segment 00000003.seg 0+65536" NONE                                                            \
    "segment 3: positions 1000000000139264 to 1000000000145344, " content
#define ALL_1 SAYS_1("6 batches, 12 events")
#define ALL_2 SAYS_2("6 batches, 12 events")
#define ALL_3 SAYS_3("1 batch, 1 event")
#define HOLE "batch header unreadable: events are missing"
#define NOT_KNOWN "bytes below the watermark are unreadable; whose they were is not known"
#define NO_HEADS "where the partitions began cannot be read in either copy"
#define COPY "one of two header copies is unreadable; the other serves"
#define REBUILT "stored index disagrees with the batches; it will be rebuilt"

static const struct {
    void (*first)(struct scene *);
    struct {
        const char *path;
        uint64_t byte;
    } flips[6];
    uint64_t damaged;
    const char *said[9];
} cases[] = {
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char want[4096] = "";
        struct scene *s;

        set_up((void **)&s);
        cases[i].first(s);
        for (int k = 0; k < 6 && cases[i].flips[k].path; k++)
            simfs_flip(s->at.disk, cases[i].flips[k].path, cases[i].flips[k].byte * 8);
        for (int k = 0; cases[i].said[k]; k++) add_line(want, "%s\n", cases[i].said[k]);
        inspect(s);
        if (strcmp(s->said, want) != 0) fail_msg("case %zu said\n%sand not\n%s", i, s->said, want);
        assert_int_equal(s->damaged, cases[i].damaged);
        tear_down((void **)&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_exact),
    };

    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
