/* blocks.h - reading what a failing disk still gives.
 *
 * A disk that cannot read one sector fails the whole read it lies in. To the log such a sector is
 * bytes that match no checksum, no more and no less: what fails as a whole is read again block by
 * block, and a block that fails once more reads as zeros. */
#ifndef WEIR_LOG_BLOCKS_H
#define WEIR_LOG_BLOCKS_H

#include "log/fs.h"

/* Blocks that could not be read, and how many could. Adds up over several reads. */
struct weir__bad_blocks {
    uint64_t count;
    uint64_t read;
    uint64_t last; /* file offset of the last one; of use when count > 0 */
};

/* As file->ops->read, but WEIR_EIO is not an error: see above. With a direct handle `at` and `len`
 * are whole blocks. */
int weir__blocks_read(struct weir__file *, void *to, size_t len, uint64_t at, size_t *out_len,
                      struct weir__bad_blocks *, struct weir_error *);

#endif
