/* tail.h - the newest bytes of the log, in memory.
 *
 * Batches are laid down here when they are taken in, written to disk from here, and read from here
 * while they are recent: a reader at the end never touches the disk. The tail is a row of blocks,
 * each a stretch of log positions in one piece of memory; a batch never spans two. A block's memory
 * is aligned with the file, and begins with whatever the file's 4 KiB block before its first batch
 * holds, so that it can be written directly and the shared block is rewritten whole.
 *
 * Below the durable mark a block's bytes never change. Readers hold a block by a count while they
 * copy from it; a held block that falls out of the tail lives until the last one lets go, so a
 * reader never stops the writer.
 *
 * Not locked: the log's lock guards everything but the bytes themselves. */
#ifndef WEIR_LOG_TAIL_H
#define WEIR_LOG_TAIL_H

#include <stdbool.h>

#include "log/fs.h"

#define WEIR__TAIL_BLOCK_BYTES (1u << 20)
#define WEIR__TAIL_BLOCKS_MAX 128

struct weir__tail_block {
    uint64_t base;  /* position of at[0], a multiple of WEIR__FS_BLOCK */
    uint64_t start; /* position of its first batch */
    uint64_t end;   /* position behind its last */
    size_t cap;
    uint32_t holds; /* readers, and one for being in the tail */
    uint8_t *at;
};

struct weir__tail {
    struct weir__tail_block *blocks[WEIR__TAIL_BLOCKS_MAX]; /* oldest first */
    struct weir__tail_block *idle;                          /* one kept for reuse */
    int count;
    size_t bytes, bytes_max;
    uint64_t end; /* position behind everything taken in */
    uint8_t
        *partial; /* WEIR__FS_BLOCK bytes: what the file holds around `end`, when no block does */
    uint8_t
        *scratch; /* WEIR__FS_BLOCK bytes: the last, unfinished block of a group being written */
};

int weir__tail_init(struct weir__tail *, size_t bytes_max, struct weir_error *);
void weir__tail_fini(struct weir__tail *);

/* Goes on at another position, e.g. a new segment's first. Its 4 KiB block is taken from partial,
 * which the caller has filled up to that position. */
void weir__tail_jump(struct weir__tail *, uint64_t position);

enum weir__tail_room { WEIR__TAIL_FULL, WEIR__TAIL_READY, WEIR__TAIL_NOMEM };

/* Makes room for `len` bytes at the end in one piece; gives up blocks that lie below `durable` to
 * stay within bytes_max. FULL: too much is not durable yet. */
enum weir__tail_room weir__tail_room(struct weir__tail *, size_t len, uint64_t durable);

/* Where the next `len` bytes go, after READY; and that they are there. */
uint8_t *weir__tail_at(struct weir__tail *);
void weir__tail_advance(struct weir__tail *, size_t len);

/* Forgets everything from position on. */
void weir__tail_cut(struct weir__tail *, uint64_t position);

/* Gives the memory of all blocks below `durable` that nobody holds back to the system; what they held
 * is read from the disk from now on. */
void weir__tail_trim(struct weir__tail *, uint64_t durable);

/* The parts to write for [from, to): whole 4 KiB blocks, the first one with what was before `from`,
 * the last one copied aside and filled with zeros. Returns how many. */
int weir__tail_parts(struct weir__tail *, uint64_t from, uint64_t to,
                     struct weir__bytes parts[WEIR__FS_PARTS_MAX]);

/* The block that holds the batch at position, held for the caller; NULL: no longer here. */
struct weir__tail_block *weir__tail_hold(struct weir__tail *, uint64_t position);
void weir__tail_release(struct weir__tail *, struct weir__tail_block *);

#endif
