/* demo.h - the scenario of weir demo: homes report to a hub, and everything is read back.
 *
 * Every home sends one reading of a sensor per minute, with its own name as the key. Publishers
 * take the partitions among themselves and send batches of many homes' readings; one reader for
 * each partition reads along and checks that each home's readings come once, in order, in the
 * partition of its key. */
#ifndef WEIR_CLI_DEMO_H
#define WEIR_CLI_DEMO_H

#include <stdatomic.h>

#include "base/thread.h"
#include "weir/weir.h"

#define WEIR__DEMO_PARTITIONS 16u
#define WEIR__DEMO_HOMES_MAX 10000000u
#define WEIR__DEMO_MINUTES_MAX 1440u
#define WEIR__DEMO_HUB "homes"
#define WEIR__DEMO_KEY_BYTES 16 /* "home-9999999" and its NUL */

/* Times of acknowledgement in microseconds, eight buckets for each power of two. */
#define WEIR__DEMO_BUCKETS 256

struct weir__demo {
    struct weir *weir;
    uint32_t homes, minutes;

    uint32_t *home;                            /* their numbers, by partition */
    uint32_t first[WEIR__DEMO_PARTITIONS + 1]; /* where in home each partition begins */
    uint16_t *seen;                            /* minutes read, by home number */

    atomic_uint_fast64_t published, read; /* events acknowledged, events checked */
    atomic_uint_fast64_t bytes;           /* of bodies acknowledged */
    atomic_int_fast64_t published_ns;     /* when the last one was acknowledged */
    uint64_t latency[WEIR__DEMO_BUCKETS]; /* written by the hub's thread alone */
    uint64_t batches;                     /* likewise */

    struct weir_receiver *receiver[WEIR__DEMO_PARTITIONS];
    atomic_bool stop;

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    uint32_t running; /* threads */
    bool failed;
    struct weir_error error; /* the first */
};

/* The key of a home. */
struct weir_bytes weir__demo_key(uint32_t home, char out[WEIR__DEMO_KEY_BYTES]);

/* Notes the first failure and lets everybody stop. */
void weir__demo_fail(struct weir__demo *, const struct weir_error *);

/* What one thread does, from beginning to end. */
void weir__demo_publish(struct weir__demo *, uint32_t publisher, uint32_t publishers);
void weir__demo_read(struct weir__demo *, uint32_t partition);

#endif
