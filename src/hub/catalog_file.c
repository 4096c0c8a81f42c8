/* catalog_file.c - the two copies of the catalogue.
 *
 * A copy is written body first and header second, each synced. Until the header is there the old
 * one stands before a body that does not match it, so a body that could not be written is surely
 * not stored, and a write that was cut leaves a copy whose header says that it is the older one: a
 * header newer than the other copy over a bad body means damage. From the header on, only the sync
 * tells. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/catalog.h"

#define HEADER_BYTES WEIR__CATALOG_HEADER_BYTES
#define COPY_BYTES_MAX (HEADER_BYTES + WEIR__CATALOG_BYTES_MAX) /* what is written can be read */
#define PATH_BYTES (WEIR__CATALOG_DIR_MAX + 32)

static void path_of(const struct weir__catalog_store *s, int copy, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s/catalog.%d", s->dir, copy);
}

int weir__catalog_store_init(struct weir__catalog_store *s, struct weir__fs *fs, const char *dir,
                             const struct weir__logger *logger, struct weir_error *err)
{
    size_t len = strlen(dir);

    *s = (struct weir__catalog_store){.fs = fs};
    if (len > WEIR__CATALOG_DIR_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "the folder's path has %zu bytes, the most is %d", len,
                          WEIR__CATALOG_DIR_MAX);
    if (logger) s->logger = *logger;
    memcpy(s->dir, dir, len + 1);
    return 0;
}

static int read_bytes(struct weir__file *file, const char *path, uint8_t **out, size_t *out_len,
                      struct weir_error *err)
{
    uint64_t size;
    int rc = file->ops->size(file, &size, err);

    *out = NULL;
    if (rc != 0) return rc;
    if (size > COPY_BYTES_MAX)
        return weir__fail(err, WEIR_ECORRUPT, "%s: %llu bytes are too many for a catalogue", path,
                          (unsigned long long)size);
    *out = malloc(size ? size : 1);
    if (!*out) return weir__fail(err, WEIR_ENOMEM, "%s: out of memory for the catalogue", path);
    return file->ops->read(file, *out, size, 0, out_len, err);
}

/* One copy as it was found. */
struct copy {
    struct weir__catalog catalog;
    int rc;
    struct weir_error why; /* begins with its path */
    bool dated; /* its header is good, and has this generation: also when the rest is bad */
    uint64_t generation;
};

static void read_copy(const struct weir__catalog_store *s, int which, struct copy *c)
{
    struct weir__file *file = NULL;
    char path[PATH_BYTES];
    uint8_t *at = NULL;
    size_t len = 0;

    *c = (struct copy){0};
    weir__catalog_init(&c->catalog);
    path_of(s, which, path);
    c->rc = s->fs->ops->open(s->fs, path, WEIR__FS_READ_ONLY, &file, &c->why);
    if (c->rc == 0) c->rc = read_bytes(file, path, &at, &len, &c->why);
    if (c->rc == 0) {
        c->dated = weir__catalog_generation(weir__bytes_of(at, len), &c->generation);
        c->rc = weir__catalog_decode(&c->catalog, weir__bytes_of(at, len), &c->why);
        if (c->rc != 0) weir__wrap(&c->why, c->rc, "%s", path);
    }
    free(at);
    weir__file_close(file);
}

/* Nobody knows whether this copy is good, so nothing may be put in its place. */
static int fail_unread(const struct copy *c, struct weir_error *err)
{
    if (c->rc == WEIR_EVERSION) return weir__fail(err, c->rc, "%s", c->why.text);
    return weir__fail(err, c->rc, "the catalogue cannot be read: %s", c->why.text);
}

/* Each copy gets half of what an error's text can hold. */
static int fail_both(const struct copy *c, struct weir_error *err)
{
    bool missing = c[0].rc == WEIR_ENOTFOUND || c[1].rc == WEIR_ENOTFOUND;

    for (int i = 0; i < WEIR__CATALOG_COPIES; i++)
        if (c[i].rc != WEIR_ENOTFOUND && c[i].rc != WEIR_ECORRUPT) return fail_unread(&c[i], err);
    return weir__fail(err, missing ? WEIR_ENOTFOUND : WEIR_ECORRUPT,
                      "no good catalogue: %.240s; %.240s", c[0].why.text, c[1].why.text);
}

/* Whether a bad copy may have held what the good one lacks. A folder's first catalogue, of
 * generation 0, is written one copy after the other; nothing can be missing from it. */
static bool may_be_newer(const struct copy *bad, const struct copy *good)
{
    if (bad->dated) return bad->generation > good->generation;
    return bad->rc != WEIR_ENOTFOUND || good->generation > 0;
}

static void tell_bad(const struct weir__catalog_store *s, const struct copy *bad)
{
    if (s->stale)
        weir__log_line(
            &s->logger, WEIR__ERROR, "hub",
            "a copy of the catalogue is bad, and the other, which is used, may be older: "
            "changes of hubs, groups and keys may be missing; nothing is removed: %s",
            bad->why.text);
    else
        weir__log_line(&s->logger, WEIR__WARN, "hub",
                       "a copy of the catalogue is bad, the other is used: %s", bad->why.text);
}

/* What says nothing of a copy: neither the other nor an old one may stand in for it. */
static bool is_undecided(int rc)
{
    return rc == WEIR_EVERSION || weir_error_class(rc) == WEIR_CLASS_RETRY;
}

/* A folder that was not restored to its end lacks events, whatever catalogue lies in it. */
static int refuse_unfinished(const struct weir__catalog_store *s, struct weir_error *err)
{
    struct weir__file *file = NULL;
    char path[PATH_BYTES];
    int rc;

    snprintf(path, sizeof path, "%s/" WEIR__CATALOG_RESTORING, s->dir);
    rc = s->fs->ops->open(s->fs, path, WEIR__FS_READ_ONLY, &file, err);
    weir__file_close(file);
    if (rc == WEIR_ENOTFOUND) return 0;
    if (rc != 0) return weir__wrap(err, rc, "the catalogue cannot be read");
    return weir__fail(err, WEIR_ECORRUPT, "%s", WEIR__CATALOG_RESTORING_TEXT);
}

int weir__catalog_load(struct weir__catalog_store *s, struct weir__catalog *out,
                       struct weir_error *err)
{
    struct copy c[WEIR__CATALOG_COPIES];
    bool none;
    int better, rc;

    weir__catalog_init(out);
    for (int i = 0; i < WEIR__CATALOG_COPIES; i++) read_copy(s, i, &c[i]);
    for (int i = 0; i < WEIR__CATALOG_COPIES; i++) {
        if (!is_undecided(c[i].rc)) continue;
        weir__catalog_fini(&c[1 - i].catalog);
        return fail_unread(&c[i], err);
    }
    none = c[0].rc != 0 && c[1].rc != 0;
    rc = refuse_unfinished(s, err);
    if (rc == WEIR_ECORRUPT || (rc != 0 && !none)) {
        for (int i = 0; i < WEIR__CATALOG_COPIES; i++) weir__catalog_fini(&c[i].catalog);
        return rc;
    }
    if (none) return fail_both(c, err);
    better = c[0].rc != 0 || (c[1].rc == 0 && c[1].generation > c[0].generation) ? 1 : 0;
    s->worse = 1 - better;
    s->unequal = c[s->worse].rc != 0 || c[0].generation != c[1].generation;
    s->stale = c[s->worse].rc != 0 && may_be_newer(&c[s->worse], &c[better]);
    if (c[s->worse].rc != 0) tell_bad(s, &c[s->worse]);
    *out = c[better].catalog;
    weir__catalog_fini(&c[s->worse].catalog);
    return 0;
}

static int open_copy(const struct weir__catalog_store *s, const char *path,
                     struct weir__file **file, bool *made, struct weir_error *err)
{
    int rc = s->fs->ops->open(s->fs, path, 0, file, err);

    *made = rc == WEIR_ENOTFOUND;
    if (*made) rc = s->fs->ops->open(s->fs, path, WEIR__FS_CREATE, file, err);
    return rc;
}

/* Errors before the header was touched are returned as they are, later ones as WEIR_EUNKNOWN. */
static int write_copy(const struct weir__catalog_store *s, int copy, struct weir__bytes bytes,
                      struct weir_error *err)
{
    struct weir__bytes header = {bytes.at, HEADER_BYTES};
    struct weir__bytes body = {bytes.at + HEADER_BYTES, bytes.len - HEADER_BYTES};
    struct weir__file *file = NULL;
    char path[PATH_BYTES];
    bool made;
    int rc;

    path_of(s, copy, path);
    rc = open_copy(s, path, &file, &made, err);
    if (rc == 0) rc = file->ops->write(file, &body, 1, HEADER_BYTES, err);
    if (rc == 0) rc = file->ops->sync(file, err);
    if (rc != 0) goto out;
    rc = file->ops->write(file, &header, 1, 0, err);
    if (rc == 0) rc = file->ops->sync(file, err);
    if (rc == 0 && made) rc = s->fs->ops->sync_dir(s->fs, s->dir, err);
    if (rc != 0) rc = WEIR_EUNKNOWN;
out:
    weir__file_close(file);
    return rc != 0 ? weir__wrap(err, rc, "writing %s", path) : 0;
}

static int write_second(struct weir__catalog_store *s, struct weir__bytes bytes,
                        struct weir_error *err)
{
    int rc = write_copy(s, 1 - s->worse, bytes, err);

    s->unequal = rc != 0;
    if (rc != 0) s->worse = 1 - s->worse;
    return rc;
}

int weir__catalog_save(struct weir__catalog_store *s, const struct weir__catalog *c,
                       struct weir_error *err)
{
    struct weir_error why = {0};
    struct weir__buf buf;
    int rc;

    weir__buf_init(&buf, COPY_BYTES_MAX);
    rc = weir__catalog_encode(c, &buf, err);
    if (rc == 0) rc = write_copy(s, s->worse, weir__buf_bytes(&buf), err);
    if (rc == 0 && write_second(s, weir__buf_bytes(&buf), &why) != 0)
        weir__log_line(&s->logger, WEIR__WARN, "hub", "the catalogue is stored once only: %s",
                       why.text);
    weir__buf_fini(&buf);
    return rc;
}

int weir__catalog_heal(struct weir__catalog_store *s, const struct weir__catalog *c,
                       struct weir_error *err)
{
    struct weir__buf buf;
    int rc;

    if (!s->unequal) return 0;
    weir__buf_init(&buf, COPY_BYTES_MAX);
    rc = weir__catalog_encode(c, &buf, err);
    if (rc == 0) rc = write_copy(s, s->worse, weir__buf_bytes(&buf), err);
    if (rc == 0) s->unequal = false;
    weir__buf_fini(&buf);
    return rc;
}
