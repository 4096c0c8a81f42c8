/* wire.c - the hubs behind a connection string: opening and closing. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/rand.h"
#include "client/wire.h"
#include "client/wire_admin.h"

/* ---- for the other files ---- */

int weir__wire_check_hub(const struct weir__wire *w, const char *hub, struct weir_error *err)
{
    if (!*hub || strlen(hub) > WEIR__HUB_NAME_MAX)
        return weir__fail(err, WEIR_EINVAL, "a hub's name has 1 to %d bytes", WEIR__HUB_NAME_MAX);
    if (!*w->to.hub || strcasecmp(hub, w->to.hub) == 0) return 0;
    return weir__fail(err, WEIR_EINVAL,
                      "the connection string is for hub '%.64s' only, not '%.64s'", w->to.hub, hub);
}

int weir__wire_late(struct weir__wire *w, int64_t waited_ms, struct weir_error *err)
{
    struct weir_error trouble;

    weir__mutex_lock(&w->lock);
    trouble = w->trouble;
    weir__mutex_unlock(&w->lock);
    if (trouble.code != 0)
        return weir__fail(err, trouble.code, "no answer from %s within %lld ms: %s", w->to.address,
                          (long long)waited_ms, trouble.text);
    return weir__fail(err, WEIR_ETIMEDOUT, "no answer from %s within %lld ms", w->to.address,
                      (long long)waited_ms);
}

/* ---- lives ---- */

static void free_wire(struct weir__wire *w)
{
    weir__loops_free(w->loops);
    weir__tls_context_free(w->tls);
    weir__tls_context_free(w->http_tls);
    weir__cond_fini(&w->changed);
    weir__mutex_fini(&w->lock);
    weir__wire_pool_fini(&w->pool);
    OPENSSL_cleanse(&w->to, sizeof w->to); /* it has a key in it */
    free(w);
}

/* HOST, or HOST:PORT when the port is not one of the usual ones. */
static int space(struct weir__backend *b, char out[WEIR_SPACE_BYTES], struct weir_error *err)
{
    static const char *const usual[] = {":5671", ":5672", ":443", ":5300"};
    struct weir__wire *w = (struct weir__wire *)b;
    const char *port = strrchr(w->to.address, ':');

    (void)err;
    for (size_t i = 0; port && i < sizeof usual / sizeof usual[0]; i++)
        if (strcmp(port, usual[i]) == 0) port = NULL;
    if (*w->space)
        memcpy(out, w->space, sizeof w->space);
    else
        snprintf(out, WEIR_SPACE_BYTES, "%s%s", w->to.host, port ? port : "");
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    return 0;
}

static int close_wire(struct weir__backend *b, struct weir_error *err)
{
    struct weir__wire *w = (struct weir__wire *)b;

    (void)err;
    weir__loop_post(w->loop, &w->close_post);
    weir__mutex_lock(&w->lock);
    while (!w->closed) weir__cond_wait(&w->changed, &w->lock, INT64_MAX);
    weir__mutex_unlock(&w->lock);
    free_wire(w);
    return 0;
}

static const struct weir__backend_ops wire_ops = {
    .version = WEIR__BACKEND_VERSION,
    .open_sender = weir__wire_open_sender,
    .open_source = weir__wire_open_source,
    .hub_info = weir__wire_hub_info,
    .hub_stats = weir__admin_hub_stats,
    .partition_info = weir__wire_partition_info,
    .group_list = weir__admin_group_list,
    .space = space,
    .close = close_wire,
};

static void pass_line(enum weir__level level, const char *room, const char *line, void *user)
{
    static const enum weir_level levels[] = {[WEIR__DEBUG] = WEIR_DEBUG,
                                             [WEIR__INFO] = WEIR_INFO,
                                             [WEIR__WARN] = WEIR_WARN,
                                             [WEIR__ERROR] = WEIR_ERROR};
    struct weir__wire *w = user;

    w->log(levels[level], room, line, w->log_user);
}

static int take_options(struct weir__wire *w, const struct weir_options *o, struct weir_error *err)
{
    if (o->space && strlen(o->space) >= sizeof w->space)
        return weir__fail(err, WEIR_EINVAL, "options: the space has more than %zu bytes",
                          sizeof w->space - 1);
    snprintf(w->space, sizeof w->space, "%s", o->space ? o->space : "");
    w->batch_bytes_max = o->batch_bytes_max;
    w->token_s = o->token_s ? o->token_s : WEIR__WIRE_TOKEN_S;
    w->idle_ms = o->idle_ms ? o->idle_ms : WEIR__WIRE_IDLE_MS;
    w->patience_ms = o->patience_ms ? o->patience_ms : WEIR__WIRE_PATIENCE_MS;
    w->wait = o->wait;
    w->log = o->log;
    w->log_user = o->log_user;
    if (w->log) w->logger = (struct weir__logger){pass_line, w};
    return 0;
}

/* Who we are to the other side: the same for all connections of this wire, and nobody else's. */
static int name_container(struct weir__wire *w, struct weir_error *err)
{
    struct weir__rand rand = weir__rand_system();
    uint64_t chance[2];
    int rc = rand.fill(rand.self, chance, sizeof chance, err);

    if (rc != 0) return rc;
    snprintf(w->container, sizeof w->container, "weir-%016llx%016llx",
             (unsigned long long)chance[0], (unsigned long long)chance[1]);
    return 0;
}

int weir__wire_open(struct weir__backend **out, const char *where,
                    const struct weir_options *options, struct weir_error *err)
{
    struct weir__loops_options one = {.count = 1};
    struct weir__tls_options tls = {.client = true, .authorities_file = options->ca_file};
    struct weir__wire *w = calloc(1, sizeof *w);
    int rc;

    if (!w) return weir__fail(err, WEIR_ENOMEM, "no memory for a connection");
    w->base.ops = &wire_ops;
    w->base.admin = &weir__wire_admin;
    weir__mutex_init(&w->lock);
    weir__wire_pool_init(&w->pool);
    weir__cond_init(&w->changed);
    weir__timer_init(&w->tick, weir__wire_do_tick, w);
    weir__timer_init(&w->retry, weir__wire_do_retry, w);
    weir__post_init(&w->work, weir__wire_do_work, w);
    weir__post_init(&w->close_post, weir__wire_do_close, w);
    rc = take_options(w, options, err);
    if (rc == 0) rc = weir__connstr_parse(&w->to, where, err);
    if (rc == 0) rc = name_container(w, err);
    if (rc == 0 && !w->to.plain) rc = weir__tls_context_new(&w->tls, &tls, err);
    if (rc == 0) rc = weir__wire_admin_open(w, options, err);
    if (rc == 0) rc = weir__loops_start(&w->loops, &one, err);
    if (rc != 0) {
        free_wire(w);
        return rc;
    }
    w->loop = weir__loops_at(w->loops, 0);
    *out = &w->base;
    return 0;
}
