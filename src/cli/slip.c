/* slip.c - how many slips of the keyboard lie between two words: a letter that is wrong, missing or
 * too many, or two that changed places. */
#include "cli/slip.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned weir__slip_distance(const char *a, const char *b)
{
    unsigned row[3][WEIR__SLIP_BYTES + 1], *before = row[0], *last = row[1], *now = row[2],
                                           *free_row;
    size_t len = strlen(b);

    if (len > WEIR__SLIP_BYTES) return WEIR__SLIP_BYTES;
    for (size_t j = 0; j <= len; j++) last[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= len; j++) {
            now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[len];
}
