/* calls.h - a system that refuses on purpose.
 *
 * Programs that link the support room have a few calls of the system wrapped by the linker. Nothing
 * changes until something is refused, and then for all threads. */
#ifndef WEIR_SUPPORT_CALLS_H
#define WEIR_SUPPORT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on reads and writes on direct handles are EINVAL, or no longer. */
void calls_refuse_direct(bool refuse);
uint64_t calls_refused_direct(void); /* how many were, ever */

/* From now on no thread can be started (EAGAIN) once `left` more were, or any again (-1). */
void calls_limit_threads(int left);

#endif
