/* feeder.h - a command that handles the events of one partition: lines in, numbers out.
 *
 * It is run by /bin/sh, gets each event as a line of JSON on its standard input, and prints the
 * sequence number up to which it is done. Both may run far apart: up to FEEDER_EVENTS_MAX events may
 * be with the command and not done yet. Used by the handlers of its partition only. */
#ifndef WEIR_CLI_FEEDER_H
#define WEIR_CLI_FEEDER_H

#include "weir/processor.h"

#define WEIR__FEEDER_EVENTS_MAX (1u << 20)

struct weir__feeder;

/* Starts the command. */
int weir__feeder_open(struct weir__feeder **out, const char *command, struct weir_partition *,
                      struct weir_error *);

/* Feeds it events, none is allowed, and marks what it says is done: 1 with *out_marked when there
 * was such a mark, else 0. Waits for a slow command, unless the partition is about to move. An error
 * when the command has failed; one that ended well is started again. */
int weir__feeder_feed(struct weir__feeder *, struct weir_partition *, const struct weir_event *,
                      size_t count, uint64_t *out_marked);

/* Whether it failed, and how: "ended with exit code 3". NULL: it did not. */
#define WEIR__FEEDER_WHY_BYTES 64
bool weir__feeder_failed(const struct weir__feeder *, char out[WEIR__FEEDER_WHY_BYTES]);

/* Lets it finish what it has, for a while, marks that, and ends it. Likewise. NULL is allowed. */
int weir__feeder_close(struct weir__feeder *, struct weir_partition *, uint64_t *out_marked);

#endif
