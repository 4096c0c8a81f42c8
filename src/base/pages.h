/* pages.h - large pieces of memory that go back to the system the moment they are freed. What malloc
 * is given back it may keep. */
#ifndef WEIR_BASE_PAGES_H
#define WEIR_BASE_PAGES_H

#include <stddef.h>

/* Zeros, aligned to a page; len is a multiple of one. NULL: out of memory. */
void *weir__pages_new(size_t len);
void weir__pages_free(void *at, size_t len); /* takes NULL */

#endif
