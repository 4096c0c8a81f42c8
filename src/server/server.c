#include "server/server.h"

#include <limits.h>
#include <stdlib.h>

#include "io/descriptors.h"
#include "server/state.h"
#include "server/web.h"

/* ---- stopping ----
 *
 *   no more are accepted > the clients leave, or their time is up > sealed > the workers end >
 *   the disk has everything > the last answers are sent > the loops end */

/* One more loop has done something. */
static void count_loop(struct weir__server *s, uint32_t *count)
{
    weir__mutex_lock(&s->lock);
    (*count)++;
    weir__cond_broadcast(&s->changed);
    weir__mutex_unlock(&s->lock);
}

/* Waits until all loops have done it. */
static void wait_for_loops(struct weir__server *s, const uint32_t *count)
{
    weir__mutex_lock(&s->lock);
    while (*count < weir__loops_count(s->loops)) weir__cond_wait(&s->changed, &s->lock, INT64_MAX);
    weir__mutex_unlock(&s->lock);
}

static void stop_loop(void *arg)
{
    struct weir__server_loop *l = arg;
    struct weir__connection *c = l->connections, *next;
    struct weir__visit *v = l->visits, *next_visit;

    l->stopping = true;
    for (; c; c = next) {
        next = c->next;
        weir__connection_stop(c);
    }
    for (; v; v = next_visit) {
        next_visit = v->next;
        weir__visit_stop(v);
    }
    count_loop(l->server, &l->server->loops_stopping);
}

/* Has every connection end when it is done with what it has, and waits until all have gone, or
 * their time is up. */
static void wait_for_clients(struct weir__server *s)
{
    int64_t deadline = weir__deadline_ns(WEIR__SERVER_STOP_MS);

    for (unsigned i = 0; i < weir__loops_count(s->loops); i++)
        weir__loop_post(weir__loops_at(s->loops, i), &s->at[i].stop);
    wait_for_loops(s, &s->loops_stopping);
    weir__mutex_lock(&s->lock);
    while (s->connections + s->visits > 0 && weir__cond_wait(&s->changed, &s->lock, deadline))
        continue;
    weir__mutex_unlock(&s->lock);
}

/* Lets the logs be given nothing more, and waits until all that they were given is on disk, which
 * happens whatever happens. A publisher counts its bytes and then looks at sealed; this seals and
 * then looks at the count. So one of the two sees the other: no batch reaches a log unseen. */
static void seal(struct weir__server *s)
{
    atomic_store(&s->sealed, true);
    weir__worker_stop(s->bodies); /* what waits for one is refused, and goes back to its loop */
    weir__worker_stop(s->worker);
    weir__mutex_lock(&s->lock);
    while (atomic_load(&s->unflushed) > 0) weir__cond_wait(&s->changed, &s->lock, INT64_MAX);
    weir__mutex_unlock(&s->lock);
}

static void note_sent(void *arg)
{
    struct weir__server_loop *l = arg;

    count_loop(l->server, &l->server->loops_sent);
}

/* What came back before this is sent at the end of the turn, in order: this is told behind it. */
static void defer_sent(void *arg)
{
    struct weir__server_loop *l = arg;

    weir__loop_defer(weir__loops_at(l->server->loops, (unsigned)(l - l->server->at)), &l->sent);
}

/* The loops end without sending what they have: the last answers go out before. */
static void send_answers(struct weir__server *s)
{
    for (unsigned i = 0; i < weir__loops_count(s->loops); i++)
        weir__loop_post(weir__loops_at(s->loops, i), &s->at[i].last);
    wait_for_loops(s, &s->loops_sent);
}

static void close_listeners(struct weir__server *s)
{
    struct weir__listener *all[] = {s->amqp, s->amqps, s->http, s->https};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) weir__listener_close(all[i]);
}

void weir__server_stop(struct weir__server *s)
{
    if (!s) return;
    if (s->at) weir__namespace_watch_rules(s->ns, NULL, NULL);
    atomic_store(&s->stopping, true);
    close_listeners(s);
    if (s->loops) wait_for_clients(s);
    seal(s);
    if (s->loops) send_answers(s);
    weir__loops_free(s->loops);
    weir__worker_free(s->bodies);
    weir__worker_free(s->worker);
    weir__report_fini(s);
    weir__issuer_fini(&s->issuer);
    weir__listener_free(s->amqp);
    weir__listener_free(s->amqps);
    weir__listener_free(s->http);
    weir__listener_free(s->https);
    weir__budget_fini(&s->budget);
    weir__cond_fini(&s->changed);
    weir__mutex_fini(&s->lock);
    free(s->at);
    free(s);
}

/* ---- starting ---- */

static int start_loops(struct weir__server *s, unsigned count, struct weir_error *err)
{
    struct weir__loops_options options = {.count = count};
    int rc = weir__loops_start(&s->loops, &options, err);

    if (rc != 0) return rc;
    count = weir__loops_count(s->loops);
    s->at = calloc(count, sizeof *s->at);
    if (!s->at) {
        weir__loops_free(s->loops);
        s->loops = NULL;
        return weir__fail(err, WEIR_ENOMEM, "out of memory for a server");
    }
    for (unsigned i = 0; i < count; i++) {
        s->at[i].server = s;
        weir__post_init(&s->at[i].stop, stop_loop, &s->at[i]);
        weir__post_init(&s->at[i].last, defer_sent, &s->at[i]);
        weir__post_init(&s->at[i].sent, note_sent, &s->at[i]);
        weir__turn_queue_init(&s->at[i].queue);
    }
    weir__rights_watch(s);
    return 0;
}

static int count_hub(const struct weir__catalog_hub *hub, void *user)
{
    (void)hub;
    (*(uint64_t *)user)++;
    return 0;
}

/* The first descriptor that no connection may have; from there on they are for the logs, which need
 * some to go on. At most half of all. */
static unsigned find_descriptor_max(struct weir__server *s)
{
    uint64_t limit = s->descriptors, hubs = 0, kept;

    weir__namespace_hub_each(s->ns, count_hub, &hubs);
    kept = WEIR__SERVER_DESCRIPTORS_HUB * hubs;
    if (kept < WEIR__SERVER_DESCRIPTORS_KEPT) kept = WEIR__SERVER_DESCRIPTORS_KEPT;
    if (limit == 0 || limit > INT_MAX) limit = INT_MAX;
    return (unsigned)(limit - (kept < limit / 2 ? kept : limit / 2));
}

void weir__server_keep_descriptors(struct weir__server *s)
{
    struct weir__listener *all[] = {s->amqp, s->amqps, s->http, s->https};
    unsigned max = find_descriptor_max(s);

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) weir__listener_keep(all[i], max);
}

static bool make_room(void *user)
{
    struct weir__server *s = user;

    return weir__budget_make_room(&s->budget);
}

static int take_port(struct weir__server *s, struct weir__listener **out, const char *address,
                     struct weir__tls_context *tls, bool (*accepted)(void *, struct weir__tcp *),
                     struct weir_error *err)
{
    struct weir__listener_options options = {.address = address,
                                             .tls = tls,
                                             .connections_max = s->connections_max,
                                             .descriptor_max = find_descriptor_max(s),
                                             .limits = {.dead_ms = WEIR__SERVER_DEAD_MS,
                                                        .stall_ms = WEIR__SERVER_STALL_MS},
                                             .accepted = accepted,
                                             .make_room = make_room,
                                             .mistaken = weir__mistake_tls,
                                             .failed = weir__mistake_failed,
                                             .user = s};
    int rc;

    if (!address) return 0;
    rc = weir__listener_open(out, s->loops, &options, err);
    if (rc == 0 || rc == WEIR_EEXIST) return rc; /* the text names the address already */
    return weir__wrap(err, rc, "listening on %s", address);
}

/* When all of it is as it stays: whoever comes by one port may be told of the others. */
static int begin_accepting(struct weir__server *s, struct weir_error *err)
{
    struct weir__listener *all[] = {s->amqp, s->amqps, s->http, s->https};
    int rc = 0;

    weir__mistakes_prepare(s);
    for (size_t i = 0; rc == 0 && i < sizeof all / sizeof all[0]; i++) {
        if (!all[i]) continue;
        rc = weir__listener_begin(all[i], err);
        if (rc != 0) weir__wrap(err, rc, "listening on %s", weir__listener_address(all[i]));
    }
    return rc;
}

int weir__server_start(struct weir__server **out, const struct weir__server_options *o,
                       struct weir_error *err)
{
    struct weir__server *s = calloc(1, sizeof *s);
    int rc;

    if (!s) return weir__fail(err, WEIR_ENOMEM, "out of memory for a server");
    s->ns = o->ns;
    s->logger = o->logger;
    s->about = o->about;
    s->clock = weir__clock_system();
    s->trace = o->trace;
    s->events_only = o->events_only;
    s->http_names = o->http_names;
    s->http_name_count = o->http_name_count;
    s->descriptors = weir__descriptors_raise();
    s->token_ms = o->token_ms ? o->token_ms : WEIR__SERVER_TOKEN_MS;
    s->idle_ms = o->idle_ms ? o->idle_ms : WEIR__SERVER_IDLE_MS;
    s->message_ms = o->message_ms;
    s->connections_max = o->connections_max ? o->connections_max : WEIR__SERVER_CONNECTIONS_MAX;
    weir__budget_init(&s->budget, &(struct weir__budget_limits){o->buffers, o->stranger_buffers,
                                                                o->strangers_per_address});
    weir__mutex_init(&s->lock);
    weir__cond_init(&s->changed);
    weir__trim_prepare(s);
    weir__report_init(s);
    weir__issuer_init(&s->issuer, o);
    rc = start_loops(s, o->loops, err);
    if (rc == 0) rc = weir__worker_start(&s->worker, "weir-worker", err);
    if (rc == 0) rc = weir__worker_start(&s->bodies, "weir-bodies", err);
    if (rc == 0) rc = take_port(s, &s->amqp, o->amqp, NULL, weir__connection_accept, err);
    if (rc == 0) rc = take_port(s, &s->amqps, o->amqps, o->tls, weir__connection_accept, err);
    if (rc == 0) rc = take_port(s, &s->http, o->http, NULL, weir__visit_accept, err);
    if (rc == 0) rc = take_port(s, &s->https, o->https, o->tls, weir__visit_accept, err);
    if (rc == 0) rc = begin_accepting(s, err);
    if (rc != 0) {
        weir__server_stop(s);
        return rc;
    }
    *out = s;
    return 0;
}

static const char *address_of(const struct weir__listener *l)
{
    return l ? weir__listener_address(l) : NULL;
}

const char *weir__server_amqp(const struct weir__server *s)
{
    return address_of(s->amqp);
}

const char *weir__server_amqps(const struct weir__server *s)
{
    return address_of(s->amqps);
}

const char *weir__server_http(const struct weir__server *s)
{
    return address_of(s->http);
}

const char *weir__server_https(const struct weir__server *s)
{
    return address_of(s->https);
}
