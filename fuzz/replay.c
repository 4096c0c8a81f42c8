/* replay.c - feeds the files given, and every file below the folders given, to a fuzz target.
 * This is how a corpus is tested where libFuzzer is not at hand. No input at all is a failure. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_BYTES_MAX (16 << 20)
#define FOLDERS_OPEN_MAX 16

static int inputs;

/* The bytes are copied to a block of exactly their size, so that a sanitizer sees the end. */
static int feed_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    uint8_t *at = NULL;
    int rc = -1;

    if (f && fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    if (size < 0 || size > INPUT_BYTES_MAX) goto out;
    rewind(f);
    at = malloc(size > 0 ? (size_t)size : 1);
    if (!at || fread(at, 1, (size_t)size, f) != (size_t)size) goto out;
    LLVMFuzzerTestOneInput(at, (size_t)size);
    inputs++;
    rc = 0;
out:
    if (rc != 0) fprintf(stderr, "replay: cannot feed %s\n", path);
    free(at);
    if (f) fclose(f);
    return rc;
}

static int visit_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)where;
    return type == FTW_F ? feed_file(path) : 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], visit_entry, FOLDERS_OPEN_MAX, FTW_PHYS) != 0) {
            fprintf(stderr, "replay: stopped in %s\n", argv[i]);
            return 1;
        }
    printf("%d inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
