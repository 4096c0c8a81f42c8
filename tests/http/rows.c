/* rows.c - the bad requests of raw.h for a test that sends them over a socket: one line for each,
 * the first status that is expected and the bytes in hexadecimal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw.h"

/* "POST / [hello400 closed": the head was good, so the first answer may be another; as it may be to
 * a length, whose limit is the server's own. */
static long first_status(const char *tale)
{
    long status = strtol(tale, NULL, 10);

    return status == 413 ? 0 : status;
}

int main(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        printf("%ld ", first_status(bad[i].tale));
        for (const char *c = bad[i].raw; *c; c++) printf("%02x", (unsigned char)*c);
        putchar('\n');
    }
    (void)good;
    return 0;
}
