/* file_text.h - a small file, whole. */
#ifndef WEIR_CLI_FILE_TEXT_H
#define WEIR_CLI_FILE_TEXT_H

#include "base/buf.h"
#include "base/error.h"

/* Reads a file of at most max bytes. The buffer is made here; the caller ends it in any case.
 * WEIR_ENOTFOUND: there is none; WEIR_EINVAL: it is longer, or cannot be read. */
int weir__file_text(const char *path, size_t max, struct weir__buf *out, struct weir_error *);

#endif
