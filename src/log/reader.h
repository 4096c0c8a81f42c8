/* reader.h - a reader's state, shared by what finds a batch (locate.c) and what reads it (reader.c). */
#ifndef WEIR_LOG_READER_H
#define WEIR_LOG_READER_H

#include "log/state.h"

struct weir__log_reader {
    struct weir__log *log;
    uint32_t partition;
    uint64_t next;
    size_t bytes_max;
    bool unchecked; /* bodies are somebody else's to check */

    uint64_t segment; /* number of the segment the chunk is of; 0: no chunk */
    struct weir__index_chunk chunk;
    uint32_t at;                     /* the chunk's entry that holds `next` */
    struct weir__index_chunk *ahead; /* the chunk behind it, for asking in advance, once that was
                                        needed; count 0: none */
    bool ahead_known;
    uint64_t prefetched; /* positions below it were asked for */

    uint8_t *buffer;
    size_t cap;
    uint64_t damage_first, damage_last; /* first > last: none */
    uint64_t unread;                    /* position of the batch that the disk did not give, or 0 */
};

static inline const struct weir__index_entry *weir__reader_entry(const struct weir__log_reader *r,
                                                                 uint32_t i)
{
    return &r->chunk.entries[i];
}

/* 1: chunk and `at` are on next. 0: next has expired meanwhile, look again. The lock is let go of for disk
 * reads. WEIR_ECORRUPT, WEIR_EIO: the events up to damage_last cannot be served. */
int weir__reader_locate(struct weir__log_reader *, struct weir_error *);

/* Sets the range, which begins where the cursor stands; the way behind it only leads forward. */
void weir__reader_set_damage(struct weir__log_reader *, uint64_t last);

/* Fails for the events from next to `last`, which lie in this segment, at this byte of its file (0: where a
 * walk found the damage). */
int weir__reader_damaged(struct weir__log_reader *, const struct weir__segment *, uint64_t last,
                         uint64_t at, struct weir_error *);

#endif
