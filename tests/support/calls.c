/* calls.c - see calls.h. The names are those that the linker's --wrap asks for. */
#define _GNU_SOURCE
#include "support/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS_MAX 64

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
static atomic_size_t most_bytes;
static atomic_uint shortened;
static atomic_int fail_after = -1, fail_errno;

void calls_refuse_direct(bool refuse)
{
    refuse_direct = refuse;
}

uint64_t calls_refused_direct(void)
{
    return refused_direct;
}

void calls_shorten(size_t most)
{
    most_bytes = most;
}

void calls_fail(int after, int errnum)
{
    fail_errno = errnum;
    fail_after = after;
}

bool calls_failed(void)
{
    return fail_after < 0;
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

/* Whether a transfer ends here, with *out as its answer. */
static bool is_spoilt(int fd, ssize_t *out)
{
    *out = -1;
    if (is_refused(fd)) return true;
    if (fail_after >= 0 && fail_after-- == 0) {
        errno = fail_errno;
        *out = errno ? -1 : 0;
        return true;
    }
    if (most_bytes == 0 || shortened++ % 2 == 1) return false;
    errno = EINTR;
    return true;
}

ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
    size_t most = most_bytes;
    ssize_t answer;

    if (is_spoilt(fd, &answer)) return answer;
    return __real_pread(fd, to, most > 0 && len > most ? most : len, at);
}

/* As many of the parts as there is room for, the last one cut. */
static ssize_t write_some(int fd, const struct iovec *parts, int count, off_t at, size_t most)
{
    struct iovec some[PARTS_MAX];
    int n = 0;

    for (; n < count && n < PARTS_MAX && most > 0; n++) {
        some[n] = parts[n];
        if (some[n].iov_len > most) some[n].iov_len = most;
        most -= some[n].iov_len;
    }
    return __real_pwritev(fd, some, n, at);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    size_t most = most_bytes;
    ssize_t answer;

    if (is_spoilt(fd, &answer)) return answer;
    return most > 0 ? write_some(fd, parts, count, at, most) : __real_pwritev(fd, parts, count, at);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    int left = threads_left;

    while (left > 0 && !atomic_compare_exchange_weak(&threads_left, &left, left - 1)) continue;
    return left == 0 ? EAGAIN : __real_pthread_create(t, attr, run, arg);
}
