/* backup_copy.c - copying the files of a log, and checking the batches of a copy.
 *
 * A segment has batches in front, an index and its second header at the end, and between them space
 * that was never written, or that still has what expired before the file was used again. Only the
 * two ends count. */
#include <stdlib.h>

#include "base/crc.h"
#include "log/backup.h"
#include "log/state.h"

#define BUFFER_BYTES (4u << 20)
#define MARK_BYTES (64u << 10)

/* ---- measuring ---- */

/* Where the index of a sealed segment begins in its file; where the second header does when the
 * index is not stored. */
static uint64_t index_at(struct weir__file *f, const struct weir__segment *seg)
{
    struct weir__index_source s = {.file = f,
                                   .stamp = weir__segment_stamp(seg),
                                   .end = weir__backup_limit(seg) - seg->h.base,
                                   .partitions = seg->h.partitions};
    uint64_t bytes = 0;

    return weir__index_bytes(&s, &bytes, NULL) == 0 ? s.end - bytes : s.end;
}

static uint32_t crc_of_range(struct weir__file *f, uint64_t from, uint64_t to, uint8_t *room)
{
    size_t got = 0;

    if (to - from > MARK_BYTES) from = to - MARK_BYTES;
    if (f->ops->read(f, room, to - from, from, &got, NULL) != 0) return 0;
    return weir__crc32c(0, room, got);
}

static int make_mark(struct weir__file *f, struct weir__backup_extent *x, struct weir_error *err)
{
    uint8_t *room = malloc(MARK_BYTES);

    if (!room) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    x->mark = (uint64_t)crc_of_range(f, 0, x->used, room) << 32 |
              crc_of_range(f, x->tail, x->bytes, room);
    free(room);
    return 0;
}

/* Of a file that was cut. Its last block is copied, which gives the copy its length. */
static void limit_extent(struct weir__backup_extent *x)
{
    if (x->used > x->bytes) x->used = x->bytes;
    if (x->tail >= x->bytes)
        x->tail = x->bytes ? weir__round_down(x->bytes - 1, WEIR__FS_BLOCK) : 0;
    if (x->tail < x->used) x->tail = x->used;
}

int weir__backup_measure(const struct weir__backup_log *log, const struct weir__segment *seg,
                         uint64_t end, bool sealed, struct weir__backup_extent *out,
                         struct weir_error *err)
{
    struct weir__file *f = NULL;
    int rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &f, err);

    *out = (struct weir__backup_extent){0};
    if (rc == 0) rc = f->ops->size(f, &out->bytes, err);
    out->used = out->tail = out->bytes;
    if (rc == 0 && seg->h.number != 0) {
        out->used = end - seg->h.base;
        out->tail = sealed ? index_at(f, seg) : weir__backup_limit(seg) - seg->h.base;
        limit_extent(out);
    }
    if (rc == 0) rc = make_mark(f, out, err);
    weir__file_close(f);
    return rc;
}

/* ---- copying ---- */

struct copying {
    struct weir__file *from, *to; /* to NULL: only reading */
    uint8_t *buffer;
    const struct weir__backup_extent *extent;
    const struct weir__backup_sink *sink;
    struct weir__backup_copied *done;
};

/* What the disk does not give, block by block, becomes zeros. */
static int read_bad(struct copying *c, uint64_t at, size_t len, size_t *out_got,
                    struct weir_error *err)
{
    *out_got = 0;
    for (size_t i = 0; i < len; i += WEIR__FS_BLOCK) {
        size_t got = 0;
        int rc = c->from->ops->read(c->from, c->buffer + i, WEIR__FS_BLOCK, at + i, &got, err);

        if (rc != 0 && rc != WEIR_EIO) return rc;
        if (rc == WEIR_EIO) {
            memset(c->buffer + i, 0, WEIR__FS_BLOCK);
            c->done->unreadable += WEIR__FS_BLOCK;
            got = WEIR__FS_BLOCK;
        }
        *out_got = i + got;
        if (got < WEIR__FS_BLOCK) break;
    }
    return 0;
}

static bool is_zero(const uint8_t *at, size_t len)
{
    return len == 0 || (at[0] == 0 && memcmp(at, at + 1, len - 1) == 0);
}

/* Writes what is not zero, in runs as long as they go. */
static int write_runs(struct copying *c, uint64_t at, size_t len, struct weir_error *err)
{
    size_t from = 0;
    int rc = 0;

    while (rc == 0 && from < len) {
        size_t to, block = len - from < WEIR__FS_BLOCK ? len - from : WEIR__FS_BLOCK;
        bool last = at + from + block == c->extent->bytes; /* gives the file its size */
        struct weir__bytes part;

        if (!last && is_zero(c->buffer + from, block)) {
            from += block;
            continue;
        }
        for (to = from + block; to < len; to += block) {
            block = len - to < WEIR__FS_BLOCK ? len - to : WEIR__FS_BLOCK;
            if (is_zero(c->buffer + to, block)) break;
        }
        part = weir__bytes_of(c->buffer + from, (to < len ? to : len) - from);
        rc = c->to->ops->write(c->to, &part, 1, at + from, err);
        from = to;
    }
    return rc;
}

/* One buffer full, from a place that is a multiple of a block; *at moves. The bytes in front of
 * `from` are skipped. */
static int copy_piece(struct copying *c, uint64_t *at, uint64_t to, struct weir_error *err)
{
    uint64_t begin = weir__round_down(*at, WEIR__FS_BLOCK);
    size_t skip = *at - begin, got = 0, want = BUFFER_BYTES;
    int rc;

    if (weir__round_up(to - begin, WEIR__FS_BLOCK) < want)
        want = weir__round_up(to - begin, WEIR__FS_BLOCK);
    c->done->at_source = true;
    rc = c->from->ops->read(c->from, c->buffer, want, begin, &got, err);
    if (rc == WEIR_EIO) rc = read_bad(c, begin, want, &got, err);
    if (rc != 0) return rc;
    if (got > to - begin) got = to - begin;
    if (got <= skip) return weir__fail(err, WEIR_ECORRUPT, "the file is too short");
    c->done->at_source = false;
    if (skip > 0) memmove(c->buffer, c->buffer + skip, got - skip);
    if (c->sink) rc = c->sink->take(c->sink->user, c->buffer, got - skip, err);
    if (rc == 0 && c->to) rc = write_runs(c, *at, got - skip, err);
    *at = begin + got;
    return rc;
}

static int count_stray(void *user, const void *at, size_t len, struct weir_error *err)
{
    struct weir__backup_copied *done = user;

    (void)err;
    if (!is_zero(at, len)) done->stray += len;
    return 0;
}

static int copy_range(struct copying *c, uint64_t from, uint64_t to, struct weir_error *err)
{
    int rc = 0;

    while (rc == 0 && from < to) rc = copy_piece(c, &from, to, err);
    return rc;
}

static int copy_parts(struct copying *c, struct weir_error *err)
{
    const struct weir__backup_extent *x = c->extent;
    struct weir__backup_sink stray = {count_stray, c->done};
    struct copying gap = *c;
    int rc = copy_range(c, 0, x->used, err);

    gap.sink = &stray;
    if (rc == 0 && !c->to) rc = copy_range(&gap, x->used, x->tail, err);
    if (rc == 0) rc = copy_range(c, x->tail, x->bytes, err);
    return rc;
}

/* A file that is copied may grow meanwhile. */
static int check_size(struct weir__file *f, const struct weir__backup_extent *x, bool copied,
                      struct weir_error *err)
{
    uint64_t bytes = 0;
    int rc = f->ops->size(f, &bytes, err);

    if (rc != 0 || bytes == x->bytes || (copied && bytes > x->bytes)) return rc;
    return weir__fail(err, WEIR_ECORRUPT, "the file has %llu bytes instead of %llu",
                      (unsigned long long)bytes, (unsigned long long)x->bytes);
}

int weir__backup_copy(struct weir__fs *fs, const char *from, const char *to,
                      const struct weir__backup_extent *x, const struct weir__backup_sink *sink,
                      struct weir__backup_copied *out, struct weir_error *err)
{
    struct copying c = {.extent = x, .sink = sink, .done = out};
    int rc;

    *out = (struct weir__backup_copied){0};
    c.buffer = aligned_alloc(WEIR__FS_BLOCK, BUFFER_BYTES);
    if (!c.buffer) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    rc = fs->ops->open(fs, from, WEIR__FS_READ_ONLY, &c.from, err);
    if (rc == 0) rc = check_size(c.from, x, to != NULL, err);
    out->at_source = rc != 0;
    if (rc == 0 && to) rc = fs->ops->open(fs, to, WEIR__FS_CREATE, &c.to, err);
    if (rc == 0) rc = copy_parts(&c, err);
    if (rc == 0 && to) rc = c.to->ops->sync(c.to, err);
    weir__file_close(c.from);
    weir__file_close(c.to);
    free(c.buffer);
    return rc == 0 ? 0 : weir__wrap(err, rc, to ? "copying %s" : "reading %s", from);
}

/* ---- checking ---- */

struct verifying {
    const struct weir__segment *segment;
    void (*fn)(const struct weir__backup_finding *, void *user);
    void *user;
};

static void find(const struct verifying *v, uint64_t from, uint64_t to, const char *text)
{
    struct weir__backup_finding f = {from - v->segment->h.base, to - from, text, false};

    v->fn(&f, v->user);
}

static int verify_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    (void)err;
    if (!b->body_good)
        find(user, b->h.position, b->h.position + weir__batch_bytes(b->h.body_bytes),
             "a batch fails its checksum");
    return 0;
}

static int verify_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    (void)err;
    find(user, from, to, "no batch can be read");
    return 0;
}

static int verify_header(const struct verifying *v, struct weir__file *f, struct weir_error *err)
{
    const struct weir__segment *seg = v->segment;
    struct weir__backup_finding one = {0, seg->data - seg->h.base, "one of two headers", true};
    int bad = 0, rc = 0;

    if (!seg->lost) rc = weir__segment_check_copies(f, &seg->h, &bad, err);
    if (rc == 0 && (seg->lost || bad > 1)) find(v, seg->h.base, seg->data, "no header");
    if (rc == 0 && !seg->lost && bad == 1) v->fn(&one, v->user);
    return rc;
}

/* Walks the batches of a file in front of `end`. */
static int walk(struct weir__file *file, const struct weir__segment *seg, uint64_t end,
                const struct weir__scan_calls *calls, struct weir_error *err)
{
    struct weir__scan scan = {.file = file,
                              .segment = seg,
                              .limit = end,
                              .proof = end < weir__backup_limit(seg) ? end : seg->data,
                              .epoch_start = UINT64_MAX,
                              .epoch = UINT32_MAX,
                              .partitions = WEIR__LOG_PARTITIONS_MAX};
    enum weir__scan_end how;
    uint64_t stop;
    int rc = weir__scan_init(&scan, err);

    if (rc == 0) rc = weir__scan_run(&scan, seg->data, calls, &stop, &how, err);
    weir__scan_fini(&scan);
    return rc;
}

int weir__backup_verify(struct weir__fs *fs, const char *path, const struct weir__segment *seg,
                        uint64_t end, void (*fn)(const struct weir__backup_finding *, void *user),
                        void *user, struct weir_error *err)
{
    struct verifying v = {seg, fn, user};
    struct weir__scan_calls calls = {verify_batch, verify_damage, &v};
    struct weir__file *file = NULL;
    int rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &file, err);

    if (rc == 0) rc = verify_header(&v, file, err);
    if (rc == 0) rc = walk(file, seg, end, &calls, err);
    weir__file_close(file);
    return rc == 0 ? 0 : weir__wrap(err, rc, "checking %s", path);
}

/* ---- whether two segments are of one line ---- */

struct wanted {
    struct weir__head *heads;
    uint32_t partitions;
};

static int take_out(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    const struct wanted *w = user;
    struct weir__head is = weir__batch_head(&b->h), *head;

    (void)err;
    if (b->h.partition >= w->partitions) return 0;
    head = &w->heads[b->h.partition];
    if (head->last_offset == is.last_offset && head->last_time_ms == is.last_time_ms)
        *head = (struct weir__head){0};
    return 0;
}

static int stop_at_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    (void)user;
    return weir__fail(err, WEIR_ECORRUPT, "bytes %llu to %llu cannot be read",
                      (unsigned long long)from, (unsigned long long)to);
}

static int open_copy(const struct weir__backup_log *log, const char *name,
                     struct weir__segment *seg, struct weir__file **out, struct weir_error *err)
{
    int rc = weir__backup_segment_read(log, name, seg, err);

    return rc == 0 ? weir__log_open_name(log->fs, log->dir, name, WEIR__FS_READ_ONLY, out, err)
                   : rc;
}

int weir__backup_heads(const struct weir__backup_log *log, const char *name, uint32_t partitions,
                       struct weir__head *out, struct weir_error *err)
{
    struct weir__file *file = NULL;
    struct weir__segment seg;
    int rc = open_copy(log, name, &seg, &file, err);

    if (rc == 0) rc = weir__segment_read_heads(file, &seg.h, partitions, out, NULL, err);
    weir__file_close(file);
    return rc;
}

int weir__backup_lacks(const struct weir__backup_log *log, const char *name, uint64_t end,
                       uint32_t partitions, struct weir__head *heads, bool *out,
                       struct weir_error *err)
{
    struct wanted w = {heads, partitions};
    struct weir__scan_calls calls = {take_out, stop_at_damage, &w};
    struct weir__file *file = NULL;
    struct weir__segment seg;
    int rc = open_copy(log, name, &seg, &file, err);

    *out = false;
    if (rc == 0) rc = walk(file, &seg, end, &calls, err);
    weir__file_close(file);
    for (uint32_t i = 0; rc == 0 && i < partitions; i++) *out |= heads[i].last_offset >= seg.data;
    return rc;
}
