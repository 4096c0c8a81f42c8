#define _GNU_SOURCE
#include "bench/raw.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/thread.h"

#define BLOCK_BYTES 4096u
#define WRITES_MAX 4096u
#define UNIT WEIR__RAW_WRITE_BYTES_MAX

struct weir__raw {
    int plain_fd;
    int direct_fd; /* plain as well where there is no other way */
    uint64_t bytes;
    uint64_t at;     /* of the next write */
    uint8_t *memory; /* UNIT bytes, aligned */
    double us[WRITES_MAX];
};

static int write_all(int fd, const void *from, size_t len, uint64_t at, struct weir_error *err)
{
    ssize_t n = pwrite(fd, from, len, (off_t)at);

    if (n < 0) return weir__fail_errno(err, errno, "pwrite");
    if ((size_t)n != len) return weir__fail(err, WEIR_EIO, "pwrite wrote %zd of %zu", n, len);
    return 0;
}

static int fill_file(struct weir__raw *raw, struct weir_error *err)
{
    int rc;

    for (uint64_t at = 0; at < raw->bytes; at += UNIT) {
        rc = write_all(raw->direct_fd, raw->memory, UNIT, at, err);
        if (rc != 0) return rc;
    }
    return fsync(raw->direct_fd) == 0 ? 0 : weir__fail_errno(err, errno, "fsync");
}

static int open_files(struct weir__raw *raw, const char *path, struct weir_error *err)
{
    raw->plain_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (raw->plain_fd < 0) return weir__fail_errno(err, errno, "open");
    raw->direct_fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (raw->direct_fd < 0) raw->direct_fd = dup(raw->plain_fd);
    if (raw->direct_fd < 0) return weir__fail_errno(err, errno, "dup");
    return 0;
}

int weir__raw_open(struct weir__raw **out, const char *path, uint64_t bytes, struct weir_error *err)
{
    struct weir__raw *raw = calloc(1, sizeof *raw);
    int rc;

    assert(bytes > 0 && bytes % UNIT == 0);
    if (!raw) return weir__fail(err, WEIR_ENOMEM, "%s", path);
    raw->plain_fd = raw->direct_fd = -1;
    raw->bytes = bytes;
    raw->memory = aligned_alloc(BLOCK_BYTES, UNIT);
    rc = WEIR_ENOMEM;
    if (!raw->memory) goto fail;
    memset(raw->memory, 'r', UNIT);
    rc = open_files(raw, path, err);
    if (rc == 0) rc = fill_file(raw, err);
    if (rc != 0) goto fail;
    *out = raw;
    return 0;

fail:
    weir__raw_close(raw);
    if (rc == WEIR_ENOMEM) return weir__fail(err, rc, "%s: out of memory", path);
    return weir__wrap(err, rc, "%s", path);
}

void weir__raw_close(struct weir__raw *raw)
{
    if (!raw) return;
    if (raw->direct_fd >= 0) close(raw->direct_fd);
    if (raw->plain_fd >= 0) close(raw->plain_fd);
    free(raw->memory);
    free(raw);
}

int weir__raw_overwrite(struct weir__raw *raw, bool direct, size_t write_bytes, uint32_t writes,
                        struct weir__bench_run *run, struct weir_error *err)
{
    int fd = direct ? raw->direct_fd : raw->plain_fd, rc = 0;
    struct weir__bench_mark mark;

    assert(writes > 0 && writes <= WRITES_MAX);
    assert(write_bytes % BLOCK_BYTES == 0 && write_bytes <= UNIT);
    weir__bench_begin(&mark);
    for (uint32_t i = 0; i < writes && rc == 0; i++) {
        int64_t began_ns = weir__mono_ns();

        if (raw->at + write_bytes > raw->bytes) raw->at = 0;
        weir__store64(raw->memory, (uint64_t)began_ns); /* never the same bytes twice */
        rc = write_all(fd, raw->memory, write_bytes, raw->at, err);
        if (rc == 0 && fdatasync(fd) != 0) rc = weir__fail_errno(err, errno, "fdatasync");
        raw->us[i] = (double)(weir__mono_ns() - began_ns) / 1e3;
        raw->at += write_bytes;
    }
    weir__bench_end(&mark, run);
    run->batches = run->events = writes;
    run->bytes = (uint64_t)writes * write_bytes;
    run->p50_us = weir__bench_percentile(raw->us, writes, 0.5);
    run->p99_us = weir__bench_percentile(raw->us, writes, 0.99);
    return rc;
}

/* WEIR_EIO where the file system cannot. */
static int forget_blocks(struct weir__raw *raw, bool anew, struct weir_error *err)
{
    int how = anew ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : FALLOC_FL_ZERO_RANGE;

    if (fallocate(raw->plain_fd, how, 0, (off_t)raw->bytes) != 0 ||
        fallocate(raw->plain_fd, 0, 0, (off_t)raw->bytes) != 0)
        return weir__fail_errno(err, errno, "fallocate");
    raw->at = 0;
    return fsync(raw->plain_fd) == 0 ? 0 : weir__fail_errno(err, errno, "fsync");
}

int weir__raw_write_fresh(struct weir__raw *raw, bool anew, size_t write_bytes, uint32_t writes,
                          struct weir__bench_run *run, struct weir_error *err)
{
    int rc = forget_blocks(raw, anew, err);

    assert(writes * write_bytes <= raw->bytes);
    if (rc == 0) rc = weir__raw_overwrite(raw, true, write_bytes, writes, run, err);
    return rc == 0 ? fill_file(raw, err) : rc;
}

int weir__raw_read(struct weir__raw *raw, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__bench_mark mark;

    if (fsync(raw->plain_fd) != 0) return weir__fail_errno(err, errno, "fsync");
    posix_fadvise(raw->plain_fd, 0, 0, POSIX_FADV_DONTNEED);
    weir__bench_begin(&mark);
    for (uint64_t at = 0; at < raw->bytes; at += UNIT)
        if (pread(raw->plain_fd, raw->memory, UNIT, (off_t)at) != (ssize_t)UNIT)
            return weir__fail_errno(err, errno, "pread");
    weir__bench_end(&mark, run);
    run->bytes = raw->bytes;
    run->batches = run->events = raw->bytes / UNIT;
    return 0;
}
