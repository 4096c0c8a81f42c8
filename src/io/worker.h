/* worker.h - one thread that does what would hold a loop up: posts that may wait for the disk.
 *
 * They run in the order in which they came, one at a time. A post that has something to tell
 * afterwards posts to a loop. */
#ifndef WEIR_IO_WORKER_H
#define WEIR_IO_WORKER_H

#include "io/mailbox.h"

struct weir__worker;

int weir__worker_start(struct weir__worker **out, const char *name, struct weir_error *);

/* Runs what waits, and ends the thread. NULL is fine, here and below. */
void weir__worker_stop(struct weir__worker *);
void weir__worker_free(struct weir__worker *); /* stops it first */

/* Any thread. WEIR_ECLOSED: it was stopped, and the post will never run. */
int weir__worker_post(struct weir__worker *, struct weir__post *);

#endif
