/* tunnel.c - AMQP inside a WebSocket: /$servicebus/websocket.
 *
 *   socket > io > websocket (frames off) > connection > websocket (frames on) > io > socket
 *
 * A tunnel stands between a TCP connection and connection.c: it is the one's owner and behaves to
 * the other as the first does, by the same calls. What the connection asks of the TCP connection
 * (flush, resume, end) it asks directly. AMQP frames and WebSocket messages have nothing to do with
 * each other: both sides are streams of bytes. */
#include <stdlib.h>

#include "server/web.h"

struct tunnel {
    struct weir__tcp *tcp;
    struct weir__websocket *socket;
    struct weir__connection *inner;
    struct weir__buf head; /* the answer in HTTP, to be written first */
    size_t head_at;
    struct weir__buf rest; /* what came behind the request, to be read first */
    size_t rest_at;
    bool held;  /* room was asked for and refused */
    bool ended; /* the connection knows that nothing more comes */
};

static const struct weir__tcp_calls *const inner_calls = &weir__connection_calls;

/* ---- in ---- */

/* Payload to the connection, as far as it takes some. */
static void push(struct tunnel *t)
{
    struct weir__bytes got;

    while ((got = weir__websocket_payload(t->socket)).len) {
        size_t room = 0;
        uint8_t *to = inner_calls->room(t->inner, &room);
        if (!to || room == 0) break;
        if (got.len > room) got.len = room;
        memcpy(to, got.at, got.len);
        weir__websocket_taken(t->socket, got.len);
        inner_calls->received(t->inner, got.len);
    }
}

/* What came early, to the frames, as far as they take some. */
static void read_rest(struct tunnel *t)
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
    t->rest_at = 0;
}

/* Moves what can be moved. A connection that takes no more asks for it later, by resuming the
 * reading, which therefore has to stand still. */
static void move(struct tunnel *t)
{
    push(t);
    read_rest(t);
    if (weir__websocket_payload(t->socket).len) {
        weir__tcp_pause(t->tcp);
    } else if (weir__websocket_closed(t->socket) && !t->ended) {
        t->ended = true;
        inner_calls->ended(t->inner);
    }
    weir__tcp_flush(t->tcp);
}

static uint8_t *give_room(void *owner, size_t *room)
{
    struct tunnel *t = owner;
    uint8_t *to = NULL;

    *room = 0;
    move(t);
    if (t->rest.len == 0) to = weir__websocket_input(t->socket, room);
    t->held = !to;
    return to;
}

static void received(void *owner, size_t bytes)
{
    struct tunnel *t = owner;

    weir__websocket_received(t->socket, bytes);
    move(t);
}

static void ended(void *owner)
{
    struct tunnel *t = owner;

    if (t->ended) return;
    t->ended = true;
    inner_calls->ended(t->inner);
}

/* ---- out ---- */

/* What the connection has to say becomes messages, as far as there is room; behind a close nobody
 * hears it. Its end is ours. */
static void fill(struct tunnel *t)
{
    struct weir__bytes out;
    size_t n = 1;

    while (n && (out = inner_calls->output(t->inner)).len) {
        n = weir__websocket_closed(t->socket) ? out.len : weir__websocket_send(t->socket, out);
        if (n) inner_calls->sent(t->inner, n);
    }
    if (n && weir__tcp_ending(t->tcp)) weir__websocket_close(t->socket);
}

static struct weir__bytes output(void *owner)
{
    struct tunnel *t = owner;

    if (t->head_at < t->head.len)
        return weir__bytes_of(t->head.at + t->head_at, t->head.len - t->head_at);
    fill(t);
    return weir__websocket_output(t->socket);
}

static void sent(void *owner, size_t bytes)
{
    struct tunnel *t = owner;

    if (t->head_at < t->head.len) {
        t->head_at += bytes;
    } else {
        weir__websocket_sent(t->socket, bytes);
        if (t->held) weir__tcp_resume(t->tcp);
    }
}

/* ---- lives ---- */

static void free_tunnel(struct tunnel *t)
{
    weir__websocket_free(t->socket);
    weir__buf_fini(&t->head);
    weir__buf_fini(&t->rest);
    free(t);
}

static void closed(void *owner, const struct weir_error *why)
{
    struct tunnel *t = owner;

    inner_calls->closed(t->inner, why);
    free_tunnel(t);
}

static const struct weir__tcp_calls calls = {
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

bool weir__tunnel_open(struct weir__server *server, struct weir__tcp *tcp, struct weir__bytes head,
                       struct weir__bytes rest)
{
    struct tunnel *t = calloc(1, sizeof *t);

    if (!t) return false;
    t->tcp = tcp;
    weir__buf_init(&t->head, head.len);
    weir__buf_init(&t->rest, rest.len);
    if (!weir__buf_add(&t->head, head.at, head.len) ||
        !weir__buf_add(&t->rest, rest.at, rest.len) || weir__websocket_new(&t->socket, NULL) != 0)
        goto fail;
    t->inner = weir__connection_enter(server, tcp);
    if (!t->inner) goto fail;
    weir__tcp_adopt(tcp, &calls, t);
    move(t);
    return true;
fail:
    free_tunnel(t);
    return false;
}

bool weir__tunnel_answer(struct weir__visit *v)
{
    static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};
    struct weir__http_refusal refusal;

    if (weir__websocket_welcome(v->request, protocols, &v->answer.welcome, &refusal))
        weir__answer_empty(v, 101);
    else
        weir__answer_error(v, refusal.status, "%s", refusal.text);
    return true;
}
