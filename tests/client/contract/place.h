/* place.h - the place that a test works on, and doing things to it in a line. */
#ifndef WEIR_TESTS_CONTRACT_PLACE_H
#define WEIR_TESTS_CONTRACT_PLACE_H

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "weir/weir.h"

/* The test program's own: an empty place, opened and closed around each test. cmocka's setup and
 * teardown; *state is the struct weir. */
int contract_open(void **state);
int contract_close(void **state);
/* Whether lists of rules have their keys in them. */
extern const bool contract_lists_keys;
/* Whether weir__receiver_ended has an answer. */
bool contract_knows_ends(void);

#define PATIENCE_MS 30000 /* for what must happen; a test that waits so long fails */
#define QUIET_MS 20       /* for what must not: long enough on most days */

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != 0) fail_msg("%s: %s: %s", #call, weir_error_name(rc_), err.text);               \
    } while (0)

static struct weir_error err;

static inline void make_hub(struct weir *w, uint32_t partitions)
{
    struct weir_hub_options o = {.size = sizeof o, .partitions = partitions};

    assert_ok(weir_hub_create(w, "h", &o, &err));
}

static inline uint64_t events_in(struct weir *w, uint32_t partition)
{
    struct weir_partition_info info;

    assert_ok(weir_partition_info(w, "h", partition, &info, &err));
    return info.next_sequence;
}

static inline struct weir_producer *open_producer(struct weir *w)
{
    struct weir_producer *p;

    assert_ok(weir_producer_open(&p, w, "h", NULL, &err));
    return p;
}

static inline struct weir_producer *open_pinned(struct weir *w, uint32_t partition)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = partition};
    struct weir_producer *p;

    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    return p;
}

static inline struct weir_receiver *open_receiver(struct weir *w, uint32_t partition)
{
    struct weir_receiver *r;

    assert_ok(weir_receiver_open(&r, w, "h", partition, NULL, &err));
    return r;
}

static inline struct weir_receiver *open_at(struct weir *w, struct weir_position position)
{
    struct weir_receiver_options o = {.size = sizeof o, .position = position};
    struct weir_receiver *r;

    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    return r;
}

static inline struct weir_receipt send_text(struct weir_producer *p, const char *text)
{
    struct weir_event e = {.body = weir_text(text)};
    struct weir_receipt at;

    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, &at, &err));
    return at;
}

static inline void assert_bytes(struct weir_bytes got, const void *at, size_t len)
{
    assert_int_equal(got.len, len);
    if (len > 0) assert_memory_equal(got.at, at, len);
}

static inline void assert_text(struct weir_bytes got, const char *text)
{
    assert_bytes(got, text, strlen(text));
}

/* One event, which must be there, and nothing else about it. */
static inline struct weir_event receive_one(struct weir_receiver *r)
{
    struct weir_received got;

    assert_ok(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err));
    assert_int_equal(got.count, 1);
    return got.events[0];
}

static inline void assert_next(struct weir_receiver *r, const char *text)
{
    assert_text(receive_one(r).body, text);
}

static inline void assert_nothing(struct weir_receiver *r)
{
    struct weir_received got;

    assert_int_equal(weir_receiver_receive(r, 1, QUIET_MS, &got, &err), WEIR_ETIMEDOUT);
    assert_int_equal(got.count, 0);
}

#define BATCH_OVERHEAD 16 /* of one event with a long body: its section and that of the batch */

/* A batch of this many bytes is taken, one byte more is not. */
static inline void assert_batch_edge(struct weir_producer *p, size_t limit)
{
    char *body = calloc(1, limit);
    struct weir_event e = {.body = weir_bytes(body, limit - BATCH_OVERHEAD)};

    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    e.body.len++;
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    free(body);
}

static inline void close_producer(struct weir_producer *p)
{
    assert_ok(weir_producer_close(p, PATIENCE_MS, &err));
}

#endif
