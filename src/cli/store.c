/* store.c - the table from URL to constructor: the one place that knows every store by name. */
#include "cli/store.h"

#include <string.h>

#include "base/error.h"

static const struct store_row {
    const char *scheme;
    int (*open)(struct weir_store **, const char *, const struct weir_store_options *,
                struct weir_error *);
    bool whole; /* it is given the URL, and not what follows the scheme */
} store_rows[] = {
    {"memory:", weir_store_memory, false},
    {"sqlite:", weir_store_sqlite, false},
    {"postgres://", weir_store_postgres, true},
    {"postgresql://", weir_store_postgres, true},
};

int weir__cli_store_open(struct weir_store **out, const char *url, struct weir_error *err)
{
    size_t scheme = strcspn(url, ":/@ ");

    if (url[scheme] != ':') scheme = 0; /* none was meant, so it may be anything */
    *out = NULL;
    for (size_t i = 0; i < sizeof store_rows / sizeof store_rows[0]; i++) {
        const struct store_row *row = &store_rows[i];
        size_t len = strlen(row->scheme);

        if (strncmp(url, row->scheme, len) == 0)
            return row->open(out, row->whole ? url : url + len, NULL, err);
    }
    return weir__fail(err, WEIR_EINVAL,
                      "the store '%.*s...' is of no kind that is known: there are memory:,"
                      " sqlite:PATH and postgres://USER@HOST/DATABASE",
                      (int)scheme, url);
}
