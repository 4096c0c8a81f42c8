#define _GNU_SOURCE
#include "cli/home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "cli/exit.h"
#include "cli/folder.h"
#include "cli/serve.h"
#include "cli/serving.h"

#define USUAL_CONNECT                                                                              \
    "Endpoint=sb://" WEIR__SERVE_AMQP ";SharedAccessKeyName=" WEIR__SERVE_RULE                     \
    ";SharedAccessKey=" WEIR__SERVE_DEVELOPMENT_KEY ";UseDevelopmentEmulator=true"
#define ADVICE_BYTES 512
#define USUAL_ADMIN "http://" WEIR__SERVE_HTTP

static void print_line(enum weir_level level, const char *room, const char *line, void *user)
{
    (void)user;
    if (level >= WEIR_WARN) fprintf(stderr, "weir: %s: %s\n", room, line);
}

int weir__home_missing(const char *data)
{
    struct weir_error err;

    if (weir__folder_check(data, &err) != 0) /* nobody may make hubs there, either */
        fprintf(stderr,
                "weir: %s is no data folder: it has no hubs, but other files; check the "
                "path\n",
                data);
    else
        fprintf(stderr,
                "weir: %s: there are no hubs; 'weir hub create' makes the first, --data names "
                "another folder\n",
                data);
    return WEIR__EXIT_NOT_FOUND;
}

int weir__home_unmade(const struct weir_error *err)
{
    return weir__exit_advise(err->code, err, "make the folder above it first, or check the path",
                             "data folder");
}

/* What a folder that is not there means: nobody may make it, or it cannot be made. */
static int say_missing(const char *data, bool must_exist, const struct weir_error *err)
{
    return must_exist ? weir__home_missing(data) : weir__home_unmade(err);
}

static int open_folder(struct weir **out, const char *data, bool must_exist, struct weir_error *err)
{
    struct weir_options options = {.size = sizeof options,
                                   .must_exist = must_exist,
                                   .log = print_line};
    const char *doubt = weir__folder_doubt(data);
    int rc = must_exist ? 0 : weir__folder_check(data, err);

    if (doubt) fprintf(stderr, "weir: %s\n", doubt);
    return rc == 0 ? weir_open(out, data, &options, err) : rc;
}

int weir__home_open(struct weir **out, const char *data, bool must_exist)
{
    struct weir_error err;
    int rc = open_folder(out, data, must_exist, &err);

    if (rc == WEIR_ENOTFOUND) return say_missing(data, must_exist, &err);
    return rc == 0 ? 0 : weir__exit_error(rc, &err, "data folder");
}

int weir__home_close(struct weir *w, int code)
{
    struct weir_error err;
    int rc = weir_close(w, &err);

    if (rc == 0) return code;
    rc = weir__exit_error(rc, &err, "closing the data folder");
    return code != 0 ? code : rc;
}

/* ---- through a server ---- */

/* Where a server is. */
struct place {
    const char *connect;
    const char *admin; /* NULL: the server is to tell it */
    const char *space; /* the id of its folder; NULL: not known */
    bool wait;
};

/* Nobody is called yet. */
static int open_server(struct weir__home *h, const struct weir__command *self,
                       const struct place *at)
{
    struct weir_options options = {.size = sizeof options,
                                   .log = print_line,
                                   .wait = at->wait,
                                   .patience_ms = at->wait ? UINT32_MAX : 0,
                                   .space = at->space,
                                   .admin = at->admin};
    struct weir_error err = {0};
    int rc = weir_open(&h->weir, at->connect, &options, &err);

    h->wire = true;
    if (rc == 0) h->connect = strdup(at->connect);
    if (h->connect) return 0;
    if (rc == 0) rc = WEIR_ENOMEM;
    weir_close(h->weir, NULL);
    weir__exit_error(rc, &err, "%s", self->name);
    return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILURE;
}

/* A process that holds a folder without a sign does not serve it and can be asked for nothing, or is a
 * server that could not leave one. */
static int say_held(const struct weir__common *c, const struct weir_error *locked)
{
    char advice[ADVICE_BYTES];

    snprintf(advice, sizeof advice,
             "if it is 'weir serve', it could not leave its address in the folder, as on a full "
             "disk: name it with --connect; if not, commands share a folder through its server: "
             "stop that process, run 'weir serve --data %.*s', and start both again",
             ADVICE_BYTES / 2, c->data);
    return weir__exit_advise(locked->code, locked, advice, "data folder");
}

/* Somebody has the folder. */
static int reach_holder(struct weir__home *h, const struct weir__command *self,
                        const struct weir__common *c, unsigned want,
                        const struct weir_error *locked)
{
    struct weir__serving sign;
    struct weir_error err;
    int rc = weir__serving_read(c->data, &sign, &err);

    if (rc == WEIR_ENOTFOUND) return say_held(c, locked);
    if (rc != 0) return weir__exit_error(rc, &err, "the server of the data folder");
    if ((want & WEIR__HOME_ADMIN) && !*sign.admin) {
        fprintf(stderr,
                "weir: %s is served by process %ld, without HTTP: start it with --http to change "
                "hubs and keys while it runs\n",
                c->data, sign.pid);
        return WEIR__EXIT_UNREACHABLE;
    }
    fprintf(stderr, "weir: %s is served by process %ld: going through that server\n", c->data,
            sign.pid);
    h->served = true;
    return open_server(h, self,
                       &(struct place){sign.connect, *sign.admin ? sign.admin : NULL,
                                       *sign.space ? sign.space : NULL, c->wait});
}

static int ignore_rule(const struct weir_rule *rule, void *user)
{
    (void)rule, (void)user;
    return 0;
}

/* Whether weir serve is on its usual ports, and whether its usual key is good: 0, or the error of
 * the first question. */
static int knock(struct weir_error *err)
{
    struct weir_options options = {.size = sizeof options, .admin = USUAL_ADMIN};
    struct weir *w;
    int rc = weir_open(&w, USUAL_CONNECT, &options, err);

    if (rc == 0) rc = weir_rule_list(w, NULL, ignore_rule, NULL, err);
    weir_close(w, NULL);
    return rc;
}

/* Nobody named a place, and the usual folder is not there. */
static int reach_usual(struct weir__home *h, const struct weir__command *self,
                       const struct weir__common *c, unsigned want)
{
    struct weir_error err;
    int rc = knock(&err);

    if (rc == 0) {
        fprintf(stderr, "weir: there is no %s: using the server at " WEIR__SERVE_AMQP "\n",
                c->data);
        return open_server(h, self, &(struct place){USUAL_CONNECT, USUAL_ADMIN, NULL, c->wait});
    }
    if (rc == WEIR_EDENIED) {
        fprintf(stderr,
                "weir: there is no %s, and the server at " WEIR__SERVE_HTTP
                " wants a key of its own; --connect names it\n",
                c->data);
        return WEIR__EXIT_FAILURE;
    }
    if (want & WEIR__HOME_MAKE) {
        fprintf(stderr, "weir: using a new folder, %s\n", c->data);
        return weir__home_open(&h->weir, c->data, false);
    }
    fprintf(stderr,
            "weir: there is no %s, and no weir serve at " WEIR__SERVE_HTTP
            "; --data names a folder, --connect a server\n",
            c->data);
    return WEIR__EXIT_NOT_FOUND;
}

/* ---- finding it ---- */

/* What --connect, or WEIR_CONNECT unless --data was given, says; NULL: nothing. */
static const char *find_connect(const struct weir__common *c)
{
    const char *text = getenv("WEIR_CONNECT");

    if (c->connect) return c->connect;
    return !c->data_given && text && *text ? text : NULL;
}

static const char *find_admin(const struct weir__common *c)
{
    const char *text = getenv("WEIR_ADMIN");

    return c->admin ? c->admin : text && *text ? text : NULL;
}

static bool asks_http(unsigned want)
{
    return want & (WEIR__HOME_ADMIN | WEIR__HOME_DETAILS);
}

static int reach_named(struct weir__home *h, const struct weir__command *self,
                       const struct weir__common *c, unsigned want, const char *connect)
{
    char text[WEIR__CONNECTION_TEXT_BYTES];
    int code;

    if (weir__connection_expand(text, connect))
        code = open_server(h, self,
                           &(struct place){text, asks_http(want) ? find_admin(c) : NULL, NULL,
                                           c->wait});
    else /* without its words: they may be a key */
        code = weir__exit_usage(self->name,
                                "%s is no connection string, no HOST:PORT and no sb://HOST",
                                c->connect ? "--connect" : "WEIR_CONNECT");
    OPENSSL_cleanse(text, sizeof text);
    return code;
}

int weir__home_reach(struct weir__home *h, const struct weir__command *self,
                     const struct weir__common *c, unsigned want)
{
    const char *connect = find_connect(c);
    bool must_exist = !(want & WEIR__HOME_MAKE) || !c->data_named;
    struct weir_error err;
    int rc;

    *h = (struct weir__home){0};
    if (c->connect && c->data_given)
        return weir__exit_usage(self->name, "--data and --connect exclude each other");
    if (c->admin && !connect) return weir__exit_usage(self->name, "--admin goes with --connect");
    if (connect) return reach_named(h, self, c, want, connect);
    rc = open_folder(&h->weir, c->data, must_exist, &err);
    if (rc == WEIR_ELOCKED) return reach_holder(h, self, c, want, &err);
    if (rc == WEIR_ENOTFOUND && !c->data_named) return reach_usual(h, self, c, want);
    if (rc == WEIR_ENOTFOUND) return say_missing(c->data, must_exist, &err);
    if (rc != 0) return weir__exit_error(rc, &err, "data folder");
    if (!c->data_named) fprintf(stderr, "weir: using the folder %s\n", c->data);
    return 0;
}

int weir__home_leave(struct weir__home *h, int code)
{
    if (h->connect) explicit_bzero(h->connect, strlen(h->connect)); /* it has a key in it */
    free(h->connect);
    return weir__home_close(h->weir, code);
}
