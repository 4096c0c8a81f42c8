#include "tunnel/tunnel.h"

#include <stdlib.h>

#include "base/buf.h"
#include "http/websocket.h"

struct weir__tunnel {
    struct weir__tcp *tcp;
    struct weir__websocket *socket;
    const struct weir__tcp_calls *calls;
    void *inner;
    struct weir__buf head; /* the answer in HTTP, to be written first */
    size_t head_at;
    struct weir__buf rest; /* what came behind the request, to be read first */
    size_t rest_at;
    bool closed; /* the inner owner knows of the WebSocket's close */
};

/* ---- in ---- */

/* Payload to the inner owner, as far as it takes some. */
static void push(struct weir__tunnel *t)
{
    struct weir__bytes got;

    while ((got = weir__websocket_payload(t->socket)).len) {
        size_t room = 0;
        uint8_t *to = t->calls->room(t->inner, &room);
        if (!to || room == 0) break;
        if (got.len > room) got.len = room;
        memcpy(to, got.at, got.len);
        weir__websocket_taken(t->socket, got.len);
        t->calls->received(t->inner, got.len);
    }
}

/* What came early, to the frames, as far as they take some. */
static void read_rest(struct weir__tunnel *t)
{
    while (t->rest_at < t->rest.len) {
        size_t room, left = t->rest.len - t->rest_at;
        uint8_t *to = weir__websocket_input(t->socket, &room);
        if (!to) return;
        if (left > room) left = room;
        memcpy(to, t->rest.at + t->rest_at, left);
        t->rest_at += left;
        weir__websocket_received(t->socket, left);
        push(t);
    }
    weir__buf_fini(&t->rest);
}

/* Moves what can be moved. An owner that takes no more asks for it later, by resuming the reading,
 * which therefore has to stand still. */
static void move(struct weir__tunnel *t)
{
    push(t);
    read_rest(t);
    if (weir__websocket_payload(t->socket).len) {
        weir__tcp_pause(t->tcp);
    } else if (weir__websocket_closed(t->socket) && !t->closed) {
        t->closed = true;
        t->calls->ended(t->inner);
    }
    weir__tcp_flush(t->tcp);
}

/* While something of the rest waits, the frames take nothing. */
static uint8_t *give_room(void *owner, size_t *room)
{
    struct weir__tunnel *t = owner;

    move(t);
    return weir__websocket_input(t->socket, room);
}

static void received(void *owner, size_t bytes)
{
    struct weir__tunnel *t = owner;

    weir__websocket_received(t->socket, bytes);
    move(t);
}

/* Never behind a close, after which nothing is read. */
static void ended(void *owner)
{
    struct weir__tunnel *t = owner;

    t->calls->ended(t->inner);
}

/* ---- out ---- */

/* What the inner owner has to say becomes messages, as far as there is room; behind a close nobody
 * hears it. Its end is ours. */
static void fill(struct weir__tunnel *t)
{
    struct weir__bytes out;
    size_t n = 1;

    while (n && (out = t->calls->output(t->inner)).len) {
        n = weir__websocket_closed(t->socket) ? out.len : weir__websocket_send(t->socket, out);
        if (n) t->calls->sent(t->inner, n);
    }
    if (n && weir__tcp_ending(t->tcp)) weir__websocket_close(t->socket);
}

static struct weir__bytes output(void *owner)
{
    struct weir__tunnel *t = owner;

    if (t->head_at < t->head.len)
        return weir__bytes_of(t->head.at + t->head_at, t->head.len - t->head_at);
    fill(t);
    return weir__websocket_output(t->socket);
}

static void sent(void *owner, size_t bytes)
{
    struct weir__tunnel *t = owner;

    if (t->head_at < t->head.len) {
        t->head_at += bytes;
    } else {
        weir__websocket_sent(t->socket, bytes);
        weir__tcp_resume(t->tcp); /* pongs that waited may have stopped the reading */
    }
}

/* ---- lives ---- */

void weir__tunnel_free(struct weir__tunnel *t)
{
    if (!t) return;
    weir__websocket_free(t->socket);
    weir__buf_fini(&t->head);
    weir__buf_fini(&t->rest);
    free(t);
}

static void closed(void *owner, const struct weir_error *why)
{
    struct weir__tunnel *t = owner;

    t->calls->closed(t->inner, why);
    weir__tunnel_free(t);
}

static const struct weir__tcp_calls tunnel_calls = {
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

int weir__tunnel_new(struct weir__tunnel **out, const struct weir__rand *mask,
                     struct weir__bytes head, struct weir__bytes rest, struct weir_error *err)
{
    struct weir__tunnel *t = calloc(1, sizeof *t);

    *out = NULL;
    if (!t) goto fail;
    weir__buf_init(&t->head, head.len);
    weir__buf_init(&t->rest, rest.len);
    if (!weir__buf_add(&t->head, head.at, head.len) ||
        !weir__buf_add(&t->rest, rest.at, rest.len) ||
        weir__websocket_new(&t->socket, mask, NULL) != 0)
        goto fail;
    *out = t;
    return 0;
fail:
    weir__tunnel_free(t);
    return weir__fail(err, WEIR_ENOMEM, "no memory for a WebSocket");
}

void weir__tunnel_start(struct weir__tunnel *t, struct weir__tcp *tcp,
                        const struct weir__tcp_calls *calls, void *inner)
{
    t->tcp = tcp;
    t->calls = calls;
    t->inner = inner;
    weir__tcp_adopt(tcp, &tunnel_calls, t);
    move(t);
}
