#define _GNU_SOURCE
#include "base/pages.h"

#include <sys/mman.h>

void *weir__pages_new(size_t len)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

void weir__pages_free(void *at, size_t len)
{
    if (at) munmap(at, len);
}
