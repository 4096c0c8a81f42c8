/* open.c - the table from URL to store, for those that are in libweir. */
#include <string.h>

#include "base/error.h"
#include "weir/store.h"

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

int weir_store_open(struct weir_store **out, const char *url,
                    const struct weir_store_options *options, struct weir_error *err)
{
    size_t scheme = strcspn(url, ":/@ ");

    if (url[scheme] != ':') scheme = 0; /* none was meant, so it may be anything */
    *out = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (begins(url, rows[i].scheme))
            return rows[i].open(out, url + strlen(rows[i].scheme), options, err);
    if (begins(url, "postgres://") || begins(url, "postgresql://"))
        return weir__fail(err, WEIR_ENOTSUP,
                          "a store in PostgreSQL is opened by weir_store_postgres of "
                          "libweir-postgres");
    return weir__fail(err, WEIR_EINVAL,
                      "the store '%.*s...' is of no kind that is known: there are memory:,"
                      " sqlite:PATH and postgres://USER@HOST/DATABASE",
                      (int)scheme, url);
}
