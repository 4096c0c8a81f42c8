/* amount.h - sizes and spans of time as people write them. */
#ifndef WEIR_CLI_AMOUNT_H
#define WEIR_CLI_AMOUNT_H

#include <stdint.h>

#define WEIR__AMOUNT_BYTES 32

/* What was counted, to one decimal: "812 bytes", "3.9 MiB". */
const char *weir__amount_size(uint64_t bytes, char out[WEIR__AMOUNT_BYTES]);

/* What was measured, in its two largest units: "6d 23h", "2s", "40ms". */
const char *weir__amount_span(int64_t ms, char out[WEIR__AMOUNT_BYTES]);

/* Limits, exactly, as the options take them: "10M", "5 bytes"; "12h", "90s", "for ever". */
const char *weir__amount_limit(uint64_t bytes, char out[WEIR__AMOUNT_BYTES]);
const char *weir__amount_age(int64_t ms, char out[WEIR__AMOUNT_BYTES]);

#endif
