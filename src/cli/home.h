/* home.h - where a command works: in a folder, or through a server. The first of these that there
 * is:
 *
 *   --connect                     that server
 *   --data                        that folder
 *   WEIR_CONNECT                  that server
 *   WEIR_DATA, or ./weir-data     that folder
 *   nothing was named             weir serve on this machine, on its usual ports with its usual key
 *
 * A folder that weir serve holds is reached through that server, which left a sign in it
 * (serving.h). Whatever was not named by the user is said on standard error. A folder that was named
 * and is not there is never taken for another place. */
#ifndef WEIR_CLI_HOME_H
#define WEIR_CLI_HOME_H

#include "cli/args.h"
#include "weir/weir.h"

/* What a command wants of the place. */
enum weir__home_want {
    WEIR__HOME_EVENTS = 0, /* send, receive, ask */
    WEIR__HOME_ADMIN = 1,  /* change hubs and keys: on a server by HTTP */
    WEIR__HOME_MAKE = 2,   /* and make the folder when there is nothing at all */
    WEIR__HOME_DETAILS = 4 /* as EVENTS, and ask by HTTP, too, where that can be done */
};

struct weir__home {
    struct weir *weir; /* the folder or the connection */
    bool wire;         /* it is not a folder */
    bool served;       /* but a folder was meant, and this is its server */
    char *connect;     /* of a connection: its string */
};

/* Finds the place and opens it, with the library's warnings and errors going to standard error. On
 * failure says why and returns an exit code; 0 is success. */
int weir__home_reach(struct weir__home *, const struct weir__command *, const struct weir__common *,
                     unsigned want);

/* Closes it; code is how the command ended so far. Returns how it ends. */
int weir__home_leave(struct weir__home *, int code);

/* The same for a folder and nothing else. */
int weir__home_open(struct weir **out, const char *data, bool must_exist);
int weir__home_close(struct weir *, int code);

/* Says that there is nothing, and returns the exit code for that. */
int weir__home_missing(const char *data);

/* The same of a folder that should be made, and has no folder above it. */
int weir__home_unmade(const struct weir_error *);

#endif
