/* serving.h - how the commands find the server of a folder: it leaves a sign in the folder while
 * it runs.
 *
 * Whoever may read the folder may do everything with it; so the sign has the key of the
 * folder's owner, which opens everything (hub/namespace.h). */
#ifndef WEIR_CLI_SERVING_H
#define WEIR_CLI_SERVING_H

#include "base/error.h"
#include "cli/connection.h"
#include "hub/namespace.h"

#define WEIR__SERVING_URL_BYTES 288 /* scheme, host and port, with a NUL */

struct weir__serving {
    long pid;
    char connect[WEIR__CONNECTION_BYTES]; /* for AMQP, without TLS */
    char admin[WEIR__SERVING_URL_BYTES];  /* of HTTP, for administration; "": it is not served */
    char space[WEIR__NAMESPACE_ID_BYTES]; /* the folder's own id; "": of an earlier release */
};

/* For the process that has the folder open. pid is its own. */
int weir__serving_write(const char *dir, const struct weir__serving *, struct weir_error *);
void weir__serving_remove(const char *dir);

/* WEIR_ENOTFOUND: there is no sign, or not one of the process that holds the folder now. */
int weir__serving_read(const char *dir, struct weir__serving *out, struct weir_error *);

#endif
