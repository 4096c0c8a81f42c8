/* backup_manifest.c - the manifest of a backup, twice: manifest.0 and manifest.1.
 *
 *    0  u32  magic "WBAK"
 *    4  u32  format version, 1
 *    8  u64  bytes in all
 *   16       SHA-256 of everything from byte 48 on
 *   48  u64  generation; 0: no backup was finished yet. The first copy of it to be written is
 *            manifest.(generation % 2), the other follows at the end of the run
 *   56  i64  when the run began, 64 i64 when the last hub's end was taken: Unix milliseconds
 *   72  u64  bytes of the catalogue, 80 u64 hubs
 *   88       the folder's id, 32 characters or zeros
 *  120  u64  zero
 *  128       the catalogue as in catalog_codec.c, then zeros up to a multiple of 8
 *            per hub, in u64 or i64 each: id, version of the control file that was read, end, events,
 *              next name, then for the control file: partitions, secret, oldest segment, newest,
 *              watermark, start of the epoch, epoch, retention's clock, wall clock, up time, boot,
 *              time off, time owed, and of the newest segment base, capacity, first batch, name; then
 *              segments, files;
 *            its heads as in control.c, one per partition;
 *            its segments, 144 bytes each, in u64: number, base, end of the one before, end, epoch,
 *              name, bytes of the file, used, tail, mark, damaged places, three zeros; then SHA-256;
 *            its other files, 88 bytes each: name, zeros up to 40, u64 number of the aux file, u64
 *              bytes; then SHA-256
 *
 * The manifest alone says what the backup holds. The control files, the catalogue and the id that
 * lie beside it follow from it; they are there so that a backup can be inspected like a folder. */
#include "hub/backup_manifest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#define MANIFEST_MAGIC 0x4b414257u
#define HEADER_BYTES 128u
#define DIGEST_AT 16u
#define DIGEST_FROM 48u
#define ID_AT 88u
#define HUB_BYTES (24u * 8)
#define EXTRA_BYTES (WEIR__MANIFEST_NAME_BYTES + 16u + WEIR__DIGEST_BYTES)
#define EXTRAS_MAX 1000u
#define SEGMENT_BYTES 144u
#define SEGMENTS_MAX 1000000u
#define COPIES 2

/* ---- SHA-256 ---- */

int weir__digest_begin(struct weir__digest *d, struct weir_error *err)
{
    EVP_MD_CTX *state = EVP_MD_CTX_new();

    d->state = state;
    if (state && EVP_DigestInit_ex(state, EVP_sha256(), NULL) == 1) return 0;
    return weir__fail(err, WEIR_ENOMEM, "starting a checksum: out of memory");
}

int weir__digest_add(void *digest, const void *at, size_t len, struct weir_error *err)
{
    const struct weir__digest *d = digest;

    if (EVP_DigestUpdate(d->state, at, len) == 1) return 0;
    return weir__fail(err, WEIR_EFAILED, "a checksum could not be made");
}

void weir__digest_end(struct weir__digest *d, uint8_t out[WEIR__DIGEST_BYTES])
{
    unsigned len = WEIR__DIGEST_BYTES;

    memset(out, 0, WEIR__DIGEST_BYTES);
    if (d->state) EVP_DigestFinal_ex(d->state, out, &len);
    EVP_MD_CTX_free(d->state);
    d->state = NULL;
}

static int digest_of(const uint8_t *at, size_t len, uint8_t out[WEIR__DIGEST_BYTES],
                     struct weir_error *err)
{
    struct weir__digest d = {0};
    int rc = weir__digest_begin(&d, err);

    if (rc == 0) rc = weir__digest_add(&d, at, len, err);
    weir__digest_end(&d, out);
    return rc;
}

/* ---- the value ---- */

static int fail_memory(struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOMEM, "out of memory for a manifest");
}

void weir__manifest_init(struct weir__manifest *m)
{
    *m = (struct weir__manifest){0};
    weir__catalog_init(&m->catalog);
}

void weir__manifest_hub_fini(struct weir__manifest_hub *hub)
{
    weir__control_fini(&hub->control);
    free(hub->segments);
    free(hub->extras);
    *hub = (struct weir__manifest_hub){0};
}

void weir__manifest_fini(struct weir__manifest *m)
{
    for (uint32_t i = 0; i < m->hub_count; i++) weir__manifest_hub_fini(&m->hubs[i]);
    free(m->hubs);
    weir__catalog_fini(&m->catalog);
    weir__manifest_init(m);
}

struct weir__manifest_hub *weir__manifest_hub(const struct weir__manifest *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->hub_count; i++)
        if (m->hubs[i].id == id) return &m->hubs[i];
    return NULL;
}

int weir__manifest_hub_copy(struct weir__manifest_hub *out, const struct weir__manifest_hub *hub,
                            struct weir_error *err)
{
    size_t heads = hub->control.partitions * sizeof *hub->control.heads;
    size_t segments = hub->segment_count * sizeof *hub->segments;
    size_t extras = hub->extra_count * sizeof *hub->extras;

    *out = *hub;
    out->control.copy = NULL;
    out->control.heads = malloc(heads ? heads : 1);
    out->segments = malloc(segments ? segments : 1);
    out->extras = malloc(extras ? extras : 1);
    if (!out->control.heads || !out->segments || !out->extras) {
        weir__manifest_hub_fini(out);
        return fail_memory(err);
    }
    memcpy(out->control.heads, hub->control.heads, heads);
    memcpy(out->segments, hub->segments, segments);
    if (extras) memcpy(out->extras, hub->extras, extras);
    return 0;
}

void weir__manifest_sum(const struct weir__manifest *m, struct weir__backup_result *out)
{
    out->hubs = m->hub_count;
    out->moment_ms = m->moment_ms;
    out->events = 0;
    for (uint32_t i = 0; i < m->hub_count; i++) {
        const struct weir__control *c = &m->hubs[i].control;

        out->events += m->hubs[i].events;
        for (uint32_t p = 0; p < c->partitions; p++)
            if (c->heads[p].last_time_ms > out->last_time_ms)
                out->last_time_ms = c->heads[p].last_time_ms;
    }
}

/* ---- one walk for both ways ---- */

struct cursor {
    struct weir__buf *out; /* NULL: reading */
    const uint8_t *at, *end;
    bool bad;  /* no room, or nothing left */
    bool full; /* there would be more than can be, or else: no memory */
};

static void stop_for(struct cursor *c, size_t len)
{
    c->bad = true;
    c->full |= len > c->out->max - c->out->len;
}

static void put(struct cursor *c, const void *at, size_t len)
{
    if (!weir__buf_add(c->out, at, len)) stop_for(c, len);
}

/* Writes v and gives it back, or reads. */
static uint64_t pass(struct cursor *c, uint64_t v)
{
    uint8_t bytes[8];

    weir__store64(bytes, v);
    if (c->out) {
        put(c, bytes, sizeof bytes);
        return v;
    }
    if (c->bad || c->end - c->at < 8) {
        c->bad = true;
        return 0;
    }
    c->at += 8;
    return weir__load64(c->at - 8);
}

static int64_t pass_signed(struct cursor *c, int64_t v)
{
    return (int64_t)pass(c, (uint64_t)v);
}

static uint32_t pass_small(struct cursor *c, uint32_t v)
{
    uint64_t got = pass(c, v);

    if (got > UINT32_MAX) c->bad = true;
    return (uint32_t)got;
}

static void pass_hub(struct cursor *c, struct weir__manifest_hub *hub)
{
    struct weir__control *k = &hub->control;

    hub->id = pass(c, hub->id);
    hub->source_version = pass(c, hub->source_version);
    hub->end = pass(c, hub->end);
    hub->events = pass(c, hub->events);
    hub->next_name = pass(c, hub->next_name);
    k->partitions = pass_small(c, k->partitions);
    k->secret = pass(c, k->secret);
    k->first_segment = pass(c, k->first_segment);
    k->last_segment = pass(c, k->last_segment);
    k->watermark = pass(c, k->watermark);
    k->epoch_start = pass(c, k->epoch_start);
    k->epoch = pass_small(c, k->epoch);
    k->keep.keep_ms = pass_signed(c, k->keep.keep_ms);
    k->keep.wall_ms = pass_signed(c, k->keep.wall_ms);
    k->keep.up_ms = pass_signed(c, k->keep.up_ms);
    k->keep.boot = pass(c, k->keep.boot);
    k->keep.off_ms = pass_signed(c, k->keep.off_ms);
    k->keep.owed_ms = pass_signed(c, k->keep.owed_ms);
    k->active.base = pass(c, k->active.base);
    k->active.capacity = pass(c, k->active.capacity);
    k->active.data = pass(c, k->active.data);
    k->active.name = pass(c, k->active.name);
    hub->segment_count = pass_small(c, hub->segment_count);
    hub->extra_count = pass_small(c, hub->extra_count);
}

/* Whole words. */
static void pass_bytes(struct cursor *c, void *bytes, size_t len)
{
    uint8_t *at = bytes;

    for (size_t i = 0; i < len; i += 8) weir__store64(at + i, pass(c, weir__load64(at + i)));
}

static void pass_extra(struct cursor *c, struct weir__manifest_extra *extra)
{
    pass_bytes(c, extra->name, sizeof extra->name);
    extra->aux = pass(c, extra->aux);
    extra->bytes = pass(c, extra->bytes);
    pass_bytes(c, extra->digest, sizeof extra->digest);
}

static void pass_segment(struct cursor *c, struct weir__manifest_segment *seg)
{
    seg->number = pass(c, seg->number);
    seg->base = pass(c, seg->base);
    seg->previous_end = pass(c, seg->previous_end);
    seg->end = pass(c, seg->end);
    seg->epoch = pass(c, seg->epoch);
    seg->name = pass(c, seg->name);
    seg->extent.bytes = pass(c, seg->extent.bytes);
    seg->extent.used = pass(c, seg->extent.used);
    seg->extent.tail = pass(c, seg->extent.tail);
    seg->extent.mark = pass(c, seg->extent.mark);
    seg->damaged = pass(c, seg->damaged);
    for (int zero = 0; zero < 3; zero++) pass(c, 0);
    pass_bytes(c, seg->digest, sizeof seg->digest);
}

/* ---- encoding ---- */

static void encode_hub(struct cursor *c, const struct weir__manifest_hub *hub)
{
    struct weir__manifest_hub copy = *hub;
    size_t heads_bytes = (size_t)hub->control.partitions * WEIR__HEAD_BYTES;
    uint8_t *heads;

    pass_hub(c, &copy);
    heads = weir__buf_room(c->out, heads_bytes);
    if (!heads) {
        stop_for(c, heads_bytes);
        return;
    }
    weir__heads_encode(hub->control.heads, hub->control.partitions, heads);
    c->out->len += heads_bytes;
    for (uint32_t i = 0; i < hub->segment_count; i++) {
        struct weir__manifest_segment seg = hub->segments[i];

        pass_segment(c, &seg);
    }
    for (uint32_t i = 0; i < hub->extra_count; i++) {
        struct weir__manifest_extra extra = hub->extras[i];

        pass_extra(c, &extra);
    }
}

/* Into zeros. */
static void encode_header(const struct weir__manifest *m, uint64_t catalog_bytes, uint8_t *to)
{
    weir__store32(to, MANIFEST_MAGIC);
    weir__store32(to + 4, WEIR__MANIFEST_VERSION);
    weir__store64(to + 48, m->generation);
    weir__store64(to + 56, (uint64_t)m->began_ms);
    weir__store64(to + 64, (uint64_t)m->moment_ms);
    weir__store64(to + 72, catalog_bytes);
    weir__store64(to + 80, m->hub_count);
    memcpy(to + ID_AT, m->id, strlen(m->id));
}

int weir__manifest_encode(const struct weir__manifest *m, struct weir__buf *buf,
                          struct weir_error *err)
{
    static const uint8_t zeros[8];
    struct cursor c = {.out = buf};
    struct weir__buf catalog;
    uint8_t header[HEADER_BYTES] = {0};
    int rc;

    weir__buf_clear(buf);
    weir__buf_init(&catalog, 2 * (size_t)WEIR__CATALOG_BYTES_MAX);
    rc = weir__catalog_encode(&m->catalog, &catalog, err);
    if (rc != 0) goto out;
    encode_header(m, catalog.len, header);
    put(&c, header, sizeof header);
    put(&c, catalog.at, catalog.len);
    put(&c, zeros, weir__round_up(catalog.len, 8) - catalog.len);
    for (uint32_t i = 0; !c.bad && i < m->hub_count; i++) encode_hub(&c, &m->hubs[i]);
    if (c.bad) {
        rc = c.full ? weir__fail(err, WEIR_ELIMIT, "the manifest would have more than %zu bytes",
                                 buf->max)
                    : fail_memory(err);
        goto out;
    }
    weir__store64(buf->at + 8, buf->len);
    rc = digest_of(buf->at + DIGEST_FROM, buf->len - DIGEST_FROM, buf->at + DIGEST_AT, err);
out:
    weir__buf_fini(&catalog);
    return rc;
}

/* ---- decoding ---- */

static bool plausible(const struct weir__manifest_segment *seg)
{
    const struct weir__backup_extent *x = &seg->extent;

    return x->used <= x->tail && x->tail <= x->bytes && x->bytes > 0 && x->bytes <= INT64_MAX;
}

/* 0, WEIR_ECORRUPT or WEIR_ENOMEM. */
static int decode_extras(struct cursor *c, struct weir__manifest_hub *hub)
{
    hub->extras = calloc(hub->extra_count ? hub->extra_count : 1, sizeof *hub->extras);
    if (!hub->extras) return WEIR_ENOMEM;
    for (uint32_t i = 0; i < hub->extra_count; i++) {
        struct weir__manifest_extra *extra = &hub->extras[i];

        pass_extra(c, extra);
        if (extra->name[WEIR__MANIFEST_NAME_BYTES - 1] != '\0' || strchr(extra->name, '/'))
            return WEIR_ECORRUPT;
    }
    return 0;
}

static bool counts_fit(const struct cursor *c, const struct weir__manifest_hub *hub,
                       uint32_t partitions)
{
    if (c->bad || partitions == 0 || partitions > WEIR__LOG_PARTITIONS_MAX ||
        hub->control.secret == 0 || hub->segment_count == 0 || hub->segment_count > SEGMENTS_MAX ||
        hub->extra_count > EXTRAS_MAX)
        return false;
    return (size_t)(c->end - c->at) >= partitions * (size_t)WEIR__HEAD_BYTES +
                                           hub->segment_count * (size_t)SEGMENT_BYTES +
                                           hub->extra_count * (size_t)EXTRA_BYTES;
}

/* 0, WEIR_ECORRUPT or WEIR_ENOMEM. */
static int decode_hub(struct cursor *c, struct weir__manifest_hub *hub)
{
    uint32_t partitions;

    pass_hub(c, hub);
    partitions = hub->control.partitions;
    hub->control.hub_id = hub->id;
    hub->control.partitions = 0;
    if (!counts_fit(c, hub, partitions)) return WEIR_ECORRUPT;
    if (weir__control_resize(&hub->control, partitions, NULL) != 0) return WEIR_ENOMEM;
    weir__heads_decode(c->at, partitions, hub->control.heads);
    c->at += (size_t)partitions * WEIR__HEAD_BYTES;
    hub->segments = calloc(hub->segment_count, sizeof *hub->segments);
    if (!hub->segments) return WEIR_ENOMEM;
    for (uint32_t i = 0; i < hub->segment_count; i++) {
        pass_segment(c, &hub->segments[i]);
        if (!plausible(&hub->segments[i])) return WEIR_ECORRUPT;
    }
    return decode_extras(c, hub);
}

static int check_bytes(struct weir__bytes in, struct weir_error *err)
{
    uint8_t digest[WEIR__DIGEST_BYTES];
    uint32_t version;
    int rc;

    if (in.len < HEADER_BYTES || weir__load32(in.at) != MANIFEST_MAGIC)
        return weir__fail(err, WEIR_ECORRUPT, "not a manifest");
    version = weir__load32(in.at + 4);
    if (version != WEIR__MANIFEST_VERSION)
        return weir__fail(err, WEIR_EVERSION,
                          "backup format version %u is not known here (this weir writes %u)",
                          version, WEIR__MANIFEST_VERSION);
    if (weir__load64(in.at + 8) != in.len) return weir__fail(err, WEIR_ECORRUPT, "cut short");
    rc = digest_of(in.at + DIGEST_FROM, in.len - DIGEST_FROM, digest, err);
    if (rc != 0) return rc;
    if (memcmp(digest, in.at + DIGEST_AT, sizeof digest) != 0)
        return weir__fail(err, WEIR_ECORRUPT, "its checksum is wrong");
    return 0;
}

static int decode_hubs(struct weir__manifest *m, struct cursor *c, uint64_t count,
                       struct weir_error *err)
{
    if (count > WEIR__CATALOG_HUBS_MAX || count > (uint64_t)(c->end - c->at) / HUB_BYTES)
        return weir__fail(err, WEIR_ECORRUPT, "too many hubs");
    m->hubs = calloc(count ? count : 1, sizeof *m->hubs);
    if (!m->hubs) return fail_memory(err);
    while (m->hub_count < count) {
        int rc = decode_hub(c, &m->hubs[m->hub_count++]);

        if (rc == WEIR_ENOMEM) return fail_memory(err);
        if (rc != 0) return weir__fail(err, rc, "hub %u cannot be read", m->hub_count);
    }
    return 0;
}

int weir__manifest_decode(struct weir__manifest *out, struct weir__bytes in, struct weir_error *err)
{
    struct cursor c = {.at = in.at + HEADER_BYTES, .end = in.at + in.len};
    uint64_t catalog;
    int rc = check_bytes(in, err);

    weir__manifest_init(out);
    if (rc != 0) return rc;
    out->generation = weir__load64(in.at + 48);
    out->began_ms = (int64_t)weir__load64(in.at + 56);
    out->moment_ms = (int64_t)weir__load64(in.at + 64);
    memcpy(out->id, in.at + ID_AT, WEIR__MANIFEST_ID_BYTES - 1);
    catalog = weir__load64(in.at + 72);
    if (weir__round_up(catalog, 8) > in.len - HEADER_BYTES || catalog > in.len)
        return weir__fail(err, WEIR_ECORRUPT, "cut short");
    rc = weir__catalog_decode(&out->catalog, weir__bytes_of(c.at, catalog), err);
    c.at += weir__round_up(catalog, 8);
    if (rc == 0) rc = decode_hubs(out, &c, weir__load64(in.at + 80), err);
    if (rc != 0) weir__manifest_fini(out);
    return rc;
}

/* ---- the two files ---- */

static int path_of(const char *dir, int copy, char out[WEIR__BACKUP_PATH_BYTES],
                   struct weir_error *err)
{
    int n = snprintf(out, WEIR__BACKUP_PATH_BYTES, "%s/manifest.%d", dir, copy);

    if (n > 0 && n < WEIR__BACKUP_PATH_BYTES) return 0;
    return weir__fail(err, WEIR_ETOOBIG, "the folder's path is too long");
}

static int read_copy(struct weir__fs *fs, const char *path, struct weir__manifest *out,
                     struct weir_error *err)
{
    struct weir__file *f = NULL;
    uint64_t bytes = 0;
    size_t got = 0;
    uint8_t *at = NULL;
    int rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, err);

    weir__manifest_init(out);
    if (rc == 0) rc = f->ops->size(f, &bytes, err);
    if (rc == 0 && bytes > WEIR__MANIFEST_BYTES_MAX)
        rc = weir__fail(err, WEIR_ECORRUPT, "too long");
    if (rc == 0 && !(at = malloc(bytes ? bytes : 1)))
        rc = weir__fail(err, WEIR_ENOMEM, "no memory");
    if (rc == 0) rc = f->ops->read(f, at, bytes, 0, &got, err);
    if (rc == 0) rc = weir__manifest_decode(out, weir__bytes_of(at, got), err);
    free(at);
    weir__file_close(f);
    return rc;
}

/* What says nothing of a copy: the other, which may be older, must not stand in for it. */
static bool is_undecided(int rc)
{
    return rc == WEIR_EVERSION || weir_error_class(rc) == WEIR_CLASS_RETRY;
}

int weir__manifest_load(struct weir__fs *fs, const char *dir, struct weir__manifest *out,
                        enum weir__manifest_other *out_other, struct weir_error *err)
{
    struct weir__manifest copy[COPIES];
    struct weir_error why[COPIES] = {{0}};
    char path[WEIR__BACKUP_PATH_BYTES];
    int rc[COPIES], best = 0;

    weir__manifest_init(out);
    *out_other = WEIR__MANIFEST_BAD;
    for (int i = 0; i < COPIES; i++) {
        weir__manifest_init(&copy[i]);
        rc[i] = path_of(dir, i, path, &why[i]);
        if (rc[i] == 0) rc[i] = read_copy(fs, path, &copy[i], &why[i]);
    }
    if (rc[0] != 0 || (rc[1] == 0 && copy[1].generation > copy[0].generation)) best = 1;
    if (is_undecided(rc[1 - best]) || rc[best] != 0) {
        int told = is_undecided(rc[0]) || rc[1] == WEIR_ENOTFOUND ? 0 : 1;

        weir__manifest_fini(&copy[best]);
        return weir__fail(err, rc[told], "%s/manifest.%d: %.300s", dir, told, why[told].text);
    }
    if (rc[1 - best] == 0 || rc[1 - best] == WEIR_ENOTFOUND) *out_other = WEIR__MANIFEST_OLDER;
    if (rc[1 - best] == 0 && copy[0].generation == copy[1].generation)
        *out_other = WEIR__MANIFEST_EQUAL;
    *out = copy[best];
    out->copy = best;
    weir__manifest_fini(&copy[1 - best]);
    return 0;
}

/* What could not be read again would be no backup, and the one before is still there. */
static int encode_readable(const struct weir__manifest *m, struct weir__buf *buf,
                           struct weir_error *err)
{
    struct weir__manifest again;
    int rc = weir__manifest_encode(m, buf, err);

    if (rc != 0) return rc;
    rc = weir__manifest_decode(&again, weir__buf_bytes(buf), err);
    weir__manifest_fini(&again);
    return rc;
}

int weir__manifest_write(struct weir__fs *fs, const char *dir, const struct weir__manifest *m,
                         bool second, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__file *f = NULL;
    struct weir__bytes part;
    struct weir__buf buf;
    int rc = path_of(dir, (int)((m->generation + second) % COPIES), path, err);

    weir__buf_init(&buf, WEIR__MANIFEST_BYTES_MAX);
    if (rc == 0) rc = encode_readable(m, &buf, err);
    if (rc == 0) rc = fs->ops->open(fs, path, 0, &f, err);
    if (rc == WEIR_ENOTFOUND) rc = fs->ops->open(fs, path, WEIR__FS_CREATE, &f, err);
    if (rc == 0) rc = f->ops->allocate(f, buf.len, err); /* the one before may have been longer */
    part = weir__buf_bytes(&buf);
    if (rc == 0 && (f->ops->write(f, &part, 1, 0, err) != 0 || f->ops->sync(f, err) != 0 ||
                    fs->ops->sync_dir(fs, dir, err) != 0))
        rc = WEIR_EUNKNOWN;
    weir__file_close(f);
    weir__buf_fini(&buf);
    return rc == 0 ? 0 : weir__wrap(err, rc, "writing %s", path);
}
