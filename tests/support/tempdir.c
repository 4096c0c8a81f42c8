/* tempdir.c - see tempdir.h. */
#define _GNU_SOURCE
#include "support/tempdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDERS_OPEN_MAX 16

int tempdir_make(char path[TEMPDIR_BYTES])
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(path, TEMPDIR_BYTES, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");

    return n < TEMPDIR_BYTES && mkdtemp(path) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

void tempdir_remove(const char *path)
{
    if (nftw(path, remove_entry, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS) != 0) perror(path);
}
