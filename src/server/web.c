/* web.c - one HTTP connection: requests in, answers out, one after the other.
 *
 * Whatever happens (bytes, time, an answer that comes back) ends in serve. A visit that is away,
 * with a worker or with the log, reads nothing and is not freed before it has returned. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/web.h"

#define OUTPUT_BYTES 65536u /* that wait for the client: the next request waits too */
#define LARGE_BYTES 8192u   /* of a body that the loop does not read: it could take a millisecond */

/* ---- lives ---- */

static struct weir__server_loop *loop_of(const struct weir__visit *v)
{
    return &v->server->at[weir__loop_index(v->loop)];
}

static void enter_loop(struct weir__visit *v)
{
    struct weir__server_loop *l = loop_of(v);

    v->next = l->visits;
    if (v->next) v->next->prev = v;
    l->visits = v;
    weir__mutex_lock(&v->server->lock);
    v->server->visits++;
    weir__mutex_unlock(&v->server->lock);
}

static void leave_loop(struct weir__visit *v)
{
    if (v->next) v->next->prev = v->prev;
    if (v->prev)
        v->prev->next = v->next;
    else
        loop_of(v)->visits = v->next;
    weir__mutex_lock(&v->server->lock);
    v->server->visits--;
    weir__cond_broadcast(&v->server->changed);
    weir__mutex_unlock(&v->server->lock);
}

/* What a request had. */
static void drop_request(struct weir__visit *v)
{
    weir__buf_fini(&v->body);
    weir__buf_fini(&v->answer.body);
    v->answer = (struct weir__answer){.body = {.max = WEIR__WEB_ANSWER_MAX}};
    v->request = NULL;
    v->route = NULL;
    v->returned = NULL;
    v->busy_ms = 0;
}

static void free_visit(struct weir__visit *v)
{
    drop_request(v);
    weir__loop_timer_stop(v->loop, &v->timer);
    weir__loop_timer_stop(v->loop, &v->retry);
    weir__loop_unpost(v->loop, &v->again);
    weir__http_free(v->http);
    weir__account_set(&v->account, 0);
    weir__newcomer_leave(&v->stranger, &v->server->budget);
    weir__trim_ask(v->server);
    leave_loop(v);
    free(v);
}

/* ---- answers ---- */

static size_t add_field(struct weir__http_field *f, size_t count, const char *name,
                        const char *value)
{
    f[count] = weir__http_field_of(name, value);
    return count + 1;
}

static const char *list_methods(unsigned set, char *to, size_t room)
{
    size_t used = 0;

    *to = '\0';
    for (unsigned m = 0; m < WEIR__HTTP_METHODS; m++) {
        const char *name = weir__http_method_name((enum weir__http_method)m);
        if (!(set & 1u << m)) continue;
        used += (size_t)snprintf(to + used, room - used, "%s%s", used ? ", " : "", name);
        assert(used < room);
    }
    return to;
}

static size_t list_fields(const struct weir__answer *a, struct weir__http_field *f, char *methods,
                          size_t room)
{
    size_t n = 0;

    if (a->type) n = add_field(f, n, "Content-Type", a->type);
    if (a->challenge) n = add_field(f, n, "WWW-Authenticate", a->challenge);
    if (a->retry) n = add_field(f, n, "Retry-After", WEIR__WEB_RETRY_TEXT);
    if (a->allow) n = add_field(f, n, "Allow", list_methods(a->allow, methods, room));
    if (a->status == 426) n = add_field(f, n, "Upgrade", "websocket");
    if (a->status == 426) n = add_field(f, n, "Sec-WebSocket-Version", "13");
    if (a->status != 101) return n;
    n = add_field(f, n, "Upgrade", "websocket");
    n = add_field(f, n, "Connection", "Upgrade");
    n = add_field(f, n, "Sec-WebSocket-Accept", a->welcome.accept);
    return add_field(f, n, "Sec-WebSocket-Protocol", a->welcome.protocol);
}

static void send_answer(struct weir__visit *v)
{
    struct weir__http_field fields[8];
    char methods[64];
    struct weir__http_response r = {.fields = fields};
    int rc;

    if (v->answer.incomplete && v->answer.status != 500)
        weir__answer_error(v, 500, "The answer is too large.");
    r.status = v->answer.status;
    r.length = v->answer.body.len;
    r.close = v->stopping;
    r.field_count = list_fields(&v->answer, fields, methods, sizeof methods);
    rc = weir__http_respond(v->http, &r, NULL);
    if (rc == 0) rc = weir__http_write(v->http, weir__buf_bytes(&v->answer.body), NULL);
    if (rc == 0) rc = weir__http_finish(v->http, NULL);
    drop_request(v);
    /* There is always room for one answer, so it can only be memory. */
    if (rc != 0) weir__tcp_abort(v->tcp, "no memory for an answer");
}

/* ---- requests ---- */

void weir__visit_trust(struct weir__visit *v)
{
    weir__newcomer_leave(&v->stranger, &v->server->budget);
    weir__account_trust(&v->account);
}

static void say_stopping(struct weir__visit *v)
{
    weir__answer_error(v, 503, "The server is stopping.");
}

/* On a worker. A request that still waits when the server is sealed would delay its end. */
static void run_job(void *arg)
{
    struct weir__visit *v = arg;

    if (atomic_load(&v->server->sealed))
        say_stopping(v);
    else if (!v->route->answer(v))
        return;
    weir__visit_return(v);
}

void weir__visit_return(struct weir__visit *v)
{
    int rc = weir__loop_post(v->loop, &v->back);

    assert(rc == 0); /* the loops run until everybody has returned */
}

/* The worker that is to answer; NULL: the loop does. */
static struct weir__worker *worker_for(const struct weir__visit *v)
{
    if (v->route->place == WEIR__ON_WORKER) return v->server->worker;
    return v->route->place == WEIR__ON_EITHER && v->body.len >= LARGE_BYTES ? v->server->bodies
                                                                            : NULL;
}

/* The answer is there, unless the route has to be asked again. false: the visit is over. */
static bool come_back(struct weir__visit *v)
{
    v->away = false;
    if (v->returned) v->returned(v);
    if (!v->tcp) {
        free_visit(v);
        return false;
    }
    if (v->retry.running)
        v->away = true;
    else
        send_answer(v);
    return true;
}

static void answer_request(struct weir__visit *v)
{
    struct weir__worker *worker;

    assert(v->route);              /* others were answered before their body, and have no end */
    if (!weir__route_allowed(v)) { /* who was slow with the body, or waited for a busy log */
        send_answer(v);
        return;
    }
    v->away = true;
    worker = worker_for(v);
    if (worker ? weir__worker_post(worker, &v->job) == 0 : !v->route->answer(v)) return;
    if (worker) say_stopping(v);
    come_back(v);
}

bool weir__visit_retry(struct weir__visit *v)
{
    int64_t now_ms = weir__loop_now_ms(v->loop);

    if (!v->busy_ms) v->busy_ms = now_ms;
    if (v->stopping || now_ms >= v->busy_ms + WEIR__SERVER_BUSY_MS) return false;
    weir__loop_timer_start(v->loop, &v->retry, now_ms + WEIR__SERVER_RETRY_MS);
    return true;
}

static void begin_request(struct weir__visit *v, const struct weir__http_request *request)
{
    v->request = request;
    if (!weir__route_find(v)) {
        send_answer(v);
    } else if (request->length > WEIR__WEB_BODY_MAX) {
        weir__answer_error(v, 413, "A body has at most %zu bytes.", WEIR__WEB_BODY_MAX);
        send_answer(v);
    }
}

/* Kept only for who has shown a token. */
static void take_body(struct weir__visit *v, struct weir__bytes piece)
{
    assert(v->route);
    if (v->route->scope == WEIR__SCOPE_OPEN || v->route->scope == WEIR__SCOPE_LOCAL) return;
    if (piece.len > WEIR__WEB_BODY_MAX - v->body.len) {
        weir__answer_error(v, 413, "A body has at most %zu bytes.", WEIR__WEB_BODY_MAX);
    } else if (!weir__account_grow(&v->account, weir__buf_growth(&v->body, piece.len))) {
        atomic_fetch_add(&v->server->budget.refused, 1);
        weir__answer_error(v, 503, "The server holds too many requests now.");
    } else if (!weir__buf_add(&v->body, piece.at, piece.len)) {
        weir__answer_error(v, 503, "There is no memory for the request.");
    } else {
        return;
    }
    send_answer(v);
}

static void on_event(struct weir__visit *v, const struct weir__http_event *ev)
{
    switch (ev->type) {
    case WEIR__HTTP_EVENT_REQUEST: begin_request(v, ev->request); break;
    case WEIR__HTTP_EVENT_BODY: take_body(v, ev->bytes); break;
    case WEIR__HTTP_EVENT_END: answer_request(v); break;
    case WEIR__HTTP_EVENT_REFUSED:
        if (weir__report_allows(v->server, !v->account.stranger))
            weir__report(v->server, WEIR__INFO, "http", v->id, weir__tcp_peer(v->tcp), "%u: %s",
                         ev->refusal.status, ev->refusal.text);
        drop_request(v);
        break;
    }
}

/* ---- the connection ---- */

/* From here on it is a WebSocket, and this visit is over. Its frames are read, though the visit had
 * stopped reading. */
static void leave_for_tunnel(struct weir__visit *v)
{
    if (v->held) weir__tcp_resume(v->tcp);
    if (!weir__upgrade_open(v->server, v->tcp, weir__http_output(v->http),
                            weir__http_rest(v->http)))
        weir__tcp_abort(v->tcp, "no memory for a WebSocket"); /* calls closed, later */
    else
        free_visit(v);
}

static bool may_go_on(struct weir__visit *v)
{
    return !v->away && weir__http_output(v->http).len < OUTPUT_BYTES;
}

/* While somebody else has it, its answer is not ours to look at. */
static void note_memory(struct weir__visit *v)
{
    size_t bytes = weir__http_buffered(v->http) + v->body.cap;

    if (!v->away) bytes += v->answer.body.cap;
    weir__account_set(&v->account, bytes);
}

/* Others need the place. */
static void evict(void *arg)
{
    struct weir__visit *v = arg;

    if (v->tcp) weir__tcp_abort(v->tcp, "made room for others");
}

static void serve(struct weir__visit *v)
{
    struct weir__http_event ev;
    bool crowded = false;

    while (!crowded && may_go_on(v) && weir__http_next(v->http, &ev)) {
        on_event(v, &ev);
        crowded = weir__loop_turn_over(v->loop);
    }
    if (crowded) weir__loop_put_off(v->loop, &v->again);
    weir__loop_timer_start(v->loop, &v->timer,
                           weir__http_tick(v->http, weir__loop_now_ms(v->loop)));
    note_memory(v);
    weir__tcp_flush(v->tcp);
    if (weir__http_upgraded(v->http)) {
        leave_for_tunnel(v);
    } else if (weir__http_closed(v->http) || (v->stopping && !v->request)) {
        weir__tcp_end(v->tcp);
    } else if (v->held && may_go_on(v)) {
        v->held = false;
        weir__tcp_resume(v->tcp);
    }
}

void weir__visit_stop(struct weir__visit *v)
{
    v->stopping = true;
    if (v->tcp) serve(v);
}

/* A worker or the log is done. */
static void do_back(void *arg)
{
    struct weir__visit *v = arg;

    if (come_back(v)) serve(v);
}

static void do_retry(void *arg)
{
    struct weir__visit *v = arg;

    v->away = false;
    answer_request(v);
    serve(v);
}

static void do_serve(void *arg)
{
    struct weir__visit *v = arg;

    if (v->tcp) serve(v);
}

static uint8_t *give_room(void *owner, size_t *room)
{
    struct weir__visit *v = owner;
    uint8_t *to = NULL;

    *room = 0;
    if (may_go_on(v)) to = weir__http_input(v->http, room);
    v->held = !to || *room == 0;
    return to;
}

static void received(void *owner, size_t bytes)
{
    struct weir__visit *v = owner;

    weir__http_received(v->http, bytes);
    serve(v);
}

/* Who has sent its last byte may still wait for an answer. */
static void ended(void *owner)
{
    struct weir__visit *v = owner;

    weir__http_ended(v->http);
    serve(v);
}

static struct weir__bytes output(void *owner)
{
    struct weir__visit *v = owner;

    return weir__http_output(v->http);
}

static void sent(void *owner, size_t bytes)
{
    struct weir__visit *v = owner;
    bool waited = !may_go_on(v);

    weir__http_sent(v->http, bytes);
    if (waited && may_go_on(v)) weir__loop_defer(v->loop, &v->again);
}

static void closed(void *owner, const struct weir_error *why)
{
    struct weir__visit *v = owner;
    const char *peer = weir__tcp_peer(v->tcp);

    weir__report(v->server, WEIR__DEBUG, "http", v->id, peer, "ended%s%s",
                 why->code != 0 ? ": " : "",
                 why->code != 0 ? weir__report_skip(why->text, peer) : "");
    v->tcp = NULL;
    if (!v->away || v->retry.running) free_visit(v);
}

static const struct weir__tcp_calls calls = {
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

bool weir__visit_accept(void *server, struct weir__tcp *tcp)
{
    static const struct weir__http_limits limits = {
        .body_bytes = INT64_MAX, /* ours is checked here, for Azure's form of the answer */
        .output_bytes = OUTPUT_BYTES + WEIR__WEB_ANSWER_MAX + OUTPUT_BYTES,
    };
    struct weir__visit *v = calloc(1, sizeof *v);

    if (!v || weir__http_new(&v->http, &limits, NULL) != 0) {
        free(v);
        return false;
    }
    v->server = server;
    v->id = atomic_fetch_add(&v->server->met, 1) + 1;
    v->tcp = tcp;
    v->loop = weir__tcp_loop(tcp);
    weir__timer_init(&v->timer, do_serve, v);
    weir__timer_init(&v->retry, do_retry, v);
    weir__post_init(&v->job, run_job, v);
    weir__post_init(&v->back, do_back, v);
    weir__post_init(&v->again, do_serve, v);
    weir__buf_init(&v->body, WEIR__WEB_BODY_MAX);
    weir__buf_init(&v->answer.body, WEIR__WEB_ANSWER_MAX);
    v->account = (struct weir__account){.budget = &v->server->budget, .stranger = true};
    weir__newcomer_enter(&v->stranger, &v->account, v->loop, weir__tcp_peer(tcp), evict, v);
    weir__report(v->server, WEIR__DEBUG, "http", v->id, weir__tcp_peer(tcp), "connected");
    enter_loop(v);
    weir__tcp_adopt(tcp, &calls, v);
    v->stopping = loop_of(v)->stopping;
    serve(v);
    return true;
}
