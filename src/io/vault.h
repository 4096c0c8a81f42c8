/* vault.h - a folder of small files that are nobody else's business: keys, and what belongs to
 * them. A file appears whole or not at all, and is on disk when weir__vault_write returns. */
#ifndef WEIR_IO_VAULT_H
#define WEIR_IO_VAULT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"

#define WEIR__VAULT_FILE_MAX 16384

struct weir__vault {
    const char *path;
    int dir;  /* the folder's descriptor */
    int lock; /* -1: not locked */
};

struct weir__vault_file {
    uint8_t bytes[WEIR__VAULT_FILE_MAX];
    size_t len;
};

/* path is borrowed. WEIR_ENOTFOUND: no such folder. WEIR_EDENIED: others could change what is in
 * it. Close it also after a failure. */
int weir__vault_open(struct weir__vault *, const char *path, struct weir_error *);

/* Makes the folder when it is missing, and the ones above it, and keeps other processes that do the
 * same out until it is closed. WEIR_ELOCKED: one of them took longer than wait_ms. */
int weir__vault_make(struct weir__vault *, const char *path, int wait_ms, struct weir_error *);

void weir__vault_close(struct weir__vault *);

/* WEIR_ENOTFOUND: no such file. WEIR_EDENIED: it is secret and others can read it. WEIR_ECORRUPT:
 * it is too large, or not a file. */
int weir__vault_read(const struct weir__vault *, const char *name, bool secret,
                     struct weir__vault_file *, struct weir_error *);

/* Takes the place of a file of this name. */
int weir__vault_write(const struct weir__vault *, const char *name, bool secret, struct weir__bytes,
                      struct weir_error *);

#endif
