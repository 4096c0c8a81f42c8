/* producers.h - a log on a simulated disk to which idempotent producers publish, and what is known of
 * them. */
#ifndef WEIR_TESTS_LOG_PRODUCERS_H
#define WEIR_TESTS_LOG_PRODUCERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/workload.h"

#define DAY_MS INT64_C(86400000)
#define BLOCK 4096u
#define PER_BLOCK 84u
#define WAIT weir__deadline_ns(20000)

struct bench {
    struct workload w;
    char warning[512]; /* the last one */
    int warnings;
};

static inline void hear(enum weir__level level, const char *room, const char *line, void *user)
{
    struct bench *b = user;

    (void)room;
    if (level > WEIR__WARN || !strstr(line, "producers")) return;
    b->warnings++;
    snprintf(b->warning, sizeof b->warning, "%s", line);
}

static inline int setup(void **state)
{
    struct bench *b = test_calloc(1, sizeof *b);

    workload_init(&b->w, 7);
    b->w.options.logger = (struct weir__logger){hear, b};
    *state = b;
    return 0;
}

static inline int teardown(void **state)
{
    struct bench *b = *state;

    workload_fini(&b->w);
    test_free(b);
    return 0;
}

static inline void start(struct bench *b)
{
    struct weir_error err = {0};

    if (workload_open(&b->w, &err) != 0) fail_msg("%s", err.text);
}

static inline void reopen(struct bench *b)
{
    assert_int_equal(workload_close(&b->w), 0);
    start(b);
}

/* Batch number `turn` of a producer, two events each. */
static inline int publish(struct bench *b, uint64_t id, uint32_t turn,
                          struct weir__log_receipt *out)
{
    struct weir__log_batch batch = {.partition = (uint32_t)(id % 5),
                                    .count = 2,
                                    .producer = {id, 1, turn * 2},
                                    .body = {{(const uint8_t *)"12345678", 8}}};

    return weir__log_append_wait(b->w.log, &batch, WAIT, out, NULL);
}

static inline void put(struct bench *b, uint64_t id, uint32_t turn)
{
    struct weir__log_receipt r = {0};

    assert_int_equal(publish(b, id, turn, &r), 0);
    assert_false(r.duplicate);
}

/* Whether its batch is known to be there already. Stores it when it is not. */
static inline bool known(struct bench *b, uint64_t id, uint32_t turn)
{
    struct weir__log_receipt r = {0};

    assert_int_equal(publish(b, id, turn, &r), 0);
    return r.duplicate;
}

static inline bool remembered(struct bench *b, uint64_t id)
{
    struct weir__log_producer next;

    return weir__log_producer_state(b->w.log, (uint32_t)(id % 5), id, &next, NULL) == 0;
}

static inline struct weir__log_stats stats_of(struct bench *b)
{
    struct weir__log_stats s;

    weir__log_stats(b->w.log, &s);
    return s;
}

/* A day later the segment is left for the next one. */
static inline void roll(struct bench *b)
{
    uint64_t before = stats_of(b).segments;

    simclock_pass(&b->w.clock, DAY_MS + 60000);
    workload_roll(&b->w);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    if (b->w.options.retain_ms < 0) assert_int_equal(stats_of(b).segments, before + 1);
}

static inline const char *file_of(struct bench *b)
{
    const char *path, *found = NULL;

    for (size_t i = 0; (path = simfs_path(b->w.disk, i)) != NULL; i++)
        if (strstr(path, "/producers-") && (!found || strcmp(path, found) > 0)) found = path;
    return found;
}

static inline int files_of(struct bench *b)
{
    const char *path;
    int count = 0;

    for (size_t i = 0; (path = simfs_path(b->w.disk, i)) != NULL; i++)
        count += strstr(path, "/producers-") != NULL;
    return count;
}

#endif
