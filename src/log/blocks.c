/* blocks.c - see blocks.h. */
#include "log/blocks.h"

/* One block, or what of it was asked for. Zeros when the disk does not give it; that counts as
 * read, since whether the file ends in it is not known. */
static int read_block(struct weir__file *f, uint8_t *to, size_t len, uint64_t at, size_t *out_len,
                      struct weir__bad_blocks *bad, struct weir_error *err)
{
    int rc = f->ops->read(f, to, len, at, out_len, err);

    if (rc != WEIR_EIO) {
        if (rc == 0) bad->read++;
        return rc;
    }
    memset(to, 0, len);
    *out_len = len;
    bad->count++;
    if (at > bad->last) bad->last = weir__round_down(at, WEIR__FS_BLOCK);
    return 0;
}

int weir__blocks_read(struct weir__file *f, void *to, size_t len, uint64_t at, size_t *out_len,
                      struct weir__bad_blocks *bad, struct weir_error *err)
{
    size_t done = 0, got = 0;
    int rc = f->ops->read(f, to, len, at, out_len, err);

    if (rc == 0) bad->read++;
    if (rc != WEIR_EIO) return rc;
    for (rc = 0; rc == 0 && done < len; done += got) {
        size_t n = WEIR__FS_BLOCK - (size_t)((at + done) % WEIR__FS_BLOCK);

        if (n > len - done) n = len - done;
        rc = read_block(f, (uint8_t *)to + done, n, at + done, &got, bad, err);
        if (rc == 0 && got < n) {
            done += got;
            break;
        }
    }
    *out_len = done;
    return rc;
}
