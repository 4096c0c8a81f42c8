/* serve.c - weir serve: the hubs of a folder on the network, for every client of Azure Event Hubs.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/json.h"
#include "cli/stop.h"
#include "server/server.h"

#define DEFAULT_AMQP "127.0.0.1:5672"
#define DEFAULT_HTTP "127.0.0.1:5300"
#define RULE_NAME "RootManageSharedAccessKey"
#define DEVELOPMENT_KEY "SAS_KEY_VALUE"
#define HUB_TEXT_MAX 4096
#define HUB_GROUPS_MAX 20u
#define LINE_BYTES_MAX 2048

struct serve_options {
    struct weir__common common;
    struct weir__args_list hubs;
    const char *amqp, *amqps, *http, *certificate, *key;
    bool json, trace, allow_development_key;
};

static const struct weir__args_row serve_rows[] = {
    {"hub", WEIR__ARGS_LIST, offsetof(struct serve_options, hubs), "NAME:N[:A,B]",
     "make a hub of N partitions, with groups A and B, when it is not there"},
    {"amqp", WEIR__ARGS_TEXT, offsetof(struct serve_options, amqp), "HOST:PORT",
     "where clients connect (default " DEFAULT_AMQP "; port 0: a free one)"},
    {"amqps", WEIR__ARGS_TEXT, offsetof(struct serve_options, amqps), "HOST:PORT",
     "where they connect with TLS; needs the next two"},
    {"tls-certificate", WEIR__ARGS_TEXT, offsetof(struct serve_options, certificate), "FILE",
     "the certificate and its chain, PEM"},
    {"tls-key", WEIR__ARGS_TEXT, offsetof(struct serve_options, key), "FILE", "its key, PEM"},
    {"http", WEIR__ARGS_TEXT, offsetof(struct serve_options, http), "HOST:PORT",
     "where GET /health answers (default " DEFAULT_HTTP ")"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct serve_options, json), NULL,
     "say that it is ready with one line of JSON"},
    {"trace", WEIR__ARGS_FLAG, offsetof(struct serve_options, trace), NULL,
     "print every frame on standard error"},
    {"allow-development-key", WEIR__ARGS_FLAG,
     offsetof(struct serve_options, allow_development_key), NULL,
     "let " DEVELOPMENT_KEY " in from other machines too"},
    {0},
};

/* NULL when it is not set, or empty. */
static const char *environment(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

static bool is_on(const char *name)
{
    const char *text = environment(name);

    return text && strcmp(text, "0") != 0;
}

/* What an option is when the command line does not say. WEIR_HUB may name several, with spaces
 * between them; hubs is room for it. false: it is too long. */
static bool take_environment(struct serve_options *o, char hubs[HUB_TEXT_MAX])
{
    const char *text = environment("WEIR_HUB");
    char *rest = NULL;

    if (!o->amqp) o->amqp = environment("WEIR_AMQP");
    if (!o->amqps) o->amqps = environment("WEIR_AMQPS");
    if (!o->http) o->http = environment("WEIR_HTTP");
    if (!o->certificate) o->certificate = environment("WEIR_TLS_CERTIFICATE");
    if (!o->key) o->key = environment("WEIR_TLS_KEY");
    o->json |= is_on("WEIR_JSON");
    o->trace |= is_on("WEIR_TRACE");
    o->allow_development_key |= is_on("WEIR_ALLOW_DEVELOPMENT_KEY");
    if (o->hubs.count > 0 || !text) return true;
    if (strlen(text) >= HUB_TEXT_MAX) return false;
    memcpy(hubs, text, strlen(text) + 1);
    for (char *h = strtok_r(hubs, " ", &rest); h; h = strtok_r(NULL, " ", &rest)) {
        if (o->hubs.count == WEIR__ARGS_LIST_MAX) return false;
        o->hubs.at[o->hubs.count++] = h;
    }
    return true;
}

/* Lines may hold what clients sent: nothing in them may reach the terminal but as text. */
static void print_line(enum weir__level level, const char *room, const char *line, void *user)
{
    const struct serve_options *o = user;
    char text[LINE_BYTES_MAX];
    size_t len = 0;

    if (level < WEIR__WARN && !o->trace) return;
    for (; line[len] && len + 1 < sizeof text; len++)
        text[len] = (unsigned char)line[len] < ' ' || line[len] == 127 ? '?' : line[len];
    text[len] = '\0';
    fprintf(stderr, "weir: %s: %s\n", room, text);
}

/* ---- hubs ---- */

struct hub_text {
    char text[HUB_TEXT_MAX];
    const char *groups[HUB_GROUPS_MAX];
    struct weir__hub_config config;
};

/* NAME:PARTITIONS[:GROUP,...] */
static bool parse_hub(const char *text, struct hub_text *out)
{
    char *rest = NULL, *colon;
    uint64_t partitions;

    memset(out, 0, sizeof *out);
    if (strlen(text) >= sizeof out->text) return false;
    memcpy(out->text, text, strlen(text) + 1);
    out->config.name = out->text;
    out->config.groups = out->groups;
    colon = strchr(out->text, ':');
    if (!colon) return false;
    *colon++ = '\0';
    text = colon;
    colon = strchr(colon, ':');
    if (colon) *colon++ = '\0';
    if (!weir__args_number(text, &partitions) || partitions > UINT32_MAX) return false;
    out->config.partitions = (uint32_t)partitions;
    for (char *g = colon ? strtok_r(colon, ",", &rest) : NULL; g; g = strtok_r(NULL, ",", &rest)) {
        if (out->config.group_count == HUB_GROUPS_MAX) return false;
        out->groups[out->config.group_count++] = g;
    }
    return true;
}

/* A hub that is there already must be the one that is wanted; groups are added. */
static int agree_hub(struct weir__namespace *ns, const struct weir__hub_config *config,
                     struct weir_error *err)
{
    struct weir__hub *hub;
    int rc = weir__namespace_use(ns, config->name, &hub, err);

    if (rc != 0) return rc;
    if (weir__hub_partitions(hub) != config->partitions)
        rc = weir__fail(err, WEIR_EINVAL,
                        "hub '%s' has %u partitions, not %u, and they are for good", config->name,
                        weir__hub_partitions(hub), config->partitions);
    weir__hub_release(hub);
    for (uint32_t i = 0; rc == 0 && i < config->group_count; i++) {
        rc = weir__namespace_group_add(ns, config->name, config->groups[i], err);
        if (rc == WEIR_EEXIST) rc = 0;
    }
    return rc;
}

static int make_hubs(struct weir__namespace *ns, const struct weir__args_list *hubs,
                     struct weir_error *err)
{
    struct hub_text hub;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < hubs->count; i++) {
        if (!parse_hub(hubs->at[i], &hub))
            return weir__fail(err, WEIR_EINVAL,
                              "--hub must be NAME:PARTITIONS[:GROUP,...], not '%s'", hubs->at[i]);
        rc = weir__namespace_hub_create(ns, &hub.config, err);
        if (rc == WEIR_EEXIST) rc = agree_hub(ns, &hub.config, err);
    }
    return rc;
}

/* ---- keys ---- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
           strncmp(address, "localhost:", 10) == 0;
}

/* A new folder gets a first rule. Its key is the one of Microsoft's emulator, which everybody
 * knows, so it is for this machine only unless somebody insists. */
static int choose_key(struct weir__namespace *ns, const struct serve_options *o,
                      struct weir__rule *out, struct weir_error *err)
{
    struct weir__rule rules[WEIR__ACCESS_RULES_MAX],
        rule = {.name = RULE_NAME, .rights = WEIR__RIGHTS_ALL};
    bool local = is_loopback(o->amqp) && (!o->amqps || is_loopback(o->amqps));
    bool known = local || o->allow_development_key;
    uint32_t count;
    int rc = weir__namespace_rules(ns, NULL, rules, WEIR__ACCESS_RULES_MAX, &count, err);

    if (rc == 0 && count == 0) {
        if (known) memcpy(rule.key[WEIR__KEY_PRIMARY], DEVELOPMENT_KEY, sizeof DEVELOPMENT_KEY);
        rc = weir__namespace_rule_add(ns, NULL, &rule, err);
        if (rc == 0)
            rc = weir__namespace_rules(ns, NULL, rules, WEIR__ACCESS_RULES_MAX, &count, err);
    }
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (strcmp(rules[i].key[WEIR__KEY_PRIMARY], DEVELOPMENT_KEY) == 0 && !known)
            return weir__fail(err, WEIR_EDENIED,
                              "the folder accepts the well-known key " DEVELOPMENT_KEY
                              ", which is for this machine only: listen on 127.0.0.1, use another "
                              "folder, or give --allow-development-key");
    if (rc == 0 && count > 0) *out = rules[0];
    return rc;
}

/* ---- ready ---- */

/* Port behind the host that clients are told: any address means this machine. */
static void format_string(const char *address, const struct weir__rule *rule, char *to, size_t room)
{
    const char *port = strrchr(address, ':');
    int host = (int)(port - address);

    if (strncmp(address, "0.0.0.0", 7) == 0 || strncmp(address, "[::]", 4) == 0 ||
        strncmp(address, "127.0.0.1", 9) == 0) {
        address = "localhost";
        host = 9;
    }
    snprintf(to, room,
             "Endpoint=sb://%.*s%s;SharedAccessKeyName=%s;SharedAccessKey=%s;"
             "UseDevelopmentEmulator=true;",
             host, address, strcmp(port, ":5672") == 0 ? "" : port, rule->name,
             rule->key[WEIR__KEY_PRIMARY]);
}

/* A string of JSON, or null. */
static void print_address(const char *address)
{
    if (address)
        printf("\"%s\"", address);
    else
        printf("null");
}

static void print_ready(const struct weir__server *server, const struct serve_options *o,
                        const struct weir__rule *rule)
{
    const char *amqps = weir__server_amqps(server), *http = weir__server_http(server);
    char string[1024];

    format_string(weir__server_amqp(server), rule, string, sizeof string);
    if (o->json) {
        printf("{\"ready\":true,\"amqp\":\"%s\",\"amqps\":", weir__server_amqp(server));
        print_address(amqps);
        printf(",\"http\":");
        print_address(http);
        printf(",\"connection_string\":");
        weir__json_text(stdout, weir_text(string));
        printf("}\n");
    } else {
        printf("weir is ready.\n\n  amqp    %s\n  amqps   %s\n  health  %s%s%s\n  data    %s\n\n"
               "connection string for every Event Hubs client:\n\n  %s\n\n"
               "try:  curl http://%s/health\n"
               "      weir serve --hub orders:4 --trace\n\nCtrl-C stops it.\n",
               weir__server_amqp(server), amqps ? amqps : "not served",
               http ? "http://" : "not served", http ? http : "", http ? "/health" : "",
               o->common.data, string, http ? http : "HOST:PORT");
    }
    fflush(stdout);
}

/* ---- running ---- */

static void wait_for_stop(const struct weir__stop *stop)
{
    struct pollfd fd = {.fd = weir__stop_fd(stop), .events = POLLIN};

    while (!weir__stop_asked(stop)) poll(&fd, 1, -1);
}

static int serve_error(int rc, const struct weir_error *err)
{
    if (rc != WEIR_EEXIST) return weir__exit_error(rc, err, "serve");
    fprintf(
        stderr,
        "weir: serve: %s; stop that process, or choose another port with --amqp, --amqps or --http "
        "(port 0 picks a free one)\n",
        err->text);
    return WEIR__EXIT_FAILURE;
}

/* Tries the default port of HTTP but lives without it; a port that was asked for must be had. */
static int start_server(struct weir__server **out, struct weir__namespace *ns,
                        struct weir__tls_context *tls, struct serve_options *o, bool http_given,
                        struct weir_error *err)
{
    struct weir__server_options options = {.ns = ns,
                                           .amqp = o->amqp,
                                           .amqps = o->amqps,
                                           .http = o->http,
                                           .tls = tls,
                                           .trace = o->trace,
                                           .logger = {print_line, o}};
    int rc = weir__server_start(out, &options, err);

    if (rc != WEIR_EEXIST || http_given || !strstr(err->text, o->http)) return rc;
    fprintf(stderr, "weir: serve: %s; going on without it\n", err->text);
    options.http = NULL;
    return weir__server_start(out, &options, err);
}

static int open_tls(struct weir__tls_context **out, const struct serve_options *o,
                    struct weir_error *err)
{
    struct weir__tls_options options = {.certificate_file = o->certificate, .key_file = o->key};

    if (!o->amqps) return 0;
    if (!o->certificate || !o->key)
        return weir__fail(err, WEIR_EINVAL, "--amqps needs --tls-certificate and --tls-key");
    return weir__tls_context_new(out, &options, err);
}

static int serve_namespace(struct weir__namespace *ns, struct serve_options *o, bool http_given,
                           const struct weir__stop *stop)
{
    struct weir__rule rule = {.name = RULE_NAME};
    struct weir__tls_context *tls = NULL;
    struct weir__server *server = NULL;
    struct weir_error err;
    int rc = make_hubs(ns, &o->hubs, &err);

    if (rc == 0) rc = choose_key(ns, o, &rule, &err);
    if (rc == 0) rc = open_tls(&tls, o, &err);
    if (rc != 0) return weir__exit_error(rc, &err, "serve");
    weir__namespace_open_hubs(ns, NULL);
    rc = start_server(&server, ns, tls, o, http_given, &err);
    if (rc == 0) {
        print_ready(server, o, &rule);
        wait_for_stop(stop);
        weir__server_stop(server);
    }
    weir__tls_context_free(tls);
    return rc == 0 ? WEIR__EXIT_OK : serve_error(rc, &err);
}

static int run_serve(const struct weir__command *self, int argc, char **argv)
{
    struct serve_options o = {0};
    struct weir__namespace_options options = {.logger = {print_line, &o}};
    struct weir__namespace *ns;
    struct weir__stop *stop;
    struct weir_error err;
    char hubs[HUB_TEXT_MAX];
    bool http_given;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (!take_environment(&o, hubs)) return weir__exit_usage(self->name, "WEIR_HUB is too long");
    http_given = o.http != NULL;
    if (!o.amqp) o.amqp = DEFAULT_AMQP;
    if (!o.http) o.http = DEFAULT_HTTP;
    rc = weir__stop_start(&stop, NULL, NULL, &err);
    if (rc != 0) return weir__exit_error(rc, &err, "serve");
    rc = weir__namespace_open(&ns, o.common.data, &options, &err);
    if (rc != 0) {
        code = weir__exit_error(rc, &err, "data folder");
    } else {
        code = serve_namespace(ns, &o, http_given, stop);
        rc = weir__namespace_close(ns, &err);
        if (rc != 0) code = weir__exit_error(rc, &err, "closing the data folder");
    }
    weir__stop_end(stop);
    return code;
}

const struct weir__command weir__command_serve = {
    .name = "serve",
    .words = "",
    .summary = "serve the hubs of a folder to Azure Event Hubs clients",
    .more =
        "Every option may be an environment variable instead: WEIR_AMQP, WEIR_HUB (several with\n"
        "spaces between them) and so on. A new folder accepts the key of Microsoft's emulator\n"
        "from this machine; a server that others can reach gets a key of its own. What was\n"
        "acknowledged is on disk. Ctrl-C stops it.",
    .rows = serve_rows,
    .run = run_serve,
};
