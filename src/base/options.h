/* options.h - option structs of callers that may be older than the library. */
#ifndef WEIR_BASE_OPTIONS_H
#define WEIR_BASE_OPTIONS_H

#include <stddef.h>

#include "base/error.h"

/* Copies an option struct of the caller's age into one of ours, of `ours` bytes: NULL is all
 * zeros, an older and shorter one is filled up with zeros. WEIR_EINVAL: its size is not set, or it
 * asks for something that this release does not know. */
int weir__options_copy(void *to, size_t ours, const void *from, struct weir_error *);

#endif
