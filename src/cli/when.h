/* when.h - points in time as people and JSON write them. */
#ifndef WEIR_CLI_WHEN_H
#define WEIR_CLI_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* "2026-01-31T08:30:00.125Z" and its NUL; years are held between 0000 and 9999. */
#define WEIR__WHEN_BYTES 25

const char *weir__when_text(int64_t unix_ms, char out[WEIR__WHEN_BYTES]);

/* ISO 8601 (2026-01-31, 2026-01-31T08:30, ...:00, ...:00.125; then Z, +01:00 or nothing, which is
 * UTC) or milliseconds since 1970. */
bool weir__when_parse(const char *text, int64_t *out_unix_ms);

#endif
