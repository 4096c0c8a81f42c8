/* peek.c - what a folder holds, for a caller who does not know it and must not change it.
 *
 * The question behind it: may a folder be removed because nobody names it? Only when it is proven
 * that no batch was ever appended. Each opening of a log has a number, its epoch, which is in the
 * control file before the first batch can be; creation writes 0. A creation that was cut may not
 * have come to the control file: then its first copy's place is still empty, and the segment has
 * nothing but its header, in the first block and the last. Whatever else is found, or cannot be
 * read, counts as used. */
#include "log/peek.h"

#include <stdlib.h>

#include "log/state.h"

#define CONTROL_NAME "control"

/* 0: a good copy was read. WEIR_ENOTFOUND: there is none. */
static int read_control(struct weir__file *f, struct weir__log_peek *out)
{
    struct weir__control c = {0};
    int bad, rc = weir__control_read(f, &c, &bad, NULL);

    if (rc == 0) *out = (struct weir__log_peek){c.hub_id, c.partitions, c.version, c.epoch > 0};
    weir__control_fini(&c);
    return rc == 0 || rc == WEIR_ENOMEM ? rc : WEIR_ENOTFOUND;
}

/* Whether bytes of a file are all zeros; not when they cannot be read. */
static bool is_empty(struct weir__file *f, uint64_t from, uint64_t to)
{
    uint8_t block[WEIR__FS_BLOCK];
    size_t got = 0;

    for (uint64_t at = from; at < to; at += got) {
        uint64_t len = to - at < sizeof block ? to - at : sizeof block;
        if (f->ops->read(f, block, (size_t)len, at, &got, NULL) != 0) return false;
        if (got == 0) return true;
        for (size_t i = 0; i < got; i++)
            if (block[i]) return false;
    }
    return true;
}

/* A control file that no creation finished. */
static bool is_unfinished(struct weir__file *f)
{
    return is_empty(f, 0, WEIR__FS_BLOCK);
}

/* A segment with a header at most, which is there twice. */
static bool is_blank(struct weir__file *f)
{
    uint64_t size;

    if (f->ops->size(f, &size, NULL) != 0) return false;
    return size <= 2 * (uint64_t)WEIR__FS_BLOCK ||
           is_empty(f, WEIR__FS_BLOCK, size - WEIR__FS_BLOCK);
}

struct peek {
    struct weir__fs *fs;
    const char *dir;
    struct weir__log_peek *out;
    bool used;
};

static bool is_segment(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".seg") == 0;
}

static int look_at(const char *name, void *user)
{
    bool control = strcmp(name, CONTROL_NAME) == 0;
    struct peek *p = user;
    struct weir__file *f = NULL;
    int rc = weir__log_open_name(p->fs, p->dir, name, WEIR__FS_READ_ONLY, &f, NULL);

    if (rc != 0) {
        p->used = true; /* too many open files, for one: not a proof of anything */
        return 0;
    }
    if (control) {
        rc = read_control(f, p->out);
        if (rc == 0 ? p->out->used : !is_unfinished(f)) p->used = true;
    } else if (!is_segment(name) || !is_blank(f)) {
        p->used = true;
    }
    weir__file_close(f);
    return rc == WEIR_ENOMEM ? rc : 0;
}

int weir__log_peek(struct weir__fs *fs, const char *dir, struct weir__log_peek *out,
                   struct weir_error *err)
{
    struct peek p = {.fs = fs ? fs : weir__fs_posix(), .dir = dir, .out = out};
    int rc;

    *out = (struct weir__log_peek){0};
    rc = p.fs->ops->list(p.fs, dir, look_at, &p, err);
    if (rc == WEIR_ENOMEM) weir__fail(err, rc, "out of memory");
    if (rc != 0) return weir__wrap(err, rc, "looking at log %s", dir);
    out->used = p.used;
    return 0;
}
