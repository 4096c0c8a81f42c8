/* allocs.c - see allocs.h. The names are those that the linker's --wrap asks for. */
#include "support/allocs.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static _Atomic uint64_t counted_anywhere, fail_anywhere_at;
static _Thread_local uint64_t counted, fail_at;
static _Thread_local int paused = 1;
static _Thread_local bool struck;

void *__real_malloc(size_t len);
void *__real_calloc(size_t count, size_t len);
void *__real_realloc(void *p, size_t len);
void *__real_aligned_alloc(size_t align, size_t len);
int __real_posix_memalign(void **out, size_t align, size_t len);
char *__real_strdup(const char *text);

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t count, size_t len);
void *__wrap_realloc(void *p, size_t len);
void *__wrap_aligned_alloc(size_t align, size_t len);
int __wrap_posix_memalign(void **out, size_t align, size_t len);
char *__wrap_strdup(const char *text);

void allocs_fail(uint64_t at)
{
    counted = 0;
    fail_at = at;
    struck = false;
    paused = 0;
}

uint64_t allocs_counted(void)
{
    return counted;
}

bool allocs_failed(void)
{
    return struck;
}

void allocs_pause(void)
{
    paused++;
}

void allocs_resume(void)
{
    paused--;
}

void allocs_fail_anywhere(uint64_t at)
{
    atomic_store(&fail_anywhere_at, 0);
    atomic_store(&counted_anywhere, 0);
    atomic_store(&fail_anywhere_at, at);
}

bool allocs_failed_anywhere(void)
{
    uint64_t at = atomic_load(&fail_anywhere_at);

    return at && atomic_load(&counted_anywhere) >= at;
}

static bool strikes_anywhere(void)
{
    uint64_t at = atomic_load(&fail_anywhere_at);

    return at && atomic_fetch_add(&counted_anywhere, 1) + 1 == at;
}

static bool strikes(void)
{
    if (strikes_anywhere()) {
        errno = ENOMEM;
        return true;
    }
    if (paused > 0 || ++counted != fail_at) return false;
    struck = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t len)
{
    return strikes() ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t count, size_t len)
{
    return strikes() ? NULL : __real_calloc(count, len);
}

void *__wrap_realloc(void *p, size_t len)
{
    return strikes() ? NULL : __real_realloc(p, len);
}

void *__wrap_aligned_alloc(size_t align, size_t len)
{
    return strikes() ? NULL : __real_aligned_alloc(align, len);
}

int __wrap_posix_memalign(void **out, size_t align, size_t len)
{
    return strikes() ? ENOMEM : __real_posix_memalign(out, align, len);
}

char *__wrap_strdup(const char *text)
{
    return strikes() ? NULL : __real_strdup(text);
}

/* Of memory only: a file that is mapped is no allocation. */
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (fd == -1 && strikes()) return MAP_FAILED;
    return __real_mmap(at, len, prot, flags, fd, offset);
}
