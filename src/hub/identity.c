/* identity.c - what a folder is known by, made at random when somebody first asks, and kept:
 *
 *   DIR/id      32 hexadecimal digits, by which records kept elsewhere tell it from others
 *   DIR/owner   the key of whoever may read the folder: see weir__namespace_own
 *
 * A file of another length is one that a crash left unfinished: nobody was told what it says. */
#include <inttypes.h>
#include <stdio.h>

#include "hub/state.h"

#define OWNER_KEY_LEN 44 /* as weir__access_key_make has it */

struct kept {
    const char *file, *letters;
    size_t len;
    int (*make)(const struct weir__rand *, char *out, struct weir_error *);
};

static int make_id(const struct weir__rand *rand, char *out, struct weir_error *err)
{
    uint64_t chance[2];
    int rc = rand->fill(rand->self, chance, sizeof chance, err);

    if (rc != 0) return rc;
    snprintf(out, WEIR__NAMESPACE_ID_BYTES, "%016" PRIx64 "%016" PRIx64, chance[0], chance[1]);
    return 0;
}

static const struct kept kept_id = {"id", "0123456789abcdef", WEIR__NAMESPACE_ID_BYTES - 1,
                                    make_id};
static const struct kept kept_owner = {
    "owner", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", OWNER_KEY_LEN,
    weir__access_key_make};

static int read_kept(struct weir__fs *fs, const char *path, const struct kept *k, char *out,
                     struct weir_error *err)
{
    char text[WEIR__ACCESS_KEY_MAX + 1] = "";
    struct weir__file *file = NULL;
    size_t len = 0;
    int rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &file, err);

    if (rc == 0) rc = file->ops->read(file, text, sizeof text, 0, &len, err);
    weir__file_close(file);
    if (rc != 0) return rc;
    if (len != k->len || strspn(text, k->letters) != len)
        return weir__fail(err, WEIR_ECORRUPT, "%s is not what was written there", path);
    memcpy(out, text, len);
    out[len] = '\0';
    return 0;
}

static int write_kept(struct weir__namespace *ns, const char *path, const struct kept *k, char *out,
                      struct weir_error *err)
{
    struct weir__fs *fs = ns->options.fs;
    struct weir__file *file = NULL;
    struct weir__bytes text;
    int rc = k->make(&ns->options.rand, out, err);

    if (rc == 0) rc = fs->ops->open(fs, path, WEIR__FS_CREATE, &file, err);
    if (rc != 0) return rc;
    text = weir__bytes_of(out, k->len);
    rc = file->ops->write(file, &text, 1, 0, err);
    if (rc == 0) rc = file->ops->sync(file, err);
    weir__file_close(file);
    if (rc == 0) rc = fs->ops->sync_dir(fs, ns->store.dir, err);
    return rc;
}

/* Reads it, or makes it when it is not there. */
static int keep(struct weir__namespace *ns, const struct kept *k, char *out, struct weir_error *err)
{
    struct weir__fs *fs = ns->options.fs;
    char path[WEIR__HUB_PATH_BYTES];
    struct weir_error why;
    int rc;

    weir__mutex_lock(&ns->change);
    snprintf(path, sizeof path, "%s/%s", ns->store.dir, k->file);
    rc = read_kept(fs, path, k, out, &why);
    if (rc == WEIR_ECORRUPT) rc = fs->ops->remove(fs, path, &why) ? rc : WEIR_ENOTFOUND;
    if (rc == WEIR_ENOTFOUND) rc = write_kept(ns, path, k, out, &why);
    weir__mutex_unlock(&ns->change);
    if (rc != 0 && err) *err = why;
    return rc;
}

int weir__namespace_id(struct weir__namespace *ns, char out[WEIR__NAMESPACE_ID_BYTES],
                       struct weir_error *err)
{
    return keep(ns, &kept_id, out, err);
}

static int make_owner(struct weir__namespace *ns, struct weir__rule *out, struct weir_error *err)
{
    struct weir__rule rule = {.name = WEIR__NAMESPACE_OWNER, .rights = WEIR__RIGHTS_ALL};
    struct weir_error why;
    int rc = 0;

    for (int i = 0; rc == 0 && i < WEIR__KEYS; i++)
        rc = weir__access_key_make(&ns->options.rand, rule.key[i], err);
    if (rc != 0) return rc;
    if (keep(ns, &kept_owner, rule.key[WEIR__KEY_PRIMARY], &why) != 0)
        weir__log_line(&ns->options.logger, WEIR__WARN, "hub",
                       "the owner's key is good until the folder is closed, and not kept: %s",
                       why.text);
    *out = rule;
    return 0;
}

static bool find_owner(struct weir__namespace *ns, struct weir__rule *out)
{
    weir__mutex_lock(&ns->lock);
    *out = ns->owner;
    weir__mutex_unlock(&ns->lock);
    return out->name[0] != '\0';
}

int weir__namespace_own(struct weir__namespace *ns, struct weir__rule *out, struct weir_error *err)
{
    struct weir__rule made;
    int rc = find_owner(ns, out) ? 0 : make_owner(ns, &made, err);

    if (rc != 0 || out->name[0]) return rc;
    weir__mutex_lock(&ns->lock);
    if (!ns->owner.name[0]) ns->owner = made;
    *out = ns->owner;
    weir__mutex_unlock(&ns->lock);
    return 0;
}
