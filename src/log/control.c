/* control.c - the control file: two copies. A change goes over the older one, is synced, and then
 * over the other: at any moment one is whole, and afterwards either can be lost.
 *
 *    0  u32  magic "WCTL"
 *    4  u32  CRC-32C of what follows, to where a copy of version 1 with so many partitions ends
 *    8  u32  format version, 2
 *   12  u32  partitions
 *   16  u64  hub id
 *   24  u64  generation; the copy is generation % 2
 *   32  u64  number of the oldest segment kept
 *   40  u64  number of the segment being appended to
 *   48  u64  watermark
 *   56  u64  position from which on batches carry this epoch
 *   64  u32  epoch
 *   68  u32  zero
 *   72  i64  retention's clock, Unix milliseconds
 *   80  u64  the hub's secret, never 0
 *   88  u64  boot, 96 i64 milliseconds the machine was up, 104 i64 wall clock: when retention's
 *            clock stood so
 *  112  u64  of the segment being appended to: log position of byte 0, 120 u64 bytes of the file,
 *  128  u64  log position of its first batch, 136 u64 the number in its name
 *  144  i64  of retention's clock: milliseconds the machine was off, 152 i64 more of them that the
 *            wall clock claims
 *  160  u32  CRC-32C of what lies behind the end of a copy of version 1; 0: nothing does
 *  164       zeros
 *  192       per partition: u64 next sequence, u64 last offset, i64 last time: as at the watermark
 *
 * A copy takes a multiple of 4096 bytes; the second begins at COPY_AT, which leaves room for the
 * most partitions there can be. The heads are here so that a damaged tail cannot hide which events
 * were lost with it.
 *
 * Version 1 had no secret, ended its fixed part at 80, and its second copy began where the first
 * ended. It is read; the first write goes where none of its copies can lie. A weir that knows only
 * version 1 looks at as many bytes as it would have written: it finds their checksum good, and
 * refuses the version by its number. */
#include "log/control.h"

#include <assert.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/blocks.h"
#include "log/log.h"

#define CONTROL_MAGIC 0x4c544357u
#define CONTROL_VERSION WEIR__LOG_FORMAT
#define FIXED_BYTES_1 80u
#define FIXED_BYTES 192u
#define REST_CRC_AT 160u
#define COPY_AT (64u << 10) /* of the second copy */
#define COPIES_MAX 3        /* places to look: first, second of version 2, second of version 1 */
#define KEEP_MS_MAX (INT64_C(1) << 53) /* far from where adding to it overflows */

void weir__heads_encode(const struct weir__head *heads, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++, to += WEIR__HEAD_BYTES) {
        weir__store64(to, heads[i].next_sequence);
        weir__store64(to + 8, heads[i].last_offset);
        weir__store64(to + 16, (uint64_t)heads[i].last_time_ms);
    }
}

void weir__heads_decode(const uint8_t *from, uint32_t count, struct weir__head *out)
{
    for (uint32_t i = 0; i < count; i++, from += WEIR__HEAD_BYTES) {
        out[i].next_sequence = weir__load64(from);
        out[i].last_offset = weir__load64(from + 8);
        out[i].last_time_ms = (int64_t)weir__load64(from + 16);
    }
}

static size_t copy_bytes(uint32_t version, uint32_t partitions)
{
    uint32_t fixed = version == 1 ? FIXED_BYTES_1 : FIXED_BYTES;

    return weir__round_up(fixed + (uint64_t)partitions * WEIR__HEAD_BYTES, WEIR__FS_BLOCK);
}

int weir__control_resize(struct weir__control *c, uint32_t partitions, struct weir_error *err)
{
    uint8_t *copy = realloc(c->copy, copy_bytes(CONTROL_VERSION, partitions));
    struct weir__head *heads = NULL;

    if (copy) {
        c->copy = copy;
        heads = realloc(c->heads, partitions * sizeof *heads);
    }
    if (!heads) return weir__fail(err, WEIR_ENOMEM, "control file: out of memory");
    if (partitions > c->partitions)
        memset(heads + c->partitions, 0, (partitions - c->partitions) * sizeof *heads);
    c->heads = heads;
    c->partitions = partitions;
    return 0;
}

void weir__control_fini(struct weir__control *c)
{
    free(c->heads);
    free(c->copy);
    c->heads = NULL;
    c->copy = NULL;
}

static_assert(FIXED_BYTES + WEIR__LOG_PARTITIONS_MAX * WEIR__HEAD_BYTES < COPY_AT &&
                  2 * (FIXED_BYTES_1 + WEIR__LOG_PARTITIONS_MAX * WEIR__HEAD_BYTES) < COPY_AT,
              "both copies of version 1, and one of version 2, fit in front of the second");

/* Of the bytes that a copy of version 1 would have, and of those behind them. */
static uint32_t front_crc(const uint8_t *at, uint32_t partitions)
{
    return weir__crc32c(0, at + 8, copy_bytes(1, partitions) - 8);
}

static uint32_t rest_crc(const uint8_t *at, uint32_t partitions)
{
    size_t front = copy_bytes(1, partitions);

    return weir__crc32c(0, at + front, copy_bytes(CONTROL_VERSION, partitions) - front);
}

static void encode(const struct weir__control *c, uint8_t *to, size_t len)
{
    memset(to, 0, len);
    weir__store32(to, CONTROL_MAGIC);
    weir__store32(to + 8, CONTROL_VERSION);
    weir__store32(to + 12, c->partitions);
    weir__store64(to + 16, c->hub_id);
    weir__store64(to + 24, c->generation);
    weir__store64(to + 32, c->first_segment);
    weir__store64(to + 40, c->last_segment);
    weir__store64(to + 48, c->watermark);
    weir__store64(to + 56, c->epoch_start);
    weir__store32(to + 64, c->epoch);
    weir__store64(to + 72, (uint64_t)c->keep.keep_ms);
    weir__store64(to + 80, c->secret);
    weir__store64(to + 88, c->keep.boot);
    weir__store64(to + 96, (uint64_t)c->keep.up_ms);
    weir__store64(to + 104, (uint64_t)c->keep.wall_ms);
    weir__store64(to + 112, c->active.base);
    weir__store64(to + 120, c->active.capacity);
    weir__store64(to + 128, c->active.data);
    weir__store64(to + 136, c->active.name);
    weir__store64(to + 144, (uint64_t)c->keep.off_ms);
    weir__store64(to + 152, (uint64_t)c->keep.owed_ms);
    weir__heads_encode(c->heads, c->partitions, to + FIXED_BYTES);
    weir__store32(to + REST_CRC_AT, rest_crc(to, c->partitions));
    weir__store32(to + 4, front_crc(to, c->partitions));
}

/* ---- reading ---- */

enum copy_state { COPY_BAD, COPY_GOOD, COPY_OTHER_VERSION };

struct copy {
    enum copy_state state;
    uint32_t version;
    uint64_t generation;
    const uint8_t *at;
};

/* Judges the bytes at a place where a copy may begin; COPY_AT bytes or more follow there. */
static struct copy look(const uint8_t *at)
{
    struct copy c = {.at = at,
                     .version = weir__load32(at + 8),
                     .generation = weir__load64(at + 24)};
    uint32_t partitions = weir__load32(at + 12);

    if (weir__load32(at) != CONTROL_MAGIC || partitions == 0 ||
        partitions > WEIR__LOG_PARTITIONS_MAX || weir__load32(at + 4) != front_crc(at, partitions))
        return c;
    if (c.version == 1)
        c.state = COPY_GOOD;
    else if (c.version != CONTROL_VERSION)
        c.state = COPY_OTHER_VERSION;
    else if (weir__load32(at + REST_CRC_AT) == rest_crc(at, partitions))
        c.state = COPY_GOOD;
    return c;
}

static bool bad_time(int64_t ms)
{
    return ms < 0 || ms > KEEP_MS_MAX;
}

/* What no log can have come to, though the checksum is good. */
static bool sensible(const struct weir__control *c)
{
    for (uint32_t i = 0; i < c->partitions; i++)
        if (c->heads[i].next_sequence > WEIR__LOG_SEQUENCE_MAX || c->heads[i].last_time_ms < 0)
            return false;
    return c->first_segment > 0 && c->first_segment <= c->last_segment &&
           c->last_segment <= WEIR__LOG_SEGMENT_NUMBER_MAX && c->watermark >= WEIR__LOG_ORIGIN &&
           c->watermark <= WEIR__LOG_POSITION_MAX && c->active.base <= WEIR__LOG_POSITION_MAX &&
           c->active.capacity <= WEIR__LOG_POSITION_MAX &&
           c->epoch < UINT32_MAX - WEIR__CONTROL_EPOCH_STEP && !bad_time(c->keep.keep_ms) &&
           !bad_time(c->keep.off_ms) && !bad_time(c->keep.owed_ms) &&
           (c->version == 1 || c->secret != 0);
}

static int decode(const struct copy *copy, struct weir__control *c, struct weir_error *err)
{
    const uint8_t *at = copy->at;
    int rc = weir__control_resize(c, weir__load32(at + 12), err);

    if (rc != 0) return rc;
    if (c->hub_id == 0) c->hub_id = weir__load64(at + 16);
    if (weir__load64(at + 16) != c->hub_id)
        return weir__fail(err, WEIR_EINVAL, "control file is of another hub");
    c->version = copy->version;
    c->generation = copy->generation;
    c->first_segment = weir__load64(at + 32);
    c->last_segment = weir__load64(at + 40);
    c->watermark = weir__load64(at + 48);
    c->epoch_start = weir__load64(at + 56);
    c->epoch = weir__load32(at + 64);
    c->keep = (struct weir__keep_time){.keep_ms = (int64_t)weir__load64(at + 72)};
    c->secret = 0;
    c->stale_at = copy->version == 1 ? copy_bytes(1, c->partitions) : 0;
    c->active = (struct weir__control_active){0};
    if (copy->version > 1) {
        c->secret = weir__load64(at + 80);
        c->keep.boot = weir__load64(at + 88);
        c->keep.up_ms = (int64_t)weir__load64(at + 96);
        c->keep.wall_ms = (int64_t)weir__load64(at + 104);
        c->active = (struct weir__control_active){weir__load64(at + 112), weir__load64(at + 120),
                                                  weir__load64(at + 128), weir__load64(at + 136)};
        c->keep.off_ms = (int64_t)weir__load64(at + 144);
        c->keep.owed_ms = (int64_t)weir__load64(at + 152);
    }
    weir__heads_decode(at + (copy->version == 1 ? FIXED_BYTES_1 : FIXED_BYTES), c->partitions,
                       c->heads);
    if (sensible(c)) return 0;
    return weir__fail(err, WEIR_ECORRUPT, "control file contradicts itself");
}

/* Both copies; what cannot be read, and what lies behind the end, are zeros. */
static int read_copies(struct weir__file *f, uint8_t *to, struct weir_error *err)
{
    size_t len = (size_t)2 * COPY_AT, got = 0;
    struct weir__bad_blocks bad = {0};
    int rc = weir__blocks_read(f, to, len, 0, &got, &bad, err);

    if (rc == 0) memset(to + got, 0, len - got);
    return rc;
}

/* Version 1 kept its second copy behind the first, whose length depends on the partitions; when the
 * first is gone it is looked for at every block. */
static struct copy second_of_version_1(const uint8_t *file)
{
    size_t longest = copy_bytes(1, WEIR__LOG_PARTITIONS_MAX);

    for (size_t at = WEIR__FS_BLOCK; at <= longest; at += WEIR__FS_BLOCK) {
        struct copy c = look(file + at);

        if (c.state == COPY_GOOD && c.version == 1 && copy_bytes(1, weir__load32(c.at + 12)) == at)
            return c;
    }
    return (struct copy){0};
}

/* The newest good copy of those that were not tried yet. Of two that are as new, the second of
 * version 1 was written later: see unfinished. */
static struct copy *newest(struct copy copies[COPIES_MAX])
{
    struct copy *best = NULL;

    for (int i = 0; i < COPIES_MAX; i++)
        if (copies[i].state == COPY_GOOD && (!best || copies[i].generation >= best->generation))
            best = &copies[i];
    return best;
}

/* Whether an upgrade ended after its first write. Nothing was appended then, and an older weir may
 * have gone on with the copies of version 1, which is all that it sees. */
static bool unfinished(const struct copy copies[COPIES_MAX])
{
    return copies[0].state == COPY_GOOD && copies[0].version == 1 && copies[1].state == COPY_GOOD;
}

static int choose(struct copy copies[COPIES_MAX], struct weir__control *c, int *out_bad_copies,
                  struct weir_error *err)
{
    struct copy *best;
    int good = 0;

    for (int i = 0; i < COPIES_MAX; i++) {
        if (copies[i].state == COPY_OTHER_VERSION)
            return weir__fail(err, WEIR_EVERSION,
                              "log format version %u is not known here (this weir writes %u)",
                              copies[i].version, CONTROL_VERSION);
        good += copies[i].state == COPY_GOOD;
    }
    while ((best = newest(copies)) != NULL) {
        int rc = decode(best, c, err);

        *out_bad_copies = good < 2; /* one is read */
        if (rc != WEIR_ECORRUPT) return rc;
        best->state = COPY_BAD;
        good--;
    }
    *out_bad_copies = 2;
    return weir__fail(err, WEIR_ECORRUPT, "both copies in the control file are damaged");
}

int weir__control_read(struct weir__file *f, struct weir__control *c, int *out_bad_copies,
                       struct weir_error *err)
{
    uint8_t *file = malloc((size_t)2 * COPY_AT);
    struct copy copies[COPIES_MAX];
    int rc;

    *out_bad_copies = 0;
    if (!file) return weir__fail(err, WEIR_ENOMEM, "reading control file: out of memory");
    rc = read_copies(f, file, err);
    if (rc == 0) {
        copies[0] = look(file);
        copies[1] = look(file + COPY_AT);
        copies[2] = second_of_version_1(file);
        if (unfinished(copies)) copies[1].state = COPY_BAD;
        rc = choose(copies, c, out_bad_copies, err);
        if (rc == 0 && copies[2].at) c->stale_at = (uint64_t)(copies[2].at - file);
    }
    free(file);
    return rc;
}

/* ---- writing ---- */

/* The second copy of version 1, which could pass for the state of the log once both newer copies
 * have gone bad. Not before the first place has a copy of version 2 on disk: until then it may be
 * the newest that counts. So it goes with a write to the second place that is not the first of all.
 * Where the longer copy in the first place lies over it, it is gone. */
static int erase_stale(struct weir__file *f, struct weir__control *c, size_t len,
                       struct weir_error *err)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    struct weir__bytes part = weir__bytes_of(zeros, sizeof zeros);
    int rc = 0;

    if (c->stale_at == 0 || c->version == 1 || c->generation % 2 == 0) return 0;
    if (c->stale_at >= len) rc = f->ops->write(f, &part, 1, c->stale_at, err);
    if (rc == 0) c->stale_at = 0;
    return rc;
}

int weir__control_write(struct weir__file *f, struct weir__control *c, bool sync,
                        struct weir_error *err)
{
    size_t len = copy_bytes(CONTROL_VERSION, c->partitions);
    uint8_t *copy = c->copy ? c->copy : malloc(len);
    uint64_t before = c->generation;
    struct weir__bytes part;
    int rc;

    assert(c->secret != 0);
    if (!copy) return weir__fail(err, WEIR_ENOMEM, "writing control file: out of memory");
    c->generation++;
    if (c->version == 1) c->generation |= 1; /* away from both copies of version 1 */
    encode(c, copy, len);
    part = weir__bytes_of(copy, len);
    rc = erase_stale(f, c, len, err);
    if (rc == 0) rc = f->ops->write(f, &part, 1, (c->generation % 2) * COPY_AT, err);
    if (rc == 0 && sync) rc = f->ops->sync(f, err);
    if (rc == 0)
        c->version = CONTROL_VERSION;
    else
        c->generation = before;
    if (copy != c->copy) free(copy);
    return rc == 0 ? 0 : weir__wrap(err, rc, "writing control file");
}
