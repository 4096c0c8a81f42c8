/* backup_extra.c - files of a hub that are neither segments nor the control file, by table.
 *
 * They are appended to, so a copy is right when opening it leaves out what is of later than the
 * moment, or unfinished:
 *
 *   producers-NNNNNNNN.tab   the header of the newest segment says where it ends
 *
 * A file that changes must not be written over in the backup while the former manifest counts; so
 * it lies there under a name that was never used. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/backup_manifest.h"
#include "hub/namespace.h"
#include "hub/state.h"

#define LIST_TRIES 20 /* a file can be replaced by another while we copy it */

static const struct {
    const char *prefix, *suffix;
} kinds[] = {
    {"producers-", ".tab"},
};

static bool is_extra(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t suffix = strlen(kinds[i].suffix);

        if (len < WEIR__MANIFEST_NAME_BYTES && len > suffix &&
            strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0 &&
            strcmp(name + len - suffix, kinds[i].suffix) == 0)
            return true;
    }
    return false;
}

bool weir__backup_extra_named(const struct weir__manifest_hub *hub, const char *file)
{
    char aux[WEIR__MANIFEST_NAME_BYTES];

    for (uint32_t i = 0; i < hub->extra_count; i++) {
        snprintf(aux, sizeof aux, "%08" PRIu64 ".aux", hub->extras[i].aux);
        if (strcmp(file, aux) == 0 || strcmp(file, hub->extras[i].name) == 0) return true;
    }
    return false;
}

static void path_of(const char *dir, uint64_t hub_id, const struct weir__manifest_extra *extra,
                    bool aux, char out[WEIR__BACKUP_PATH_BYTES])
{
    char hub[WEIR__HUB_PATH_BYTES];

    weir__namespace_hub_dir(dir, hub_id, hub);
    if (aux)
        snprintf(out, WEIR__BACKUP_PATH_BYTES, "%s/%08" PRIu64 ".aux", hub, extra->aux);
    else
        snprintf(out, WEIR__BACKUP_PATH_BYTES, "%s/%s", hub, extra->name);
}

/* Copies, or reads when to is NULL, and makes the digest. */
static int digest_file(struct weir__fs *fs, const char *from, const char *to, uint64_t bytes,
                       uint8_t out[WEIR__DIGEST_BYTES], struct weir_error *err)
{
    struct weir__backup_extent x = {.bytes = bytes, .used = bytes, .tail = bytes};
    struct weir__digest digest = {0};
    struct weir__backup_sink sink = {weir__digest_add, &digest};
    struct weir__backup_copied copied = {0};
    int rc = weir__digest_begin(&digest, err);

    if (rc == 0) rc = weir__backup_copy(fs, from, to, &x, &sink, &copied, err);
    weir__digest_end(&digest, out);
    return rc;
}

/* ---- into the backup ---- */

struct gathering {
    const struct weir__backup_log *log;
    const char *to;
    const struct weir__manifest_hub *former;
    struct weir__manifest_hub *hub;
    int rc;
    struct weir_error *err;
};

/* The former backup has the same: its copy serves. */
static bool take_former(const struct gathering *g, struct weir__manifest_extra *extra)
{
    for (uint32_t i = 0; g->former && i < g->former->extra_count; i++) {
        const struct weir__manifest_extra *old = &g->former->extras[i];

        if (strcmp(old->name, extra->name) != 0 || old->bytes != extra->bytes ||
            memcmp(old->digest, extra->digest, sizeof old->digest) != 0)
            continue;
        *extra = *old;
        return true;
    }
    return false;
}

static int file_bytes(struct weir__fs *fs, const char *path, uint64_t *out, struct weir_error *err)
{
    struct weir__file *f = NULL;
    int rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, err);

    if (rc == 0) rc = f->ops->size(f, out, err);
    weir__file_close(f);
    return rc;
}

static int add_extra(struct gathering *g, const struct weir__manifest_extra *extra)
{
    struct weir__manifest_hub *hub = g->hub;
    struct weir__manifest_extra *grown =
        realloc(hub->extras, (hub->extra_count + 1) * sizeof *grown);

    if (!grown) return weir__fail(g->err, WEIR_ENOMEM, "out of memory");
    hub->extras = grown;
    grown[hub->extra_count++] = *extra;
    return 0;
}

static int save_extra(const char *name, void *user)
{
    struct gathering *g = user;
    struct weir__fs *fs = g->log->fs;
    struct weir__manifest_extra extra = {0};
    char from[WEIR__BACKUP_PATH_BYTES], to[WEIR__BACKUP_PATH_BYTES];
    int rc;

    if (!is_extra(name)) return 0;
    snprintf(extra.name, sizeof extra.name, "%s", name);
    extra.aux = g->hub->next_name++;
    snprintf(from, sizeof from, "%s/%s", g->log->dir, name);
    path_of(g->to, g->log->hub_id, &extra, true, to);
    rc = file_bytes(fs, from, &extra.bytes, g->err);
    if (rc == 0 && extra.bytes == 0) return 0;
    if (rc == 0) rc = digest_file(fs, from, to, extra.bytes, extra.digest, g->err);
    if (rc == 0 && take_former(g, &extra)) rc = fs->ops->remove(fs, to, g->err);
    if (rc == 0) rc = add_extra(g, &extra);
    return g->rc = rc;
}

int weir__backup_extras(const struct weir__backup_log *log, const char *to,
                        const struct weir__manifest_hub *former, struct weir__manifest_hub *hub,
                        struct weir_error *err)
{
    struct gathering g = {.log = log, .to = to, .former = former, .hub = hub, .err = err};
    int rc = WEIR_ENOTFOUND;

    for (int i = 0; rc == WEIR_ENOTFOUND && i < LIST_TRIES; i++) {
        hub->extra_count = 0;
        g.rc = 0;
        rc = log->fs->ops->list(log->fs, log->dir, save_extra, &g, err);
        if (rc == 0) rc = g.rc;
    }
    return rc;
}

/* ---- out of it ---- */

int weir__backup_extras_pass(struct weir__fs *fs, const char *from, bool aux, const char *to,
                             const struct weir__manifest_hub *hub, struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < hub->extra_count; i++) {
        const struct weir__manifest_extra *extra = &hub->extras[i];
        char at[WEIR__BACKUP_PATH_BYTES], copy[WEIR__BACKUP_PATH_BYTES];
        uint8_t digest[WEIR__DIGEST_BYTES] = {0};

        path_of(from, hub->id, extra, aux, at);
        if (to) path_of(to, hub->id, extra, false, copy);
        rc = digest_file(fs, at, to ? copy : NULL, extra->bytes, digest, err);
        if (rc == WEIR_ENOTFOUND) rc = weir__wrap(err, WEIR_ECORRUPT, "a file is missing");
        if (rc == 0 && memcmp(digest, extra->digest, sizeof digest) != 0)
            rc = weir__fail(err, WEIR_ECORRUPT, "%s is not what was backed up", at);
    }
    return rc;
}
