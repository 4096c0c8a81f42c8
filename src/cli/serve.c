/* serve.c - weir serve: the hubs of a folder on the network, for every client of Azure Event Hubs.
 *
 *   options > hubs that are wanted > folder, or memory > key > hubs > certificate > ports > ready
 *
 * Everything that can be wrong with the command line is found before anything is made. */
#include "cli/serve.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/connection.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/stop.h"
#include "io/descriptors.h"
#include "io/notify.h"
#include "log/fs.h"

#define MEMORY_BYTES_MIN ((uint64_t)8 << 20)
#define MEMORY_SEGMENT_BYTES ((uint64_t)4 << 20)
#define MEMORY_DIR "memory"
#define BUFFERS_MIN ((uint64_t)8 << 20)
#define STRANGERS_MIN ((uint64_t)1 << 20)
#define SIGN_RETRY_MS 5000
#define DESCRIPTORS_MIN 64 /* for loops, ports and logs; connections get what is more */

static const struct weir__args_row serve_rows[] = {
    {"hub", WEIR__ARGS_LIST, offsetof(struct weir__serve_options, hubs), "NAME:N[:A,B]",
     "make a hub of N partitions, with groups A and B, when it is not there"},
    {"config", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, config), "FILE",
     "the same from a Config.json of Microsoft's emulator"},
    {"in-memory", WEIR__ARGS_FLAG, offsetof(struct weir__serve_options, in_memory), NULL,
     "keep nothing: no folder"},
    {"memory-max", WEIR__ARGS_BYTES, offsetof(struct weir__serve_options, memory_max), "SIZE",
     "with --in-memory: how much is held before publishing is refused (512M)"},
    {"amqp", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, amqp), "HOST:PORT",
     "where clients connect (default " WEIR__SERVE_AMQP "; port 0: a free one)"},
    {"amqps", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, amqps), "HOST:PORT",
     "where they connect with TLS (default " WEIR__SERVE_AMQPS "), or off"},
    {"http", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, http), "HOST:PORT",
     "where HTTP is answered (default " WEIR__SERVE_HTTP "), or off"},
    {"https", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, https), "HOST:PORT",
     "where it is with TLS, and AMQP inside WebSockets (off unless asked; usual: 8443)"},
    {"http-name", WEIR__ARGS_LIST, offsetof(struct weir__serve_options, http_names), "NAME",
     "answer HTTP from this machine by this name, too (localhost and its own name always work)"},
    {"tls-certificate", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, certificate), "FILE",
     "the certificate and its chain, PEM, instead of a local authority's"},
    {"tls-key", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, key), "FILE", "its key, PEM"},
    {"tls-client-ca", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, client_ca), "FILE",
     "let clients in whose certificates these authorities signed: PEM; CN names their rule"},
    {"issuer", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, issuer), "URL",
     "accept tokens (JWT) of this issuer, too: put-token of type jwt, HTTP's Bearer"},
    {"jwks", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, jwks), "FILE",
     "with --issuer: its public keys, a JSON Web Key Set"},
    {"audience", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, audience), "TEXT",
     "with --issuer: whom its tokens must be for (default https://eventhubs.azure.net)"},
    {"role-claim", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, role_claim), "NAME",
     "with --issuer: the claim that has the roles (default roles)"},
    {"role", WEIR__ARGS_LIST, offsetof(struct weir__serve_options, roles), "NAME=RIGHTS",
     "with --issuer: a role that gives send, listen or manage, instead of Azure's three"},
    {"authority", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, authority), "DIR",
     "the local authority's folder (default ~/.local/share/weir/authority)"},
    {"buffers", WEIR__ARGS_BYTES, offsetof(struct weir__serve_options, buffers), "SIZE",
     "memory for what clients send and are sent, before they are refused (256M)"},
    {"stranger-buffers", WEIR__ARGS_BYTES, offsetof(struct weir__serve_options, stranger_buffers),
     "SIZE", "of that, for those without a good token (32M, or a quarter if that is less)"},
    {"strangers-per-address", WEIR__ARGS_NUMBER,
     offsetof(struct weir__serve_options, strangers_per_address), "N",
     "connections of one address without a good token (1024)"},
    {"connections-max", WEIR__ARGS_NUMBER, offsetof(struct weir__serve_options, connections_max),
     "N", "connections of each port (16384)"},
    {"message-timeout", WEIR__ARGS_DURATION, offsetof(struct weir__serve_options, message_timeout),
     "TIME", "from the first frame of a message to its last (60s)"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct weir__serve_options, json), NULL,
     "say that it is ready with one line of JSON"},
    {"log-format", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, log_format), "WORD",
     "how it logs on standard error: text (default), logfmt or json"},
    {"log-level", WEIR__ARGS_TEXT, offsetof(struct weir__serve_options, log_level), "WORD",
     "what is logged: debug, info (default), warn or error, and what is worse"},
    {"trace", WEIR__ARGS_FLAG, offsetof(struct weir__serve_options, trace), NULL,
     "print every frame on standard error"},
    {"events-only", WEIR__ARGS_FLAG, offsetof(struct weir__serve_options, events_only), NULL,
     "deliver events one by one, also to clients that desire stored batches"},
    {"allow-development-key", WEIR__ARGS_FLAG,
     offsetof(struct weir__serve_options, allow_development_key), NULL,
     "let " WEIR__SERVE_DEVELOPMENT_KEY " in from other machines too"},
    {0},
};

/* ---- options ---- */

/* NULL: off. */
static void set_address(const char **address, bool *given, const char *otherwise)
{
    *given = *address != NULL;
    if (!*address) *address = otherwise;
    if (strcmp(*address, "off") == 0) *address = NULL;
}

/* Found before a key is chosen: a slip of the pen must not pass for another machine's name. */
static bool check_addresses(const struct weir__command *self, const struct weir__serve_options *o,
                            int *out_exit)
{
    const char *const addresses[] = {o->amqp, o->amqps, o->http, o->https};

    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        if (!addresses[i] || weir__connection_is_address(addresses[i])) continue;
        *out_exit = weir__exit_usage(self->name, "an address is HOST:PORT, not '%s'", addresses[i]);
        return false;
    }
    return true;
}

/* What is not given stays 0, which is the server's default. */
static bool check_limits(const struct weir__command *self, const struct weir__serve_options *o,
                         int *out_exit)
{
    const struct {
        const char *name;
        const struct weir__args_number *n;
        uint64_t least, most;
    } rows[] = {
        {"buffers must be 8M or more", &o->buffers, BUFFERS_MIN, SIZE_MAX},
        {"stranger-buffers must be 1M or more", &o->stranger_buffers, STRANGERS_MIN, SIZE_MAX},
        {"strangers-per-address must be 1 or more", &o->strangers_per_address, 1, UINT32_MAX},
        {"connections-max must be 1 or more", &o->connections_max, 1, UINT32_MAX},
        {"message-timeout must be 1s or more", &o->message_timeout, 1000, UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].n->given) continue;
        if (rows[i].n->value >= rows[i].least && rows[i].n->value <= rows[i].most) continue;
        *out_exit = weir__exit_usage(self->name, "--%s", rows[i].name);
        return false;
    }
    return true;
}

/* false: the command is over, with *out_exit. The command line outdoes the environment also where
 * they contradict each other. */
static bool read_options(const struct weir__command *self, int argc, char **argv,
                         struct weir__serve_options *o, int *out_exit)
{
    bool in_memory;

    if (!weir__args_parse(self, argc, argv, &o->common, out_exit)) return false;
    in_memory = o->in_memory;
    if (!weir__args_environment(self, &o->common, out_exit)) return false;
    if (o->common.data_given && in_memory) {
        *out_exit = weir__exit_usage(self->name, "--data and --in-memory exclude each other");
        return false;
    }
    if (o->common.data_given) o->in_memory = false;
    if (o->memory_max.given && !o->in_memory) {
        *out_exit = weir__exit_usage(self->name, "--memory-max goes with --in-memory");
        return false;
    }
    if (!o->memory_max.given) o->memory_max.value = WEIR__SERVE_MEMORY_BYTES;
    if (o->memory_max.value < MEMORY_BYTES_MIN) {
        *out_exit = weir__exit_usage(self->name, "--memory-max must be 8M or more");
        return false;
    }
    if (!check_limits(self, o, out_exit)) return false;
    if (!o->amqp) o->amqp = WEIR__SERVE_AMQP;
    set_address(&o->amqps, &o->amqps_given, WEIR__SERVE_AMQPS);
    set_address(&o->http, &o->http_given, WEIR__SERVE_HTTP);
    if (o->https && strcmp(o->https, "off") == 0) o->https = NULL;
    return check_addresses(self, o, out_exit);
}

static bool read_log(const struct weir__command *self, struct weir__serve *s, int *out_exit)
{
    if (!weir__serve_log_format(&s->log, s->o.log_format)) {
        *out_exit = weir__exit_usage(self->name, "--log-format is text, logfmt or json, not '%s'",
                                     s->o.log_format);
        return false;
    }
    if (!weir__serve_log_level(&s->log, s->o.log_level)) {
        *out_exit =
            weir__exit_usage(self->name, "--log-level is debug, info, warn or error, not '%s'",
                             s->o.log_level);
        return false;
    }
    if (s->o.trace) s->log.level = WEIR__DEBUG;
    s->warnings.logger = (struct weir__logger){weir__serve_log_line, &s->log};
    return true;
}

static int read_wanted(struct weir__serve *s, struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < s->o.hubs.count; i++)
        rc = weir__wanted_parse(&s->wanted, s->o.hubs.at[i], err);
    if (rc == 0 && s->o.config) rc = weir__config_read(s->o.config, &s->wanted, &s->warnings, err);
    return rc;
}

/* ---- running ---- */

void weir__serve_notify(struct weir__serve *s, const char *state)
{
    struct weir_error err;

    if (weir__notify_send(getenv("NOTIFY_SOCKET"), state, &err) != 0)
        weir__warn(&s->warnings, "%s", err.text);
}

/* Until there is a sign, because the disk was full, it is tried again. */
static void wait_for_stop(struct weir__serve *s, struct weir__stop *stop)
{
    struct pollfd fd = {.fd = weir__stop_fd(stop), .events = POLLIN};

    while (!weir__stop_asked(stop)) {
        if (poll(&fd, 1, s->sign_missing ? SIGN_RETRY_MS : -1) == 0) weir__serve_put_up_sign(s);
        if (weir__stop_take_hup(stop)) weir__serve_reload(s);
    }
}

static int fail(const struct weir__serve *s, int rc, const struct weir_error *err)
{
    const char *advice = rc == WEIR_ENOTFOUND ? "check the path" : NULL;

    if (rc != WEIR_ENOSPACE || !s->o.in_memory) return weir__exit_advise(rc, err, advice, "serve");
    fprintf(stderr, "weir: serve: %s; --memory-max allows more\n", err->text);
    return WEIR__EXIT_FAILURE;
}

static int serve_namespace(struct weir__serve *s, struct weir__stop *stop)
{
    struct weir__rule owner;
    struct weir_error err;
    int rc = weir__serve_choose_key(s, &err);

    if (rc == 0)
        rc = weir__namespace_own(s->ns, &owner, &err); /* who has its key may come at once */
    if (rc == 0) rc = weir__wanted_make(&s->wanted, s->ns, &err);
    if (rc == 0) rc = weir__serve_open_tls(s, &err);
    if (rc != 0) return fail(s, rc, &err);
    weir__namespace_open_hubs(s->ns, NULL);
    rc = weir__serve_listen(s, &err);
    if (rc == WEIR_EEXIST) return weir__serve_port_taken(&err);
    if (rc != 0) return fail(s, rc, &err);
    weir__serve_put_up_sign(s);
    weir__serve_print_ready(s);
    weir__serve_notify(s, "READY=1");
    wait_for_stop(s, stop);
    weir__serve_notify(s, "STOPPING=1");
    weir__serve_take_down_sign(s);
    weir__server_stop(s->server);
    return WEIR__EXIT_OK;
}

/* On a folder, or with a file system of its own that goes when it ends. */
static int serve_data(struct weir__serve *s, struct weir__fs *memory, struct weir__stop *stop)
{
    struct weir__namespace_options options = {.fs = memory,
                                              .segment_bytes_max =
                                                  memory ? MEMORY_SEGMENT_BYTES : 0,
                                              .logger = s->warnings.logger};
    struct weir_error err;
    int code, rc;

    if (memory)
        rc = weir__namespace_open(&s->ns, MEMORY_DIR, &options, &err);
    else
        rc = weir__serve_open_folder(s, s->o.common.data, &options, stop, &err);
    if (rc == WEIR_ENOTFOUND) return weir__home_unmade(&err);
    if (rc != 0) return weir__exit_error(rc, &err, "data folder");
    code = serve_namespace(s, stop);
    weir__tls_context_free(s->tls);
    rc = weir__namespace_close(s->ns, &err);
    if (rc == 0) return code;
    rc = weir__exit_error(rc, &err, "closing the data folder");
    return code != 0 ? code : rc;
}

static int serve(struct weir__serve *s)
{
    struct weir__fs *memory = NULL;
    struct weir__stop *stop = NULL;
    struct weir_error err;
    int code, rc = read_wanted(s, &err);

    if (rc == 0) rc = weir__serve_open_issuer(s, &err);
    if (rc == 0) rc = weir__stop_start_server(&stop, &err);
    if (rc == 0 && s->o.in_memory) rc = weir__fs_memory_new(&memory, s->o.memory_max.value, &err);
    code = rc == 0 ? serve_data(s, memory, stop) : fail(s, rc, &err);
    weir__fs_memory_free(memory);
    weir__stop_end(stop);
    return code;
}

/* Rather now than in the middle of something that cannot do without. */
static bool has_descriptors(int *out_code)
{
    struct weir_error err = {.code = WEIR_EBUSY};

    if (weir__descriptors_left(DESCRIPTORS_MIN)) return true;
    snprintf(err.text, sizeof err.text, "fewer than %d files and sockets can be opened",
             DESCRIPTORS_MIN);
    *out_code = weir__exit_advise(err.code, &err, "raise ulimit -n", "serve");
    return false;
}

static int run_serve(const struct weir__command *self, int argc, char **argv)
{
    struct weir__serve *s = calloc(1, sizeof *s);
    int code;

    if (!s) return weir__exit_error(WEIR_ENOMEM, NULL, "serve");
    s->began_ns = weir__mono_ns();
    weir__descriptors_raise(); /* before the logs of many hubs are opened */
    if (read_options(self, argc, argv, &s->o, &code) && read_log(self, s, &code) &&
        has_descriptors(&code) && weir__serve_read_issuer(s, &code))
        code = serve(s);
    weir__wanted_fini(&s->wanted);
    weir__serve_free_issuer(s);
    free(s);
    return code;
}

const struct weir__command weir__command_serve = {
    .name = "serve",
    .words = "",
    .summary = "serve the hubs of a folder to Azure Event Hubs clients",
    .more =
        "Every option may be an environment variable instead: WEIR_AMQP, WEIR_IN_MEMORY=1, "
        "WEIR_HUB\n"
        "(several with spaces between them) and so on. A new folder accepts the key of "
        "Microsoft's\n"
        "emulator from this machine; a server that others can reach gets a key of its own, and\n"
        "'weir key' makes more. 'weir hub', 'weir key', 'weir send' and 'weir tail' on the folder "
        "go\n"
        "through the server while it runs. What was acknowledged is on disk. SIGHUP makes it "
        "read\n"
        "certificates, keys, --jwks and --config again. Ctrl-C stops it, a second one at once.",
    .rows = serve_rows,
    .run = run_serve,
};
