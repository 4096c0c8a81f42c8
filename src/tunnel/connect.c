/* connect.c - the client's side of a tunnel: connected, it asks for a WebSocket; agreed on, it hands
 * the connection to a tunnel and is gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/knock.h"
#include "tunnel/tunnel.h"

#define ANSWER_MS 10000 /* unless the options say so */

struct visitor {
    struct weir__tcp *tcp;
    const struct weir__tcp_calls *calls;
    void *inner;
    struct weir__rand rand;
    struct weir__knock knock;
    struct weir__buf request, answer;
    size_t sent;
    struct weir__timer timer;
    uint32_t answer_ms;
};

static void free_visitor(struct visitor *v)
{
    if (!v) return;
    weir__buf_fini(&v->request);
    weir__buf_fini(&v->answer);
    free(v);
}

static void on_late(void *arg)
{
    struct visitor *v = arg;

    weir__tcp_abort(v->tcp, "asked for a WebSocket, it did not answer in time");
}

static void opened(void *owner, struct weir__tcp *tcp)
{
    struct visitor *v = owner;
    struct weir__loop *loop = weir__tcp_loop(tcp);

    weir__loop_timer_start(loop, &v->timer, weir__loop_now_ms(loop) + v->answer_ms);
    weir__tcp_flush(tcp);
}

/* Room for the whole head at once; what comes with it goes to the tunnel. */
static uint8_t *give_room(void *owner, size_t *room)
{
    struct visitor *v = owner;

    *room = WEIR__KNOCK_ANSWER_MAX - v->answer.len;
    return weir__buf_room(&v->answer, *room);
}

static void enter(struct visitor *v, struct weir__bytes rest)
{
    struct weir__tcp *tcp = v->tcp;
    struct weir__bytes none = {0};
    struct weir__tunnel *t;
    struct weir_error err;

    if (weir__tunnel_new(&t, &v->rand, none, rest, &err) != 0) {
        weir__tcp_abort(tcp, err.text);
        return;
    }
    weir__loop_timer_stop(weir__tcp_loop(tcp), &v->timer);
    v->calls->opened(v->inner, tcp);
    weir__tunnel_start(t, tcp, v->calls, v->inner);
    free_visitor(v);
}

static void received(void *owner, size_t bytes)
{
    struct visitor *v = owner;
    struct weir__bytes got;
    struct weir_error err;
    size_t used;

    v->answer.len += bytes;
    got = weir__buf_bytes(&v->answer);
    if (weir__knock_read(&v->knock, got, &used, &err) != 0)
        weir__tcp_abort(v->tcp, err.text);
    else if (used)
        enter(v, weir__bytes_of(got.at + used, got.len - used));
}

static void ended(void *owner)
{
    struct visitor *v = owner;

    weir__tcp_abort(v->tcp, "asked for a WebSocket, it hung up");
}

static struct weir__bytes output(void *owner)
{
    struct visitor *v = owner;

    return weir__bytes_of(v->request.at + v->sent, v->request.len - v->sent);
}

static void sent(void *owner, size_t bytes)
{
    ((struct visitor *)owner)->sent += bytes;
}

static void closed(void *owner, const struct weir_error *why)
{
    struct visitor *v = owner;

    weir__loop_timer_stop(weir__tcp_loop(v->tcp), &v->timer);
    v->calls->closed(v->inner, why);
    free_visitor(v);
}

static const struct weir__tcp_calls visitor_calls = {
    .opened = opened,
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

void weir__tunnel_host(char to[WEIR__TUNNEL_HOST_MAX], const char *address, bool tls)
{
    const char *usual = tls ? ":443" : ":80";
    size_t len = strlen(address), cut = strlen(usual);

    if (len > cut && strcmp(address + len - cut, usual) == 0) len -= cut;
    snprintf(to, WEIR__TUNNEL_HOST_MAX, "%.*s", (int)len, address);
}

int weir__tunnel_connect(struct weir__tcp **out, struct weir__loop *loop,
                         const struct weir__tunnel_options *o, const struct weir__tcp_calls *calls,
                         void *owner, struct weir_error *err)
{
    char host[WEIR__TUNNEL_HOST_MAX];
    struct weir__knock_options knock = {.host = host, .path = o->path, .protocols = o->protocols};
    struct visitor *v = calloc(1, sizeof *v);
    int rc;

    *out = NULL;
    if (!v) return weir__fail(err, WEIR_ENOMEM, "no memory for a WebSocket");
    v->calls = calls;
    v->inner = owner;
    v->rand = weir__rand_system();
    v->answer_ms = o->tcp.limits.open_ms ? o->tcp.limits.open_ms : ANSWER_MS;
    weir__timer_init(&v->timer, on_late, v);
    weir__buf_init(&v->request, WEIR__KNOCK_REQUEST_MAX);
    weir__buf_init(&v->answer, WEIR__KNOCK_ANSWER_MAX);
    weir__tunnel_host(host, o->tcp.address, o->tcp.tls);
    rc = weir__knock_write(&v->knock, &knock, &v->rand, &v->request, err);
    if (rc == 0) rc = weir__tcp_connect(&v->tcp, loop, &o->tcp, &visitor_calls, v, err);
    if (rc != 0) {
        free_visitor(v);
        return rc;
    }
    *out = v->tcp;
    return 0;
}
