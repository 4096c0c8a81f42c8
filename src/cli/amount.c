/* amount.c - sizes and spans of time as people write them.
 *
 * A limit is printed as it can be typed, so nothing is rounded; what was measured is rounded to what
 * a reader can take in. */
#include "cli/amount.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
    int64_t ms;
    const char *name;
} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};

#define UNITS (sizeof units / sizeof units[0])

const char *weir__amount_size(uint64_t bytes, char out[WEIR__AMOUNT_BYTES])
{
    static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t i = 0;

    for (; value >= 1024 && i + 1 < sizeof names / sizeof names[0]; i++) value /= 1024;
    snprintf(out, WEIR__AMOUNT_BYTES, i ? "%.1f %s" : "%.0f %s", value, names[i]);
    return out;
}

const char *weir__amount_span(int64_t ms, char out[WEIR__AMOUNT_BYTES])
{
    size_t i = 0;

    while (i + 1 < UNITS && ms < units[i].ms) i++;
    if (i + 2 < UNITS) /* seconds need no milliseconds */
        snprintf(out, WEIR__AMOUNT_BYTES, "%" PRId64 "%s %" PRId64 "%s", ms / units[i].ms,
                 units[i].name, ms % units[i].ms / units[i + 1].ms, units[i + 1].name);
    else
        snprintf(out, WEIR__AMOUNT_BYTES, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
    return out;
}

const char *weir__amount_limit(uint64_t bytes, char out[WEIR__AMOUNT_BYTES])
{
    static const char letters[] = "KMG";
    size_t times = 0;

    while (times < 3 && bytes > 0 && bytes % 1024 == 0) bytes /= 1024, times++;
    if (times > 0)
        snprintf(out, WEIR__AMOUNT_BYTES, "%" PRIu64 "%c", bytes, letters[times - 1]);
    else
        snprintf(out, WEIR__AMOUNT_BYTES, "%" PRIu64 " bytes", bytes);
    return out;
}

const char *weir__amount_age(int64_t ms, char out[WEIR__AMOUNT_BYTES])
{
    size_t i = 0;

    if (ms < 0) {
        snprintf(out, WEIR__AMOUNT_BYTES, "for ever");
        return out;
    }
    while (i + 1 < UNITS && ms % units[i].ms != 0) i++;
    snprintf(out, WEIR__AMOUNT_BYTES, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
    return out;
}
