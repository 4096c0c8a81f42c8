/* findings.h - a log of three segments, and every finding of its inspection as a line of text. */
#ifndef WEIR_TESTS_LOG_FINDINGS_H
#define WEIR_TESTS_LOG_FINDINGS_H

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

static inline int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    segments_init(&s->at, PARTITIONS, BATCHES, true);
    *state = s;
    return 0;
}

static inline int tear_down(void **state)
{
    struct scene *s = *state;

    segments_fini(&s->at);
    free(s);
    return 0;
}

static inline void add_line(char all[4096], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline void add_line(char all[4096], const char *fmt, ...)
{
    size_t len = strlen(all);
    va_list args;

    va_start(args, fmt);
    vsnprintf(all + len, 4096 - len, fmt, args);
    va_end(args);
}

static inline void note(const struct weir__log_finding *f, void *user)
{
    static const char *const kinds[] = {"segment", "damage",    "copy",   "torn",    "index",
                                        "cut",     "producers", "header", "control", "ignored"};
    struct scene *s = user;

    assert_memory_equal(f->file, DIR_NAME "/", strlen(DIR_NAME) + 1);
    add_line(s->said, "%s %s %" PRIu64 "+%" PRIu64 " of %d: %" PRIu64 "-%" PRIu64 ": %s\n",
             kinds[f->kind], f->file + strlen(DIR_NAME) + 1, f->at, f->len, (int)f->partition,
             f->first_sequence, f->last_sequence, f->text);
}

static inline void inspect(struct scene *s)
{
    struct weir_error err = {0};

    s->said[0] = 0;
    if (weir__log_inspect(&s->at.o, note, s, &s->damaged, &err) != 0) fail_msg("%s", err.text);
}

/* What a test expects. */
static inline void says(const struct scene *s, size_t number, const char *const lines[],
                        uint64_t damaged)
{
    char want[4096] = "";

    for (int i = 0; lines[i]; i++) add_line(want, "%s\n", lines[i]);
    if (strcmp(s->said, want) != 0) fail_msg("case %zu said\n%sand not\n%s", number, s->said, want);
    assert_int_equal(s->damaged, damaged);
}

/* What is done to a log first, which bytes of which files are spoilt then, and what is found. */
struct finding_case {
    void (*first)(struct scene *);
    struct {
        const char *path;
        uint64_t byte;
    } flips[6];
    uint64_t damaged;
    const char *said[9];
};

static inline void check_findings(const struct finding_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct scene *s;

        set_up((void **)&s);
        cases[i].first(s);
        for (int k = 0; k < 6 && cases[i].flips[k].path; k++)
            simfs_flip(s->at.disk, cases[i].flips[k].path, cases[i].flips[k].byte * 8);
        inspect(s);
        says(s, i, cases[i].said, cases[i].damaged);
        tear_down((void **)&s);
    }
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

#endif
