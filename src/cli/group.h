/* group.h - a consumer group of a hub and the store that its processors share: what the commands
 * about groups and checkpoints begin with. */
#ifndef WEIR_CLI_GROUP_H
#define WEIR_CLI_GROUP_H

#include "cli/home.h"
#include "weir/processor.h"

struct weir__group_place {
    struct weir__home home;
    struct weir_store *store;
    char hub[WEIR_NAME_BYTES], group[WEIR_NAME_BYTES]; /* as they were written */
    char space[WEIR_SPACE_BYTES];                      /* the scope's three names, in lower case: */
    char scope_hub[WEIR_NAME_BYTES], scope_group[WEIR_NAME_BYTES];
    struct weir_scope scope;
};

/* Opens the place, and the store by its URL; NULL: the file in the folder, when it is one. `what` is
 * HUB or HUB/GROUP; when it must be there, that is seen to before a store is made. On failure says
 * why and returns an exit code. */
int weir__group_open(struct weir__group_place *, const struct weir__command *,
                     const struct weir__common *, const char *what, const char *store_url,
                     bool must_be);

/* Whether the group is there: a name that was mistyped is not one without members. */
int weir__group_check(struct weir__group_place *, struct weir_error *);

/* What to do about an error of hub, group or store; NULL: nothing of its own. */
const char *weir__group_advice(int rc);

/* Closes both; code is how the command ended so far. Returns how it ends. */
int weir__group_close(struct weir__group_place *, int code);

#endif
