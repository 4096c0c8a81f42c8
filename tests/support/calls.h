/* calls.h - a system that refuses on purpose.
 *
 * Programs that link the support room have a few calls of the system wrapped by the linker. Nothing
 * changes until something is refused, and then for all threads. */
#ifndef WEIR_SUPPORT_CALLS_H
#define WEIR_SUPPORT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on reads and writes on direct handles are EINVAL, or no longer. */
void calls_refuse_direct(bool refuse);
uint64_t calls_refused_direct(void); /* how many were, ever */

/* From now on a read or write of a file moves at most so many bytes, and every other one is
 * interrupted first; 0: no longer. */
void calls_shorten(size_t most);

/* The read or write of a file behind the next `after` ones fails with this errno, once; 0: it moves
 * nothing. calls_failed: it has. */
void calls_fail(int after, int errnum);
bool calls_failed(void);

/* From now on no thread can be started (EAGAIN) once `left` more were, or any again (-1). */
void calls_limit_threads(int left);

#endif
