/* open.c - the table from URL to store, for those that are in libweir. */
#include <string.h>

#include "base/error.h"
#include "weir/store.h"

#define SHOWN_BYTES_MAX 128u

static const struct store_row {
    const char *scheme;
    int (*open)(struct weir_store **, const char *, const struct weir_store_options *,
                struct weir_error *);
} rows[] = {
    {"memory:", weir_store_memory},
    {"sqlite:", weir_store_sqlite},
};

static bool begins(const char *url, const char *scheme)
{
    return strncmp(url, scheme, strlen(scheme)) == 0;
}

/* Shows what was given. What may have a password in it, before an @ or behind a =, is cut behind its
 * scheme. */
static int fail_unknown(const char *url, struct weir_error *err)
{
    bool secret = url[strcspn(url, "@=")] != '\0';
    size_t len = strcspn(url, secret ? ":/@= " : "");

    if (secret && url[len] != ':') len = 0; /* no scheme was meant, so it may be anything */
    if (len > SHOWN_BYTES_MAX) len = SHOWN_BYTES_MAX;
    return weir__fail(err, WEIR_EINVAL,
                      "the store '%.*s%s' is of no kind that is known: there are memory:,"
                      " sqlite:PATH and postgres://USER@HOST/DATABASE",
                      (int)len, url, url[len] ? "..." : "");
}

int weir_store_open(struct weir_store **out, const char *url,
                    const struct weir_store_options *options, struct weir_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (begins(url, rows[i].scheme))
            return rows[i].open(out, url + strlen(rows[i].scheme), options, err);
    if (begins(url, "postgres://") || begins(url, "postgresql://"))
        return weir__fail(err, WEIR_ENOTSUP,
                          "a store in PostgreSQL is opened by weir_store_postgres of "
                          "libweir-postgres");
    return fail_unknown(url, err);
}
