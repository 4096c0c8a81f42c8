/* error.h - filling a struct weir_error on the way up. Neither call allocates; both take NULL. */
#ifndef WEIR_BASE_ERROR_H
#define WEIR_BASE_ERROR_H

#include "weir/error.h"

/* The first cause. Returns code. */
__attribute__((format(printf, 3, 4))) int weir__fail(struct weir_error *, int code, const char *fmt,
                                                     ...);

/* Puts "context: " before the text that is there. Returns code. */
__attribute__((format(printf, 3, 4))) int weir__wrap(struct weir_error *, int code, const char *fmt,
                                                     ...);

/* Maps errno of a failed system call: ENOSPC and EDQUOT to WEIR_ENOSPACE, ENOENT to
 * WEIR_ENOTFOUND, EEXIST to WEIR_EEXIST, ENOMEM to WEIR_ENOMEM, the rest to WEIR_EIO. The text is
 * "what: strerror". */
int weir__fail_errno(struct weir_error *, int errnum, const char *what);

#endif
