/* crc.h - CRC-32C (Castagnoli), as in iSCSI, ext4 and SSE4.2.
 *
 * weir__crc32c uses the processor's instruction when it has one and a table otherwise; both give
 * the same answer, and weir__crc32c_table is there so that a test can say so.
 * crc is the running value: 0 to begin, the last result to go on. */
#ifndef WEIR_BASE_CRC_H
#define WEIR_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t weir__crc32c(uint32_t crc, const void *at, size_t len);
uint32_t weir__crc32c_table(uint32_t crc, const void *at, size_t len);

#endif
