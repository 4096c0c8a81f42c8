/* identity.c - the id of a folder, by which records kept elsewhere tell it from others.
 *
 *   DIR/id   32 hexadecimal digits, made at random when somebody first asks
 *
 * A file of another length is one that a crash left unfinished: nobody was told its id yet. */
#include <inttypes.h>
#include <stdio.h>

#include "hub/state.h"

#define ID_FILE "id"

static int read_id(struct weir__fs *fs, const char *path, char out[WEIR__NAMESPACE_ID_BYTES],
                   struct weir_error *err)
{
    struct weir__file *file = NULL;
    char text[WEIR__NAMESPACE_ID_BYTES] = "";
    size_t len = 0;
    int rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &file, err);

    if (rc == 0) rc = file->ops->read(file, text, sizeof text, 0, &len, err);
    weir__file_close(file);
    if (rc != 0) return rc;
    if (len != WEIR__NAMESPACE_ID_BYTES - 1 || strspn(text, "0123456789abcdef") != len)
        return weir__fail(err, WEIR_ECORRUPT, "%s is not an id", path);
    memcpy(out, text, len);
    out[len] = '\0';
    return 0;
}

static int write_id(struct weir__namespace *ns, const char *path,
                    char out[WEIR__NAMESPACE_ID_BYTES], struct weir_error *err)
{
    struct weir__fs *fs = ns->options.fs;
    struct weir__file *file = NULL;
    struct weir__bytes text;
    uint64_t chance[2];
    int rc = ns->options.rand.fill(ns->options.rand.self, chance, sizeof chance, err);

    if (rc == 0) rc = fs->ops->open(fs, path, WEIR__FS_CREATE, &file, err);
    if (rc != 0) return rc;
    snprintf(out, WEIR__NAMESPACE_ID_BYTES, "%016" PRIx64 "%016" PRIx64, chance[0], chance[1]);
    text = weir__bytes_of(out, WEIR__NAMESPACE_ID_BYTES - 1);
    rc = file->ops->write(file, &text, 1, 0, err);
    if (rc == 0) rc = file->ops->sync(file, err);
    weir__file_close(file);
    if (rc == 0) rc = fs->ops->sync_dir(fs, ns->store.dir, err);
    return rc;
}

int weir__namespace_id(struct weir__namespace *ns, char out[WEIR__NAMESPACE_ID_BYTES],
                       struct weir_error *err)
{
    struct weir__fs *fs = ns->options.fs;
    char path[WEIR__HUB_PATH_BYTES];
    struct weir_error why;
    int rc;

    weir__mutex_lock(&ns->change);
    snprintf(path, sizeof path, "%s/" ID_FILE, ns->store.dir);
    rc = read_id(fs, path, out, &why);
    if (rc == WEIR_ECORRUPT) rc = fs->ops->remove(fs, path, &why) ? rc : WEIR_ENOTFOUND;
    if (rc == WEIR_ENOTFOUND) rc = write_id(ns, path, out, &why);
    weir__mutex_unlock(&ns->change);
    if (rc != 0 && err) *err = why;
    return rc;
}
