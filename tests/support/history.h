/* history.h - what a log was asked to keep, and whether it did.
 *
 * Every batch gets a number of its own; its bytes follow from that number, so that what is read
 * back can be recognised and compared byte by byte. The history remembers what became of each:
 *
 *   pending   taken in, no completion yet        after a crash: there or not
 *   acked     completed with 0                   must be there, exactly so, once, in its place
 *   refused   the log said it was not stored     must never be there
 *   unknown   completed with "outcome unknown"   after a crash: there or not
 *   gone      was not there after a reopen       must never come back
 *
 * A reopen settles everything: what is found counts as acked from then on, what is not is gone.
 * Nothing here asserts: violations are counted and the first is told, since some tests want them.
 * Threads may append side by side, each to partitions of its own; checking is for one alone. */
#ifndef WEIR_SUPPORT_HISTORY_H
#define WEIR_SUPPORT_HISTORY_H

#include "base/thread.h"
#include "log/log.h"
#include "support/forge.h"

#define HISTORY_BODY_BYTES_MIN 16u

enum history_fate {
    HISTORY_PENDING,
    HISTORY_ACKED,
    HISTORY_REFUSED,
    HISTORY_UNKNOWN,
    HISTORY_GONE
};

struct history_batch {
    uint32_t partition, count, bytes;
    uint16_t attrs;
    struct weir__log_producer producer;
    struct weir__log_receipt receipt; /* once acked */
    enum history_fate fate;
    struct forgery forgery;
};

struct history {
    struct weir__mutex lock; /* guards everything but what only checks use */
    uint32_t partitions;
    struct history_batch *batches; /* number is index + 1; in the order they were submitted */
    size_t count, cap;
    uint64_t acked;     /* completions with 0 */
    uint64_t completed; /* completions */
    uint64_t violations;
    char first[400];        /* the first of them, in words */
    bool forging;           /* senders put headers of batches into their bodies */
    bool may_expire;        /* retention is on: batches may leave at the front, */
    int64_t keep_from_ms;   /* but none that is as new as this */
    int64_t repeat_from_ms; /* producers whose last batch is older may have been forgotten */
    bool may_fail;     /* calls may fail for want of memory or by a fault: then nothing is judged */
    bool may_damage;   /* ranges that are reported as damaged may be missing */
    uint64_t may_lose; /* the last so many acked batches may be missing: above the watermark */
    uint64_t damaged;  /* events in such ranges, by the last check */
    uint64_t found;    /* batches read by the last check */
    char damage[512];  /* what the log said of the last damage */
    void (*on_ack)(void *user, size_t index, const struct weir__log_receipt *); /* or NULL */
    void *on_ack_user;
};

struct history *history_new(uint32_t partitions);
struct history *history_copy(const struct history *);
void history_free(struct history *);

/* What to append. Sizes and the rest of a batch are the caller's choice; its bytes are not. */
struct history_order {
    uint32_t partition;
    uint32_t bytes; /* at least HISTORY_BODY_BYTES_MIN */
    uint32_t count;
    uint64_t producer_id; /* 0: none; else its next sequence number is used, epoch 0 */
    uint32_t wait_ms;     /* for room, when nobody waits for the batch itself */
};

/* Remembers a batch that somebody else sends, as pending; returns its index. */
size_t history_note(struct history *, const struct history_order *);

/* Both return the log's answer and remember it. append returns before the completion. */
int history_append(struct history *, struct weir__log *, const struct history_order *);
int history_append_wait(struct history *, struct weir__log *, const struct history_order *);

/* The producer's last batch of the partition, once more, when it was acked; nothing may be stored.
 * What was refused or is gone does not count; with retention on, what is gone may have been stored
 * all the same, and nothing is repeated. Returns 0 also when there is none. */
int history_repeat(struct history *, struct weir__log *, uint32_t partition, uint64_t producer_id);

/* Reads everything and compares. settle: this was a reopen. Counts violations. */
void history_check(struct history *, struct weir__log *, bool settle);

/* What became of a batch; done once by the completion for those appended here. */
void history_settle(struct history *, size_t index, int rc, const struct weir__log_receipt *);

/* Fills a body as batch `number` of this partition has it. */
void history_body(uint64_t number, uint32_t partition, uint8_t *to, size_t len);

__attribute__((format(printf, 2, 3))) void history_violation(struct history *, const char *, ...);

#endif
