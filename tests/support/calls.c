/* calls.c - see calls.h. The names are those that the linker's --wrap asks for. */
#define _GNU_SOURCE
#include "support/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t __real_pread(int fd, void *to, size_t len, off_t at);
ssize_t __real_pwritev(int fd, const struct iovec *parts, int count, off_t at);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

static atomic_bool refuse_direct;
static atomic_uint_fast64_t refused_direct;
static atomic_int threads_left = -1;

void calls_refuse_direct(bool refuse)
{
    refuse_direct = refuse;
}

uint64_t calls_refused_direct(void)
{
    return refused_direct;
}

void calls_limit_threads(int left)
{
    threads_left = left;
}

static bool is_refused(int fd)
{
    if (!refuse_direct || !(fcntl(fd, F_GETFL) & O_DIRECT)) return false;
    refused_direct++;
    errno = EINVAL;
    return true;
}

ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
    return is_refused(fd) ? -1 : __real_pread(fd, to, len, at);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return is_refused(fd) ? -1 : __real_pwritev(fd, parts, count, at);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    int left = threads_left;

    while (left > 0 && !atomic_compare_exchange_weak(&threads_left, &left, left - 1)) continue;
    return left == 0 ? EAGAIN : __real_pthread_create(t, attr, run, arg);
}
