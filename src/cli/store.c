/* store.c - every store by its URL: those of libweir, and PostgreSQL's, which this program links. */
#include "cli/store.h"

#include <string.h>

int weir__cli_store_open(struct weir_store **out, const char *url, struct weir_error *err)
{
    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return weir_store_postgres(out, url, NULL, err);
    return weir_store_open(out, url, NULL, err);
}
