/* stop_at.c - loaded in front of a program (LD_PRELOAD): kills it with SIGKILL in front of the call
 * number STOP_AT of those that change the disk. Without STOP_AT it writes their number into the file
 * STOP_COUNT when the program ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls;

static void step(void)
{
    const char *at = getenv("STOP_AT");
    long n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

    if (at && atol(at) == n) kill(getpid(), SIGKILL);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("STOP_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f) return;
    fprintf(f, "%ld\n", calls);
    fclose(f);
}

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    step();
    return REAL(pwritev)(fd, parts, count, at);
}

int fdatasync(int fd)
{
    step();
    return REAL(fdatasync)(fd);
}

int fsync(int fd)
{
    step();
    return REAL(fsync)(fd);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
    step();
    return REAL(fallocate)(fd, mode, at, len);
}

int unlink(const char *path)
{
    step();
    return REAL(unlink)(path);
}
