/* serving.c - the sign of a server in its folder, for the folder's owner only:
 *
 *   DIR/serving   {"version":1,"pid":4711,"admin":"http://127.0.0.1:5300","space":"...",
 *                  "connection_string":"..."}
 *
 * "admin" is null when HTTP is not served. The sign is made whole under another name and renamed.
 * It counts only while the process that it names is the one that holds the folder's lock: a server
 * that was killed leaves its sign behind, until the next who takes the lock takes it down
 * (hub/namespace.h). */
#define _GNU_SOURCE
#include "cli/serving.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/json.h"
#include "client/json_fields.h"
#include "hub/namespace.h"

#define VERSION 1
#define FILE_BYTES_MAX 4096
#define PATH_BYTES (WEIR__CATALOG_DIR_MAX + 16)
#define FRESH WEIR__NAMESPACE_SERVING ".new"

static int make_path(char out[PATH_BYTES], const char *dir, const char *name,
                     struct weir_error *err)
{
    int len = snprintf(out, PATH_BYTES, "%s/%s", dir, name);

    if (len >= PATH_BYTES) return weir__fail(err, WEIR_ETOOBIG, "the folder's path is too long");
    return 0;
}

/* ---- writing ---- */

static void print_sign(FILE *to, const struct weir__serving *s)
{
    fprintf(to, "{\"version\":%d,\"pid\":%ld,\"admin\":", VERSION, s->pid);
    if (*s->admin)
        weir__json_text(to, weir_text(s->admin));
    else
        fputs("null", to);
    fputs(",\"space\":", to);
    weir__json_text(to, weir_text(s->space));
    fputs(",\"connection_string\":", to);
    weir__json_text(to, weir_text(s->connect));
    fputs("}\n", to);
}

static int write_fresh(const char *path, const struct weir__serving *s)
{
    int fd, bad;
    FILE *to;

    unlink(path); /* whatever it was: it must be ours and for us alone */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    to = fdopen(fd, "w");
    if (!to) {
        close(fd);
        return -1;
    }
    print_sign(to, s);
    bad = ferror(to);
    return fclose(to) == 0 && !bad ? 0 : -1;
}

int weir__serving_write(const char *dir, const struct weir__serving *s, struct weir_error *err)
{
    char fresh[PATH_BYTES], path[PATH_BYTES];
    int rc = make_path(fresh, dir, FRESH, err);

    if (rc == 0) rc = make_path(path, dir, WEIR__NAMESPACE_SERVING, err);
    if (rc != 0) return rc;
    if (write_fresh(fresh, s) == 0 && rename(fresh, path) == 0) return 0;
    rc = weir__fail_errno(err, errno, path);
    unlink(fresh);
    return rc;
}

void weir__serving_remove(const char *dir)
{
    char path[PATH_BYTES];

    if (make_path(path, dir, WEIR__NAMESPACE_SERVING, NULL) == 0) unlink(path);
}

/* ---- reading ---- */

/* The whole file, up to room - 1 bytes, with a NUL. */
static int read_file(const char *dir, const char *name, char *out, size_t room,
                     struct weir_error *err)
{
    char path[PATH_BYTES];
    size_t len = 0;
    ssize_t n = 0;
    int fd, rc = make_path(path, dir, name, err);

    if (rc != 0) return rc;
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return weir__fail_errno(err, errno, path);
    while (len + 1 < room && (n = read(fd, out + len, room - 1 - len)) > 0) len += (size_t)n;
    rc = n < 0 ? weir__fail_errno(err, errno, path) : 0;
    close(fd);
    out[len] = '\0';
    return rc;
}

struct sign {
    int64_t version, pid;
    struct weir__serving it;
};

static const struct weir__json_field sign_fields[] = {
    {"version", WEIR__JSON_FIELD_NUMBER, offsetof(struct sign, version), 0, NULL},
    {"pid", WEIR__JSON_FIELD_NUMBER, offsetof(struct sign, pid), 0, NULL},
    {"admin", WEIR__JSON_FIELD_TEXT, offsetof(struct sign, it.admin), WEIR__SERVING_URL_BYTES,
     NULL},
    {"space", WEIR__JSON_FIELD_TEXT, offsetof(struct sign, it.space), WEIR__NAMESPACE_ID_BYTES,
     NULL},
    {"connection_string", WEIR__JSON_FIELD_TEXT, offsetof(struct sign, it.connect),
     WEIR__CONNECTION_BYTES, NULL},
    {0},
};

static int parse_sign(const char *text, struct weir__serving *out, struct weir_error *err)
{
    struct sign sign = {0};
    int rc = weir__json_fields_read(weir__bytes_of(text, strlen(text)), sign_fields, &sign, err);

    if (rc == 0 && sign.version != VERSION)
        rc = weir__fail(err, WEIR_EVERSION, "version %lld, and %d is known here",
                        (long long)sign.version, VERSION);
    if (rc == 0 && !*sign.it.connect) rc = weir__fail(err, WEIR_EINVAL, "no connection_string");
    *out = sign.it;
    out->pid = (long)sign.pid;
    return rc;
}

int weir__serving_read(const char *dir, struct weir__serving *out, struct weir_error *err)
{
    char text[FILE_BYTES_MAX], lock[64];
    long holder;
    int rc = read_file(dir, WEIR__NAMESPACE_LOCK, lock, sizeof lock, err);

    *out = (struct weir__serving){0};
    if (rc == 0) rc = read_file(dir, WEIR__NAMESPACE_SERVING, text, sizeof text, err);
    if (rc != 0) return rc;
    holder = strtol(lock, NULL, 10);
    rc = parse_sign(text, out, err);
    if (rc == WEIR_EINVAL) rc = WEIR_ECORRUPT; /* nobody typed it */
    if (rc != 0) return weir__wrap(err, rc, "%s/" WEIR__NAMESPACE_SERVING, dir);
    if (holder > 0 && out->pid == holder) return 0;
    return weir__fail(err, WEIR_ENOTFOUND, "the sign of process %ld, and %ld has the folder",
                      out->pid, holder);
}
