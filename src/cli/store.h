/* store.h - stores by their URL. */
#ifndef WEIR_CLI_STORE_H
#define WEIR_CLI_STORE_H

#include "weir/store.h"

/* memory: or memory:NAME, sqlite:PATH, postgres://USER@HOST/DATABASE. WEIR_EINVAL names what there
 * is. No text repeats a password of the URL. */
int weir__cli_store_open(struct weir_store **out, const char *url, struct weir_error *);

#endif
