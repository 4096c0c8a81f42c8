/* connection.c - one AMQP connection: a socket, an engine, and the duties of its links.
 *
 * Whatever happens (bytes, time, completions, news) ends in serve: take what other threads left,
 * take the engine's events, and see what is to be written, waited for or closed.
 *
 * The memory is counted: one reference is the loop's, until the socket is closed, and one is there
 * as long as batches are with the log. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/state.h"

#define LINE_BYTES 1024              /* of a frame in the log */
#define WORK_PER_LOOK 64             /* small messages, between looks at the clock */
#define WORK_BYTES 1024              /* of a large one that count as one more */
#define MUCH_BYTES ((size_t)1 << 20) /* given back at once: the system may want them */
#define CRAMPED_RETRY_MS 100         /* between looks whether there is memory again */
#define TOKEN_BYTES 65536u           /* of a stranger's request, in one frame or several */
#define MECHANISMS                                                                                 \
    (WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_MSSBCBS) | WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN) |   \
     WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_ANONYMOUS))

/* ---- lives ---- */

static void free_connection(struct weir__connection *c)
{
    weir__mutex_fini(&c->lock);
    free(c);
}

void weir__connection_let_go(struct weir__connection *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1) return;
    weir__loop_unpost(c->loop, &c->work);
    weir__loop_unpost(c->loop, &c->visit);
    weir__loop_unpost(c->loop, &c->rest);
    free_connection(c);
}

static struct weir__server_loop *loop_of(const struct weir__connection *c)
{
    return &c->server->at[weir__loop_index(c->loop)];
}

/* Others need the place. */
static void evict(void *arg)
{
    struct weir__connection *c = arg;

    if (c->tcp) weir__tcp_abort(c->tcp, "made room for others");
}

static void enter_loop(struct weir__connection *c)
{
    struct weir__server_loop *l = loop_of(c);

    c->next = l->connections;
    if (c->next) c->next->prev = c;
    l->connections = c;
    weir__mutex_lock(&c->server->lock);
    c->server->connections++;
    weir__mutex_unlock(&c->server->lock);
}

static void leave_loop(struct weir__connection *c)
{
    struct weir__server_loop *l = loop_of(c);

    if (l->review_next == c) l->review_next = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->prev)
        c->prev->next = c->next;
    else
        l->connections = c->next;
    weir__mutex_lock(&c->server->lock);
    c->server->connections--;
    weir__cond_broadcast(&c->server->changed);
    weir__mutex_unlock(&c->server->lock);
}

int64_t weir__connection_now_s(const struct weir__connection *c)
{
    return c->server->clock.wall_ms(c->server->clock.self) / 1000;
}

int weir__connection_not_found(const struct weir__connection *c, const char *path,
                               struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOTFOUND,
                      "The messaging entity 'sb://%s/%.200s' could not be found. To know more "
                      "visit https://aka.ms/sbResourceMgrExceptions.",
                      c->host, path);
}

int weir__connection_use(struct weir__connection *c, const char *hub, struct weir__hub **out,
                         struct weir_error *err)
{
    int rc = weir__namespace_use(c->server->ns, hub, out, err);

    return rc == WEIR_ENOTFOUND ? weir__connection_not_found(c, hub, err) : rc;
}

const char *weir__connection_peer(const struct weir__connection *c)
{
    return c->tcp ? weir__tcp_peer(c->tcp) : "?";
}

bool weir__connection_certified(const struct weir__connection *c, struct weir__tls_identity *who)
{
    return weir__tcp_tls(c->tcp) && weir__tls_identify(weir__tcp_tls(c->tcp), who);
}

void weir__connection_trust(struct weir__connection *c)
{
    if (!c->trusted)
        weir__report(c->server, WEIR__INFO, "server", c->id, weir__connection_peer(c),
                     "logged in%s", c->tcp && weir__tcp_tls(c->tcp) ? ", with TLS" : "");
    c->trusted = true;
    weir__newcomer_leave(&c->stranger, &c->server->budget);
    weir__account_trust(&c->account);
    weir__amqp_trust(c->engine);
}

void weir__connection_visit(struct weir__connection *c)
{
    if (c->tcp) weir__loop_defer(c->loop, &c->visit);
}

/* ---- time ---- */

/* What an event may have cost, in small messages: the clock is not looked at for each of them. What a
 * stranger sends may be a token, and a signature takes long. */
static size_t weigh(const struct weir__connection *c, const struct weir__amqp_event *ev)
{
    if (ev->type != WEIR__AMQP_EVENT_TRANSFER || !c->trusted) return WORK_PER_LOOK;
    return 1 + ev->delivery.payload.len / WORK_BYTES;
}

/* Whether the current event has to wait for another turn. A connection that has begun with its share of
 * small messages finishes it. */
static bool must_wait(struct weir__connection *c, size_t done)
{
    const struct weir__amqp_event *ev = &c->event;

    if (ev->type != WEIR__AMQP_EVENT_TRANSFER) return false;
    if (done && ev->delivery.payload.len < WORK_BYTES) return false;
    return weir__turn_queue_wait(c, ev->delivery.payload.len);
}

/* Until there are no more, a log is busy, or the loop's turn has lasted long enough: then the rest
 * has to wait for the next. What was gathered meanwhile goes to the log. */
static void take_events(struct weir__connection *c)
{
    bool log_is_busy = false;
    size_t work = 0;

    if (c->busy_ms || c->crowded) return;
    while (c->event_waits || weir__amqp_next(c->engine, &c->event)) {
        c->crowded = must_wait(c, work);
        log_is_busy = !c->crowded && !weir__connection_on_event(c, &c->event);
        c->event_waits = c->crowded || log_is_busy;
        if (c->event_waits) break;
        work += weigh(c, &c->event);
        if (work < WORK_PER_LOOK) continue;
        work = 0;
        c->crowded = weir__loop_turn_over(c->loop);
        if (c->crowded) break;
    }
    if (log_is_busy || (c->run.sender && !weir__run_end(c)))
        c->busy_ms = weir__loop_now_ms(c->loop);
}

static void close_with(struct weir__connection *c, const char *condition, const char *text)
{
    struct weir__amqp_error error = weir__amqp_error_of(condition, text);

    if (c->closing) return;
    c->closing = true;
    weir__amqp_close(c->engine, &error);
}

/* A message that waits for us may be the token. */
static bool awaits_token(const struct weir__connection *c)
{
    return !c->trusted && !c->closing && !c->event_waits;
}

/* When to look after the connection again, whatever happens. */
static int64_t next_visit(struct weir__connection *c, int64_t engine_at, int64_t now_ms)
{
    int64_t at = engine_at, left_s;

    if (awaits_token(c) && at > c->began_ms + c->server->token_ms)
        at = c->began_ms + c->server->token_ms;
    if (c->busy_ms && at > now_ms + WEIR__SERVER_RETRY_MS) at = now_ms + WEIR__SERVER_RETRY_MS;
    if (c->cramped && at > now_ms + CRAMPED_RETRY_MS) at = now_ms + CRAMPED_RETRY_MS;
    if (c->expires_s != INT64_MAX) {
        left_s = c->expires_s - weir__connection_now_s(c);
        left_s = left_s < 0 ? 0 : left_s > 3600 ? 3600 : left_s; /* the wall clock may jump */
        if (at > now_ms + left_s * 1000 + 1) at = now_ms + left_s * 1000 + 1;
    }
    return at;
}

/* A peer whose token was refused has been told so, and may try again. Azure's JavaScript client does that
 * after 30 s. Only connection:forced makes it forget the links of the closed connection; otherwise it
 * sends its next token there, waits for the answer, and brings its process down. */
static void close_stranger(struct weir__connection *c)
{
    char text[96];

    snprintf(text, sizeof text, "Unauthorized access. No %stoken was presented within %u seconds.",
             c->refused ? "valid " : "", (c->server->token_ms + 999) / 1000);
    close_with(c, c->refused ? WEIR__AMQP_COND_FORCED : WEIR__AMQP_COND_UNAUTHORIZED, text);
}

static void pass_time(struct weir__connection *c)
{
    int64_t now_ms = weir__loop_now_ms(c->loop), at;

    if (awaits_token(c) && now_ms >= c->began_ms + c->server->token_ms) close_stranger(c);
    at = weir__amqp_tick(c->engine, now_ms); /* which knows how long a close may take */
    weir__rights_pass(c);
    take_events(c);
    at = next_visit(c, at, now_ms);
    /* A timer that fires too early costs less than one that is moved for every frame. */
    if (!c->timer.running || c->timer.at_ms > at) weir__loop_timer_start(c->loop, &c->timer, at);
}

/* ---- serving ---- */

static bool is_full(const struct weir__connection *c)
{
    return c->unflushed > WEIR__SERVER_UNFLUSHED_MAX ||
           (c->unflushed > WEIR__SERVER_UNFLUSHED_FAIR &&
            atomic_load(&c->server->unflushed) > WEIR__SERVER_UNFLUSHED_ALL_MAX);
}

/* Whether something that the peer sent was not taken yet. */
static bool has_more(const struct weir__connection *c)
{
    return c->event_waits || c->busy_ms || c->crowded;
}

/* Whether the peer has gone, and all that it sent was taken. */
static bool was_left(const struct weir__connection *c)
{
    return c->peer_ended && !has_more(c) && !weir__amqp_choked(c->engine);
}

/* Who stops takes nothing in any more, but waits for the answer to its close. */
static bool may_read(const struct weir__connection *c)
{
    return !is_full(c) && !c->busy_ms && !c->crowded && (!c->stopping || c->closing);
}

static void note_memory(struct weir__connection *c)
{
    size_t before = atomic_load(&c->account.bytes);

    weir__account_set(&c->account,
                      weir__amqp_buffered(c->engine) + c->reply_bytes + c->reader_bytes);
    if (before > atomic_load(&c->account.bytes) + MUCH_BYTES) weir__trim_ask(c->server);
}

/* Every batch with the log comes back as a post. */
static void expect_batches(struct weir__connection *c)
{
    if (c->batches == c->expected) return;
    weir__loop_expect_mail(c->loop, (int)c->batches - (int)c->expected);
    c->expected = c->batches;
}

static void serve(struct weir__connection *c)
{
    weir__duty_take_ready(c);
    c->busy_ms = 0;
    c->crowded = false;
    take_events(c);
    if (was_left(c)) weir__amqp_lost(c->engine);
    pass_time(c);
    if ((c->crowded && !c->in_queue) || weir__rights_pending(c))
        weir__loop_put_off(c->loop, &c->rest);
    if (c->stopping && c->unflushed == 0 && !has_more(c))
        close_with(c, WEIR__AMQP_COND_FORCED, "The server is stopping.");
    note_memory(c);
    expect_batches(c);
    weir__tcp_flush(c->tcp);
    if ((weir__amqp_closed(c->engine) && !has_more(c)) || was_left(c)) {
        weir__tcp_end(c->tcp);
    } else if (c->held && may_read(c)) {
        c->held = false;
        weir__tcp_resume(c->tcp);
    }
    /* Behind the tick, so that the time until now does not count either. */
    weir__amqp_hold(c->engine, c->held || c->event_waits);
}

void weir__connection_review(struct weir__connection *c)
{
    weir__rights_review(c);
    serve(c);
}

void weir__connection_stop(struct weir__connection *c)
{
    c->stopping = true;
    serve(c);
}

static void do_work(void *arg)
{
    struct weir__connection *c = arg;
    bool idle;

    atomic_fetch_add(&c->refs, 1);
    idle = weir__publish_take_done(c);
    expect_batches(c);
    if (c->tcp) serve(c);
    if (idle) weir__connection_let_go(c);
    weir__connection_let_go(c);
}

static void pump_starved(struct weir__connection *c)
{
    c->starved = c->cramped = false;
    weir__duty_pump_all(c);
}

void weir__connection_serve(struct weir__connection *c)
{
    if (!c->tcp) return;
    if (c->starved) pump_starved(c);
    serve(c);
}

static void do_visit(void *arg)
{
    weir__connection_serve(arg);
}

static void do_timer(void *arg)
{
    struct weir__connection *c = arg;

    if (c->cramped) pump_starved(c);
    serve(c);
}

/* ---- the socket ---- */

static uint8_t *give_room(void *owner, size_t *room)
{
    struct weir__connection *c = owner;
    uint8_t *to = NULL;

    *room = 0;
    if (may_read(c)) to = weir__amqp_input(c->engine, room);
    c->held = !to || *room == 0;
    if (c->held) weir__amqp_hold(c->engine, true);
    return to;
}

static void received(void *owner, size_t bytes)
{
    struct weir__connection *c = owner;

    weir__amqp_received(c->engine, bytes);
    serve(c);
}

/* In a WebSocket the end may come while a message waits. */
static void ended(void *owner)
{
    struct weir__connection *c = owner;

    c->peer_ended = true;
    serve(c);
}

static struct weir__bytes output(void *owner)
{
    struct weir__connection *c = owner;
    struct weir__bytes out = weir__amqp_output(c->engine);

    c->on_last_words = out.len == 0;
    return out.len ? out : c->last_words;
}

static void sent(void *owner, size_t bytes)
{
    struct weir__connection *c = owner;
    bool more = false;

    if (c->on_last_words) {
        c->last_words.at += bytes;
        c->last_words.len -= bytes;
    } else {
        more = weir__amqp_sent(c->engine, bytes);
    }
    if (more || c->starved || c->held) weir__connection_visit(c);
}

static void report_end(const struct weir__connection *c, const struct weir_error *why)
{
    const char *peer = weir__connection_peer(c);
    double s = (double)(weir__loop_now_ms(c->loop) - c->began_ms) / 1000;
    bool told = why->code != 0 && why->code != WEIR_ECANCELED;

    weir__report(c->server, c->trusted ? WEIR__INFO : WEIR__DEBUG, "server", c->id, peer,
                 "ended after %.1f s%s%s", s, told ? ": " : "",
                 told ? weir__report_skip(why->text, peer) : "");
}

static void closed(void *owner, const struct weir_error *why)
{
    struct weir__connection *c = owner;

    report_end(c, why);
    c->tcp = NULL;
    c->busy_ms = 0;
    weir__turn_queue_leave(c);
    if (c->run.sender) weir__run_drop(&c->run); /* who is gone will ask again */
    weir__amqp_lost(c->engine);
    c->event = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_END};
    while (weir__amqp_next(c->engine, &c->event))
        if (c->event.type == WEIR__AMQP_EVENT_DETACH) weir__connection_on_event(c, &c->event);
    assert(!c->duties);
    weir__amqp_free(c->engine);
    c->engine = NULL;
    weir__account_set(&c->account, 0);
    weir__newcomer_leave(&c->stranger, &c->server->budget);
    weir__trim_ask(c->server);
    weir__claims_fini(&c->claims);
    weir__loop_timer_stop(c->loop, &c->timer);
    leave_loop(c);
    weir__connection_let_go(c);
}

const struct weir__tcp_calls weir__connection_calls = {
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

static void trace(void *user_data, bool outgoing, struct weir__bytes frame)
{
    struct weir__connection *c = user_data;
    char line[LINE_BYTES];

    weir__amqp_dump(frame, line, sizeof line);
    weir__report(c->server, WEIR__DEBUG, "amqp", c->id, weir__connection_peer(c), "%s %s",
                 outgoing ? "<-" : "->", line);
}

static bool reserve(void *arg, size_t more)
{
    struct weir__connection *c = arg;

    if (weir__account_grow(&c->account, more)) return true;
    atomic_fetch_add(&c->server->budget.refused, 1);
    return false;
}

static struct weir__connection *make_connection(struct weir__server *server, struct weir__tcp *tcp)
{
    struct weir__connection *c = calloc(1, sizeof *c);
    struct weir__amqp_options options = {.trace_data = c,
                                         .mechanisms = MECHANISMS,
                                         .idle_ms = server->idle_ms,
                                         .silence_ms = 2 * server->idle_ms,
                                         .message_ms = server->message_ms,
                                         .before = {.frame_bytes = TOKEN_BYTES,
                                                    .partial_bytes = TOKEN_BYTES},
                                         .reserve = reserve,
                                         .reserve_data = c};
    struct weir__tls_identity who;

    if (!c) return NULL;
    c->server = server;
    c->id = atomic_fetch_add(&server->met, 1) + 1;
    c->tcp = tcp;
    c->account = (struct weir__account){.budget = &server->budget, .stranger = true};
    if (weir__connection_certified(c, &who))
        options.mechanisms |= WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_EXTERNAL);
    if (server->trace) options.trace = trace;
    if (weir__amqp_new(&c->engine, &options, NULL) != 0) {
        free(c);
        return NULL;
    }
    c->loop = weir__tcp_loop(tcp);
    c->began_ms = weir__loop_now_ms(c->loop);
    c->expires_s = INT64_MAX;
    c->done_last = &c->done;
    atomic_init(&c->refs, 1);
    weir__mutex_init(&c->lock);
    weir__timer_init(&c->timer, do_timer, c);
    weir__post_init(&c->work, do_work, c);
    weir__post_init(&c->visit, do_visit, c);
    weir__post_init(&c->rest, do_visit, c);
    return c;
}

struct weir__connection *weir__connection_enter(struct weir__server *server, struct weir__tcp *tcp)
{
    struct weir__connection *c = make_connection(server, tcp);

    if (!c) return NULL;
    weir__newcomer_enter(&c->stranger, &c->account, c->loop, weir__tcp_peer(tcp), evict, c);
    weir__report(server, WEIR__DEBUG, "server", c->id, weir__tcp_peer(tcp), "connected");
    enter_loop(c);
    c->stopping = loop_of(c)->stopping;
    serve(c);
    return c;
}

bool weir__connection_accept(void *user, struct weir__tcp *tcp)
{
    struct weir__connection *c = weir__connection_enter(user, tcp);

    if (c) weir__tcp_adopt(tcp, &weir__connection_calls, c);
    return c != NULL;
}
