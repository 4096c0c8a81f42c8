/* descriptors.h - how many files and sockets this process may have open. */
#ifndef WEIR_IO_DESCRIPTORS_H
#define WEIR_IO_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* Asks for as many as the system lets us have: the soft limit, often 1024, is for programs that use
 * select(). Returns how many that is; when it cannot be raised, how many it was. */
uint64_t weir__descriptors_raise(void);

#define WEIR__DESCRIPTORS_TRIED_MAX 64u

/* Whether so many more can be opened now, up to WEIR__DESCRIPTORS_TRIED_MAX. */
bool weir__descriptors_left(unsigned count);

#endif
