/* error.h - the one way to fail.
 *
 * Every call that can fail returns int: 0, or a negative WEIR_E... code that says what the caller
 * can do about it. The optional last argument gathers the text, widest context first:
 * "opening hub 'homes': segment 00042: write: No space left on device".
 * Passing NULL for it is always allowed. The struct is the caller's and may be reused; it is
 * written only when a call fails. */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include "weir/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the caller can do about a failure. */
enum weir_error_class {
    WEIR_CLASS_NONE,   /* not a failure */
    WEIR_CLASS_RETRY,  /* nothing was done; the same call may work later */
    WEIR_CLASS_FATAL,  /* nothing was done and nothing will be: an operator has to look */
    WEIR_CLASS_CALLER, /* nothing was done; the call or its arguments must change */
    WEIR_CLASS_UNKNOWN /* it may or may not have been done: ask, or repeat idempotently */
};

/* name, value, class, text */
#define WEIR_ERRORS(X)                                                                             \
    X(WEIR_OK, 0, NONE, "ok")                                                                      \
    X(WEIR_ENOMEM, -1, RETRY, "out of memory")                                                     \
    X(WEIR_EIO, -2, FATAL, "input/output error")                                                   \
    X(WEIR_ECORRUPT, -3, FATAL, "stored data failed its check")                                    \
    X(WEIR_EINVAL, -4, CALLER, "bad argument")                                                     \
    X(WEIR_ENOTFOUND, -5, CALLER, "no such thing")                                                 \
    X(WEIR_EEXIST, -6, CALLER, "it exists already")                                                \
    X(WEIR_EBUSY, -7, RETRY, "a queue is full, try again")                                         \
    X(WEIR_ETIMEDOUT, -8, RETRY, "the deadline passed")                                            \
    X(WEIR_ECANCELED, -9, CALLER, "cancelled")                                                     \
    X(WEIR_ECLOSED, -10, CALLER, "it is closed")                                                   \
    X(WEIR_ENOSPACE, -11, RETRY, "no space left")                                                  \
    X(WEIR_ETOOBIG, -12, CALLER, "too large")                                                      \
    X(WEIR_EDENIED, -13, CALLER, "not allowed")                                                    \
    X(WEIR_ESTOLEN, -14, CALLER, "a receiver with a higher or equal epoch took the place")         \
    X(WEIR_EEPOCH, -15, CALLER, "a receiver with a higher epoch holds the place")                  \
    X(WEIR_ELIMIT, -16, CALLER, "a limit is reached")                                              \
    X(WEIR_EUNKNOWN, -17, UNKNOWN, "the outcome is unknown")                                       \
    X(WEIR_ESEQUENCE, -18, CALLER, "the producer's sequence number is out of order")               \
    X(WEIR_EFENCED, -19, CALLER, "a newer epoch of this producer took over")                       \
    X(WEIR_ELOCKED, -20, RETRY, "another process holds it")                                        \
    X(WEIR_EVERSION, -21, FATAL, "unknown format version")                                         \
    X(WEIR_EFAILED, -22, FATAL, "stopped after an earlier failure, reopen it")                     \
    X(WEIR_EUNREACHABLE, -23, RETRY, "cannot be reached")                                          \
    X(WEIR_EDEADLOCK, -24, CALLER, "a blocking call inside a completion")                          \
    X(WEIR_ENOTSUP, -25, CALLER, "not possible in this place")

enum weir_error_code {
#define WEIR_X(name, value, class, text) name = value,
    WEIR_ERRORS(WEIR_X)
#undef WEIR_X
};

#define WEIR_ERROR_TEXT_BYTES 512

struct weir_error {
    int code;
    char text[WEIR_ERROR_TEXT_BYTES]; /* always ends with a NUL */
};

/* The class and the short English text of a code; never NULL, also for unknown codes. */
WEIR_API enum weir_error_class weir_error_class(int code);
WEIR_API const char *weir_error_text(int code);

/* The code's own name, "WEIR_EBUSY". */
WEIR_API const char *weir_error_name(int code);

#ifdef __cplusplus
}
#endif
#endif
