/* namespace_lock.c - one process at a time in a data folder.
 *
 * Two locks are held, each for what the other cannot do: the folder's own cannot be removed, and
 * DIR/lock has our pid in it, works on file systems that cannot lock folders, and is all that
 * earlier versions know. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/state.h"

#define PID_TEXT_BYTES 24

/* The pid in DIR/lock; 0 when there is none to be read. */
static long read_pid(struct weir__fs *fs, const char *path)
{
    char text[PID_TEXT_BYTES + 1] = "";
    struct weir__file *file = NULL;
    size_t len = 0;

    if (fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &file, NULL) != 0) return 0;
    if (file->ops->read(file, text, PID_TEXT_BYTES, 0, &len, NULL) != 0) text[0] = '\0';
    weir__file_close(file);
    return strtol(text, NULL, 10);
}

int weir__namespace_lock(struct weir__namespace_lock *out, struct weir__fs *fs, const char *dir,
                         struct weir_error *err)
{
    char path[WEIR__HUB_PATH_BYTES];
    long pid;
    int rc;

    *out = (struct weir__namespace_lock){0};
    snprintf(path, sizeof path, "%s/" WEIR__NAMESPACE_LOCK, dir);
    rc = fs->ops->open(fs, dir, WEIR__FS_DIR | WEIR__FS_LOCK, &out->folder, err);
    if (rc == WEIR_ELOCKED) {
        pid = read_pid(fs, path);
        if (pid > 0) weir__fail(err, rc, "%s: folder is in use by process %ld", path, pid);
    }
    if (rc == 0) rc = fs->ops->open(fs, path, WEIR__FS_LOCK, &out->file, err);
    if (rc == WEIR_ELOCKED) weir__namespace_unlock(out);
    return rc;
}

void weir__namespace_unlock(struct weir__namespace_lock *lock)
{
    weir__file_close(lock->file);
    weir__file_close(lock->folder);
    *lock = (struct weir__namespace_lock){0};
}
