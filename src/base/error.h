/* error.h - filling a struct weir_error on the way up. Neither call allocates; both take NULL, and
 * evaluate code twice. */
#ifndef WEIR_BASE_ERROR_H
#define WEIR_BASE_ERROR_H

#include <stdbool.h>

#include "weir/error.h"

static inline int weir__code(int code)
{
    return code;
}

/* The first cause. Gives code, and shows compilers and analysers that it does. */
#define weir__fail(err, code, ...) (weir__fail_text((err), (code), __VA_ARGS__), weir__code(code))

/* Puts "context: " before the text that is there. Gives code. */
#define weir__wrap(err, code, ...) (weir__wrap_text((err), (code), __VA_ARGS__), weir__code(code))

__attribute__((format(printf, 3, 4))) void weir__fail_text(struct weir_error *, int code,
                                                           const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void weir__wrap_text(struct weir_error *, int code,
                                                           const char *fmt, ...);

/* Whether it is one of ours: a program may return any number to us. */
bool weir__error_known(int code);

/* Maps errno of a failed system call: ENOSPC and EDQUOT to WEIR_ENOSPACE, ENOENT to
 * WEIR_ENOTFOUND, EEXIST to WEIR_EEXIST, ENOMEM to WEIR_ENOMEM, EMFILE and ENFILE to WEIR_EBUSY,
 * the rest to WEIR_EIO. The text is "what: strerror". */
int weir__fail_errno(struct weir_error *, int errnum, const char *what);

#endif
