/* producer.h - what is remembered of idempotent producers: per (partition, id) the last batch.
 *
 * Bounded twice: when `max` are known the one that was silent longest is forgotten for the next one
 * that comes, and one that has been silent for WEIR__PRODUCER_AGE_MIN goes while others publish.
 * Finding, using and forgetting one takes the same time however many are known, and memory grows
 * with them: 68 bytes each, in pages that never move.
 *
 * The order of last use is one to the minute: somebody who publishes all the time is not moved for
 * every batch. It also says who has published since the file of producers (producer_file.c)
 * was last written: those are `dirty`, and they are the newest of the order. */
#ifndef WEIR_LOG_PRODUCER_H
#define WEIR_LOG_PRODUCER_H

#include <stdbool.h>

#include "log/batch.h"

#define WEIR__PRODUCERS_MAX 1000000u          /* of a log */
#define WEIR__PRODUCERS_BEGUN_MAX 65536u      /* epochs that have begun and not published */
#define WEIR__PRODUCER_AGE_MIN (7u * 24 * 60) /* minutes since the last batch */
#define WEIR__PRODUCERS_OF_VERSION_1 4096u    /* most in the heads of a segment of version 1 */
#define WEIR__PRODUCER_BYTES 48u              /* stored form */
#define WEIR__PRODUCERS_PAGE 1024u            /* places that are made at once; a power of two */

struct weir__producer {
    uint64_t id;               /* 0: nobody */
    uint64_t sequence, offset; /* of the last batch's first event in the log */
    int64_t time_ms;
    uint32_t next;  /* the producer sequence that may come next */
    uint32_t count; /* events of the last batch; 0: none yet */
    uint32_t used;  /* minutes, of retention's clock, when that was taken in */
    uint16_t partition;
    uint16_t epoch;
};

/* Places have numbers from 1 on; 0 is none. */
struct weir__producer_place {
    struct weir__producer p;
    uint32_t older, newer; /* the order of last use */
    uint32_t chain;        /* the next one of its bucket, or the next free place */
    bool dirty;            /* has published since the file was written */
};

struct weir__producer_page {
    struct weir__producer_place at[WEIR__PRODUCERS_PAGE];
    uint32_t bucket[WEIR__PRODUCERS_PAGE]; /* their first places */
};

struct weir__producers {
    struct weir__producer_page **pages;
    uint32_t page_count, page_cap;
    uint32_t count;
    uint32_t places; /* ever made; there are as many buckets */
    uint32_t mask;   /* of the hash: the smallest of all ones that is not below their last number */
    uint32_t free;   /* the first free place */
    uint32_t newest, oldest;
    uint32_t cursor; /* of somebody who walks from the oldest to the newest */
    uint32_t max;
    uint64_t seed;      /* of the hash: nobody outside can choose ids that meet in a bucket */
    uint64_t top;       /* the largest offset ever seen */
    uint64_t forgotten; /* for the count and for their age */
    uint64_t undone;    /* batches taken back */
};

static inline struct weir__producer_place *weir__producers_place(const struct weir__producers *all,
                                                                 uint32_t number)
{
    return &all->pages[number / WEIR__PRODUCERS_PAGE]->at[number % WEIR__PRODUCERS_PAGE];
}

static inline uint32_t weir__producer_minutes(int64_t keep_ms)
{
    return (uint32_t)((uint64_t)keep_ms / 60000);
}

/* An empty table; nothing is allocated. */
void weir__producers_init(struct weir__producers *, uint32_t max, uint64_t seed);
void weir__producers_fini(struct weir__producers *);

/* NULL when unknown. Valid until it is forgotten. */
struct weir__producer *weir__producers_find(const struct weir__producers *, uint32_t partition,
                                            uint64_t id);

/* Both are for weir__producers_use. */
struct weir__producer *weir__producers_add(struct weir__producers *, uint32_t partition,
                                           uint64_t id, uint32_t now,
                                           struct weir__producer *out_evicted);
void weir__producers_touch(struct weir__producers *, struct weir__producer *, uint32_t now);

/* Somebody publishes now: known is what find gave. Returns where the caller writes what is known
 * from now on; `used` is set already. *out_before is what has to be known again should the batch be
 * taken back: what was known, or the one that was forgotten for this one, or nobody. NULL: out of
 * memory. */
static inline struct weir__producer *
weir__producers_use(struct weir__producers *all, struct weir__producer *known, uint32_t partition,
                    uint64_t id, int64_t keep_ms, struct weir__producer *out_before)
{
    uint32_t now = weir__producer_minutes(keep_ms);

    if (!known) return weir__producers_add(all, partition, id, now, out_before);
    *out_before = *known;
    if (known->used != now || !((struct weir__producer_place *)known)->dirty)
        weir__producers_touch(all, known, now);
    return known;
}

/* Takes that back; the last use first. */
void weir__producers_undo(struct weir__producers *, uint32_t partition, uint64_t id,
                          const struct weir__producer *before);

/* Takes over what was stored, as the newest, unless something of a later batch is known. False: out
 * of memory. */
bool weir__producers_learn(struct weir__producers *, const struct weir__producer *, bool dirty);

/* The same, from a batch that a recovery met. */
bool weir__producers_learn_batch(struct weir__producers *, const struct weir__batch_header *,
                                 int64_t keep_ms);

/* Forgets those that were silent for too long, at most so many of them. */
void weir__producers_forget(struct weir__producers *, uint32_t now, uint32_t most);

/* Forgets whatever is said to lie at this offset or behind it: the log ends there. */
void weir__producers_cut(struct weir__producers *, uint64_t offset);

/* The oldest of the dirty ones, 0: none; from there on to the newest all are. */
uint32_t weir__producers_dirty(const struct weir__producers *, uint32_t *out_count);
void weir__producers_clean(struct weir__producers *);

/* Judges a batch against what is known (NULL: nothing): 0 it may be stored, *out_duplicate: it is
 * the last batch once more; else WEIR_EFENCED or WEIR_ESEQUENCE with text. */
int weir__producer_check(const struct weir__producer *, const struct weir__log_producer *,
                         uint32_t count, bool *out_duplicate, struct weir_error *);

/* minutes: the time of writing, from which the age is told. */
void weir__producer_encode(const struct weir__producer *, uint32_t minutes, uint8_t *to);
void weir__producer_decode(const uint8_t *from, uint32_t minutes, struct weir__producer *out);

#endif
