/* catalog_file.c - the two copies of the catalogue.
 *
 * A copy is written body first and header second, then synced. Until the header is there the old
 * one stands before a body that does not match it, so a body that could not be written is surely
 * not stored; from the header on, only the sync tells. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/catalog.h"

#define HEADER_BYTES 32 /* of catalog_codec.c */
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

static int read_bytes(struct weir__file *file, uint8_t **out, size_t *out_len,
                      struct weir_error *err)
{
    uint64_t size;
    int rc = file->ops->size(file, &size, err);

    *out = NULL;
    if (rc != 0) return rc;
    if (size > HEADER_BYTES + WEIR__CATALOG_BYTES_MAX)
        return weir__fail(err, WEIR_ECORRUPT, "%llu bytes are too many for a catalogue",
                          (unsigned long long)size);
    *out = malloc(size ? size : 1);
    if (!*out) return weir__fail(err, WEIR_ENOMEM, "out of memory for the catalogue");
    return file->ops->read(file, *out, size, 0, out_len, err);
}

static int read_copy(const struct weir__catalog_store *s, int copy, struct weir__catalog *out,
                     struct weir_error *err)
{
    struct weir__file *file = NULL;
    char path[PATH_BYTES];
    uint8_t *at = NULL;
    size_t len = 0;
    int rc;

    weir__catalog_init(out);
    path_of(s, copy, path);
    rc = s->fs->ops->open(s->fs, path, WEIR__FS_READ_ONLY, &file, err);
    if (rc == WEIR_ENOTFOUND) return rc;
    if (rc == 0) rc = read_bytes(file, &at, &len, err);
    if (rc == 0) rc = weir__catalog_decode(out, weir__bytes_of(at, len), err);
    free(at);
    weir__file_close(file);
    return rc != 0 ? weir__wrap(err, rc, "%s", path) : 0;
}

static int fail_both(const struct weir__catalog_store *s, const struct weir_error why[],
                     struct weir_error *err)
{
    bool missing = why[0].code == WEIR_ENOTFOUND || why[1].code == WEIR_ENOTFOUND;

    return weir__fail(err, missing ? WEIR_ENOTFOUND : WEIR_ECORRUPT,
                      "no good catalogue in %s: catalog.0: %.180s; catalog.1: %.180s", s->dir,
                      why[0].text, why[1].text);
}

int weir__catalog_load(struct weir__catalog_store *s, struct weir__catalog *out,
                       struct weir_error *err)
{
    struct weir__catalog copy[WEIR__CATALOG_COPIES];
    struct weir_error why[WEIR__CATALOG_COPIES] = {{0}};
    int rc[WEIR__CATALOG_COPIES], better;

    weir__catalog_init(out);
    for (int i = 0; i < WEIR__CATALOG_COPIES; i++) rc[i] = read_copy(s, i, &copy[i], &why[i]);
    for (int i = 0; i < WEIR__CATALOG_COPIES; i++) {
        if (rc[i] != WEIR_EVERSION && rc[i] != WEIR_ENOMEM) continue;
        weir__catalog_fini(&copy[1 - i]);
        return weir__fail(err, rc[i], "%s", why[i].text);
    }
    if (rc[0] != 0 && rc[1] != 0) return fail_both(s, why, err);
    better = rc[0] != 0 || (rc[1] == 0 && copy[1].generation > copy[0].generation) ? 1 : 0;
    s->worse = 1 - better;
    s->unequal = rc[s->worse] != 0 || copy[0].generation != copy[1].generation;
    if (rc[s->worse] != 0)
        weir__log_line(&s->logger, WEIR__WARN, "hub",
                       "a copy of the catalogue is bad, the other "
                       "is used: %s",
                       why[s->worse].text);
    *out = copy[better];
    weir__catalog_fini(&copy[s->worse]);
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

    weir__buf_init(&buf, HEADER_BYTES + WEIR__CATALOG_BYTES_MAX);
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
    weir__buf_init(&buf, HEADER_BYTES + WEIR__CATALOG_BYTES_MAX);
    rc = weir__catalog_encode(c, &buf, err);
    if (rc == 0) rc = write_copy(s, s->worse, weir__buf_bytes(&buf), err);
    if (rc == 0) s->unequal = false;
    weir__buf_fini(&buf);
    return rc;
}
