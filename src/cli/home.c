#include "cli/home.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/exit.h"

static void print_line(enum weir_level level, const char *room, const char *line, void *user)
{
    (void)user;
    if (level >= WEIR_WARN) fprintf(stderr, "weir: %s: %s\n", room, line);
}

int weir__home_missing(const char *data)
{
    fprintf(stderr,
            "weir: %s: there are no hubs; 'weir hub create' makes the first, --data names "
            "another folder\n",
            data);
    return WEIR__EXIT_NOT_FOUND;
}

int weir__home_open(struct weir **out, const char *data, bool must_exist)
{
    struct weir_options options = {.size = sizeof options,
                                   .must_exist = must_exist,
                                   .log = print_line};
    struct weir_error err;
    int rc = weir_open(out, data, &options, &err);

    if (rc == WEIR_ENOTFOUND) return weir__home_missing(data);
    return rc == 0 ? 0 : weir__exit_error(rc, &err, "data folder");
}

const char *weir__home_connect(const struct weir__common *common, const char *connect)
{
    const char *text = getenv("WEIR_CONNECT");

    if (connect) return connect;
    return !common->data_given && text && *text ? text : NULL;
}

int weir__home_reach(struct weir **out, const char *connect, const char *data)
{
    struct weir_options options = {.size = sizeof options, .log = print_line};
    struct weir_error err;
    int rc;

    if (!connect) return weir__home_open(out, data, true);
    rc = weir_open(out, connect, &options, &err);
    if (rc == 0) return 0;
    weir__exit_error(rc, &err, "--connect");
    return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILURE;
}

int weir__home_close(struct weir *w, int code)
{
    struct weir_error err;
    int rc = weir_close(w, &err);

    if (rc == 0) return code;
    rc = weir__exit_error(rc, &err, "closing the data folder");
    return code != 0 ? code : rc;
}
