/* postgres.h - a PostgreSQL server of a test's own: its data in a folder of its own, reached by a
 * socket there, without a password. It dies with the test. */
#ifndef WEIR_SUPPORT_POSTGRES_H
#define WEIR_SUPPORT_POSTGRES_H

#include <sys/types.h>

#define POSTGRES_PATH_BYTES 128

struct postgres_server {
    pid_t pid; /* of the postmaster; 0: it does not run */
    char dir[POSTGRES_PATH_BYTES];
    char url[POSTGRES_PATH_BYTES + 64];
};

/* Makes the data; NULL, or why there can be no server here. */
const char *postgres_make(struct postgres_server *);
void postgres_remove(struct postgres_server *); /* and stops it */

int postgres_start(struct postgres_server *); /* returns when it answers: 0, or -1 */
void postgres_stop(struct postgres_server *); /* at once, as pg_ctl stop -m immediate */

/* Stops or continues the postmaster and all its children. */
void postgres_signal_all(const struct postgres_server *, int signal);

#endif
