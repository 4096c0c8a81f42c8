/* allocs.h - memory that runs out on purpose.
 *
 * Programs that link the support room have malloc and its kin wrapped by the linker. Nothing
 * changes until allocs_fail is called. Only the calling thread is affected; and every thread, when it
 * was allocs_fail_anywhere. */
#ifndef WEIR_SUPPORT_ALLOCS_H
#define WEIR_SUPPORT_ALLOCS_H

#include <stdbool.h>
#include <stdint.h>

/* The at-th allocation from now on fails, once; 0: none does. Counting begins anew. */
void allocs_fail(uint64_t at);
uint64_t allocs_counted(void);
bool allocs_failed(void);

/* The same for the allocations of all threads together, whose order nobody knows; 0: none fails. */
void allocs_fail_anywhere(uint64_t at);
bool allocs_failed_anywhere(void);

/* Between these nothing is counted and nothing fails; they nest. */
void allocs_pause(void);
void allocs_resume(void);

#endif
