/* file_text.c - a small file, whole: one byte more than it may have is asked for. */
#include "cli/file_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int weir__file_text(const char *path, size_t max, struct weir__buf *out, struct weir_error *err)
{
    FILE *f = fopen(path, "re");
    uint8_t *to;
    int rc = 0;

    weir__buf_init(out, max + 1);
    if (!f)
        return weir__fail(err, errno == ENOENT ? WEIR_ENOTFOUND : WEIR_EIO, "%s", strerror(errno));
    to = weir__buf_room(out, max + 1);
    if (to) out->len = fread(to, 1, max + 1, f);
    if (!to)
        rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    else if (ferror(f))
        rc = weir__fail(err, WEIR_EINVAL, "it cannot be read: %s", strerror(errno));
    else if (out->len > max)
        rc = weir__fail(err, WEIR_EINVAL, "it is longer than %zu bytes", max);
    fclose(f);
    return rc;
}
