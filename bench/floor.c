/* floor.c - the least that a durable append can be: what this machine allows.
 *
 * The sender's thread checksums each batch, puts a header of 32 bytes in front of it and copies
 * both behind the batch before, into a ring of memory. Another thread takes what has gathered
 * there, writes it past the page cache over blocks that were already written, syncs once, and
 * tells. The block that a group ends in is written again by the next one. There are no partitions,
 * no index, no epoch, no retention and nothing to read: what a log costs beyond this is its price.
 *
 * A byte at log position p lies at p modulo RING_BYTES in the ring and at p modulo FILE_BYTES in
 * the file; both are multiples of a block, so a block of one is a block of the other. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/thread.h"
#include "bench/place.h"
#include "bench/subject.h"

#define RING_BYTES (16u << 20)
#define FILE_BYTES (512u << 20) /* more than a run writes: fresh blocks stay fresh all along */
#define GROUP_BYTES_MAX                                                                            \
    (1u << 20) /* more gains nothing: the disk is as fast, and the sender waits */
#define BLOCK_BYTES 4096u
#define HEADER_BYTES 32u
#define BATCHES_MAX 8192u /* under way */

struct floor {
    struct weir__subject base;
    int fd;
    uint8_t *ring;
    uint8_t *last; /* a block, the committer's */
    struct weir__thread committer;
    struct weir__mutex lock; /* guards all below */
    struct weir__cond filled, emptied;
    struct weir__window *window; /* of the batches that are under way */
    uint64_t appended, durable;  /* log positions */
    uint64_t taken, told;        /* batches */
    uint64_t *ends;              /* where each of the last BATCHES_MAX batches ends */
    bool idle;                   /* the committer sleeps */
    bool full;                   /* the sender does */
    bool stopping;
};

static struct floor *floor_of(struct weir__subject *subject)
{
    return (struct floor *)(void *)subject;
}

/* ---- the committer ---- */

/* Writes the blocks that hold [from, to) of the log, which do not go round the end of the file, and
 * syncs. They may go round the end of the ring. The block that `to` lies in is copied aside: the
 * sender goes on behind it. */
static int write_group(struct floor *f, uint64_t from, uint64_t to)
{
    uint64_t at = weir__round_down(from, BLOCK_BYTES), whole = weir__round_down(to, BLOCK_BYTES);
    size_t len = (size_t)(weir__round_up(to, BLOCK_BYTES) - at);
    struct iovec parts[3];
    int count = 0;

    for (uint64_t p = at; p < whole;) {
        size_t place = (size_t)(p % RING_BYTES), left = RING_BYTES - place;

        if (left > whole - p) left = (size_t)(whole - p);
        parts[count++] = (struct iovec){f->ring + place, left};
        p += left;
    }
    if (to > whole) {
        memcpy(f->last, f->ring + whole % RING_BYTES, (size_t)(to - whole));
        parts[count++] = (struct iovec){f->last, BLOCK_BYTES};
    }
    if (pwritev(f->fd, parts, count, (off_t)(at % FILE_BYTES)) != (ssize_t)len) return WEIR_EIO;
    return fdatasync(f->fd) == 0 ? 0 : WEIR_EIO;
}

/* The end of the group that begins at `durable`: it stays in the file and below its limit. A batch
 * may be cut in two; it is told with its second part. */
static uint64_t group_end(const struct floor *f)
{
    uint64_t turn = f->durable / FILE_BYTES * FILE_BYTES + FILE_BYTES;
    uint64_t end = f->durable + GROUP_BYTES_MAX;

    if (end > turn) end = turn;
    return f->appended < end ? f->appended : end;
}

/* Waits for something to write; false when there will be nothing any more. */
static bool wait_filled(struct floor *f)
{
    while (f->appended == f->durable && !f->stopping) {
        f->idle = true;
        weir__cond_wait(&f->filled, &f->lock, INT64_MAX);
        f->idle = false;
    }
    return f->appended != f->durable;
}

/* Everything below `to` is durable: makes room, and counts the batches that have come to an end. */
static uint32_t settle(struct floor *f, uint64_t to)
{
    uint32_t count = 0;

    f->durable = to;
    while (f->told < f->taken && f->ends[f->told % BATCHES_MAX] <= to) {
        f->told++;
        count++;
    }
    if (f->full) weir__cond_signal(&f->emptied);
    return count;
}

static void *commit(void *arg)
{
    struct floor *f = arg;

    weir__mutex_lock(&f->lock);
    while (wait_filled(f)) {
        struct weir__window *window = f->window;
        uint64_t from = f->durable, to = group_end(f);
        uint32_t count;
        int rc;

        weir__mutex_unlock(&f->lock);
        rc = write_group(f, from, to);
        weir__mutex_lock(&f->lock);
        count = settle(f, to);
        weir__mutex_unlock(&f->lock);
        weir__window_done(window, count, rc);
        weir__mutex_lock(&f->lock);
    }
    weir__mutex_unlock(&f->lock);
    return NULL;
}

/* ---- the sender ---- */

/* Copies to a log position; may go round the end of the ring. */
static void put(struct floor *f, uint64_t at, const void *from, size_t len)
{
    size_t place = (size_t)(at % RING_BYTES);
    size_t first = len < RING_BYTES - place ? len : RING_BYTES - place;

    memcpy(f->ring + place, from, first);
    memcpy(f->ring, (const uint8_t *)from + first, len - first);
}

/* A block of room is kept back: the one a group ends in must not be overwritten from the front. */
static bool has_room(const struct floor *f, size_t len)
{
    return f->appended + len + BLOCK_BYTES <=
               weir__round_down(f->durable, BLOCK_BYTES) + RING_BYTES &&
           f->taken - f->told < BATCHES_MAX;
}

static int send_batch(struct weir__subject *subject, const struct weir__parcel *parcel,
                      uint32_t partition, struct weir__window *window, struct weir_error *err)
{
    struct floor *f = floor_of(subject);
    size_t len = HEADER_BYTES + parcel->payload.len;
    uint8_t header[HEADER_BYTES] = {0};
    uint64_t at;
    bool wake;

    (void)err;
    weir__store32(header, weir__crc32c(0, parcel->payload.at, parcel->payload.len));
    weir__store32(header + 4, (uint32_t)parcel->payload.len);
    weir__store32(header + 8, parcel->count);
    weir__store32(header + 12, partition);
    weir__mutex_lock(&f->lock);
    while (!has_room(f, len)) {
        f->full = true;
        weir__cond_wait(&f->emptied, &f->lock, INT64_MAX);
        f->full = false;
    }
    at = f->appended;
    weir__mutex_unlock(&f->lock); /* there is one sender: nobody else moves `appended` */

    weir__store64(header + 16, at);
    put(f, at, header, sizeof header);
    put(f, at + sizeof header, parcel->payload.at, parcel->payload.len);

    weir__mutex_lock(&f->lock);
    f->window = window;
    f->appended = at + len;
    f->ends[f->taken++ % BATCHES_MAX] = f->appended;
    wake = f->idle;
    weir__mutex_unlock(&f->lock);
    if (wake) weir__cond_signal(&f->filled);
    return 0;
}

/* The floor is not asked for this: a raw write of one block is what it would be. */
static int send_wait(struct weir__subject *subject, const struct weir__parcel *parcel,
                     uint32_t partition, struct weir_error *err)
{
    (void)subject;
    (void)parcel;
    (void)partition;
    return weir__fail(err, WEIR_EINVAL, "the floor has no blocking call");
}

/* ---- life ---- */

/* Reserves the file, and writes it once from end to end unless the first pass over it is what is to
 * be measured. */
static int make_file(struct floor *f, const struct weir__subject_options *options,
                     struct weir_error *err)
{
    char path[WEIR__PLACE_PATH_BYTES];
    int errnum;

    if (mkdir(options->dir, 0700) != 0) return weir__fail_errno(err, errno, "mkdir");
    if (snprintf(path, sizeof path, "%s/floor", options->dir) >= (int)sizeof path)
        return weir__fail(err, WEIR_ELIMIT, "the path is too long");
    f->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (f->fd < 0) return weir__fail_errno(err, errno, "open");
    errnum = posix_fallocate(f->fd, 0, FILE_BYTES);
    if (errnum != 0) return weir__fail_errno(err, errnum, "fallocate");
    (void)fcntl(f->fd, F_SETFL, O_DIRECT); /* where the file system can */
    for (uint64_t at = 0; at < FILE_BYTES && !options->unwritten; at += RING_BYTES)
        if (pwrite(f->fd, f->ring, RING_BYTES, (off_t)at) != (ssize_t)RING_BYTES)
            return weir__fail_errno(err, errno, "pwrite");
    if (fsync(f->fd) != 0) return weir__fail_errno(err, errno, "fsync");
    return 0;
}

static int close_floor(struct weir__subject *subject, struct weir_error *err)
{
    struct floor *f = floor_of(subject);

    (void)err;
    weir__mutex_lock(&f->lock);
    f->stopping = true;
    weir__cond_signal(&f->filled);
    weir__mutex_unlock(&f->lock);
    weir__thread_join(&f->committer);
    weir__cond_fini(&f->emptied);
    weir__cond_fini(&f->filled);
    weir__mutex_fini(&f->lock);
    if (f->fd >= 0) close(f->fd);
    free(f->ends);
    free(f->last);
    free(f->ring);
    free(f);
    return 0;
}

static int open_floor(struct weir__subject **out, const struct weir__subject_options *options,
                      struct weir_error *err)
{
    struct floor *f = calloc(1, sizeof *f);
    int rc;

    if (!f) return weir__fail(err, WEIR_ENOMEM, "floor");
    f->base.ops = &weir__subject_floor;
    f->fd = -1;
    weir__mutex_init(&f->lock);
    weir__cond_init(&f->filled);
    weir__cond_init(&f->emptied);
    f->ring = aligned_alloc(BLOCK_BYTES, RING_BYTES);
    f->last = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
    f->ends = calloc(BATCHES_MAX, sizeof *f->ends);
    if (!f->ring || !f->last || !f->ends) {
        close_floor(&f->base, NULL);
        return weir__fail(err, WEIR_ENOMEM, "floor");
    }
    memset(f->ring, 0, RING_BYTES);
    memset(f->last, 0, BLOCK_BYTES);
    rc = make_file(f, options, err);
    if (rc == 0) rc = weir__thread_start(&f->committer, "floor", commit, f, err);
    if (rc != 0) {
        close_floor(&f->base, NULL);
        return weir__wrap(err, rc, "floor");
    }
    *out = &f->base;
    return 0;
}

const struct weir__subject_ops weir__subject_floor = {
    .name = "floor",
    .open = open_floor,
    .send = send_batch,
    .send_wait = send_wait,
    .close = close_floor,
};
