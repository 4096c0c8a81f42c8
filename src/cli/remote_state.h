/* remote_state.h - what the files of a remote share.
 *
 *   remote.c        opening; a question with its token; refusals
 *   remote_hub.c    what is asked about hubs
 *   remote_rule.c   and about rules */
#ifndef WEIR_CLI_REMOTE_STATE_H
#define WEIR_CLI_REMOTE_STATE_H

#include "cli/ask.h"
#include "cli/facts.h"
#include "cli/remote.h"
#include "client/connstr.h"

struct weir__remote {
    struct weir__connstr to;
    struct weir__ask *ask;
    bool guessed; /* nobody said where HTTP is */
};

/* "/$weir/hubs/HUB/keys/RULE?..." */
struct weir__remote_path {
    const char *hub;   /* NULL: the namespace */
    const char *what;  /* "keys"; NULL: the hub itself, or all hubs */
    const char *name;  /* of a rule; NULL: all */
    const char *query; /* "?..."; NULL: none */
};

/* One question, whose path and token are made here. 0: it was answered with success. */
int weir__remote_ask(struct weir__remote *, const struct weir__question *,
                     const struct weir__remote_path *, struct weir__reply *, struct weir_error *);

/* The answer has nothing that we know. Returns WEIR_ENOTSUP. */
int weir__remote_strange(const struct weir__remote *, const struct weir__reply *,
                         struct weir_error *);

/* weir__facts_read of an answer, and weir__facts_list of one that is asked for here. What is not
 * understood is WEIR_ENOTSUP. */
int weir__remote_read(const struct weir__remote *, const struct weir__reply *,
                      const struct weir__fact *, void *out, struct weir_error *);
int weir__remote_list(struct weir__remote *, const struct weir__remote_path *, const char *name,
                      const struct weir__fact *, void *out, size_t size,
                      int (*show)(void *out, void *user), void *user, struct weir_error *);

#endif
