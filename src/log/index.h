/* index.h - where the batches of each partition lie in one segment.
 *
 * Entries are kept in chunks of up to WEIR__INDEX_CHUNK, delta-coded behind a fixed chunk header
 * that can be searched without reading the entries. In memory while the segment is written, then as
 * a footer in the segment's own space, from which single chunks are read when somebody needs them.
 * An index is never on the path of an acknowledgement, and can always be rebuilt from the batches.
 * The bytes are drawn in index.c. Not locked: the log's lock guards an index in memory. */
#ifndef WEIR_LOG_INDEX_H
#define WEIR_LOG_INDEX_H

#include "log/fs.h"
#include "log/log.h"

#define WEIR__INDEX_CHUNK 128u
#define WEIR__INDEX_ENTRY_BYTES_MAX 80u /* how much one more entry can add to the stored form */

struct weir__index_entry {
    uint64_t position, sequence;
    int64_t time_ms;
    uint32_t count, body_bytes;
};

struct weir__index;

struct weir__index *weir__index_new(uint32_t partitions); /* NULL: out of memory */
void weir__index_free(struct weir__index *);

/* Adds a batch behind the others of its partition. False: out of memory, nothing changed. */
bool weir__index_add(struct weir__index *, uint32_t partition, const struct weir__index_entry *);

/* Makes sure of memory for one more batch of a partition that was not added yet, on top of those it
 * was called for before: so many weir__index_add cannot fail. False: out of memory. The other takes
 * one back. */
bool weir__index_reserve(struct weir__index *, uint32_t partition);
void weir__index_unreserve(struct weir__index *, uint32_t partition);

/* Bytes that the stored form takes now, trailer included, rounded to blocks; and of one without
 * entries. */
uint64_t weir__index_stored_bytes(const struct weir__index *);
uint64_t weir__index_empty_bytes(uint32_t partitions);

/* Which batches a stored index is of. A segment can be sealed twice, when the first roll failed or
 * the power did, so its number alone does not say. */
struct weir__index_stamp {
    uint64_t segment_number;
    uint64_t behind; /* log position behind the last batch; when looking, 0: not known */
    uint32_t seed;   /* of all checksums: what a sender cannot know; 0 in version 1 */
};

/* Writes the stored form so that it ends at file offset `end`. */
int weir__index_store(const struct weir__index *, struct weir__file *,
                      const struct weir__index_stamp *, uint64_t end, struct weir_error *);

/* One place to look in: an index in memory, or the stored one that ends at `end` of a file. */
struct weir__index_source {
    const struct weir__index *memory; /* NULL: stored */
    struct weir__file *file;
    struct weir__index_stamp stamp;
    uint64_t end;
    uint32_t partitions;
};

/* How many bytes in front of `end` the stored index takes. WEIR_ECORRUPT: there is none. */
int weir__index_bytes(const struct weir__index_source *, uint64_t *out, struct weir_error *);

/* A chunk, opened. */
struct weir__index_chunk {
    uint32_t number; /* of the partition's chunks in this segment */
    uint32_t count;  /* entries; 0: there is no such chunk */
    struct weir__index_entry entries[WEIR__INDEX_CHUNK];
};

/* Gives the chunk that holds the partition's last entry whose key (position, sequence or time of
 * its batch) is at most `value`; its first chunk when all are greater; count 0 when it has none.
 * WEIR_ECORRUPT: the stored index is bad, or the disk does not give it. */
int weir__index_find(const struct weir__index_source *, uint32_t partition, enum weir__log_by,
                     uint64_t value, struct weir__index_chunk *out, struct weir_error *);

/* Gives a chunk by its number; count 0 behind the last. */
int weir__index_chunk(const struct weir__index_source *, uint32_t partition, uint32_t number,
                      struct weir__index_chunk *out, struct weir_error *);

#endif
