/* flow.c - bytes between a connection's socket and its owner, each way no more in one turn than is
 * its share. */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "io/state.h"

#define FEW_BYTES 128       /* a disposition or a flow, and less than an event */
#define TLS_WRITE_MAX 16384 /* a write that has to be tried again may not be shorter than before */

static enum weir__flow socket_read(struct weir__tcp *c, uint8_t *to, size_t room, size_t *got,
                                   struct weir_error *err)
{
    ssize_t n;

    do {
        n = recv(c->fd, to, room, 0);
    } while (n < 0 && errno == EINTR);
    *got = n > 0 ? (size_t)n : 0;
    if (n > 0) return WEIR__FLOW_MOVED;
    if (n == 0) return WEIR__FLOW_ENDED;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return WEIR__FLOW_WAIT;
    weir__fail_errno(err, errno, "read");
    err->code = WEIR_EUNREACHABLE;
    return WEIR__FLOW_FAILED;
}

static enum weir__flow socket_write(struct weir__tcp *c, struct weir__bytes b, size_t *put,
                                    struct weir_error *err)
{
    ssize_t n;

    do {
        n = send(c->fd, b.at, b.len, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    *put = n > 0 ? (size_t)n : 0;
    if (n >= 0) return WEIR__FLOW_MOVED;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return WEIR__FLOW_WAIT;
    weir__fail_errno(err, errno, "write");
    err->code = WEIR_EUNREACHABLE;
    return WEIR__FLOW_FAILED;
}

static void refill_share(struct weir__tcp *c)
{
    if (c->turn == c->loop->turn) return;
    c->turn = c->loop->turn;
    c->may_read = c->may_write = WEIR__TCP_BYTES_PER_TURN;
}

/* One read into the owner's room; false when there is nothing more to do in this turn. */
static bool read_once(struct weir__tcp *c)
{
    struct weir_error err;
    size_t room = 0, got;
    uint8_t *to = c->calls->room(c->owner, &room);
    enum weir__flow flow;

    if (!to || !room) {
        c->paused = true;
        return false;
    }
    if (room > c->may_read) room = c->may_read;
    flow = c->tls ? weir__tls_read(c->tls, to, room, &got, &err)
                  : socket_read(c, to, room, &got, &err);
    if (flow == WEIR__FLOW_FAILED) weir__tcp_fail_by(c, &err);
    if (flow == WEIR__FLOW_ENDED) {
        c->ended = true;
        c->calls->ended(c->owner);
    }
    if (flow != WEIR__FLOW_MOVED) return false;
    c->may_read -= got;
    c->owes_ack = c->listener && got <= FEW_BYTES;
    c->moved_ms = weir__loop_now_ms(c->loop);
    c->calls->received(c->owner, got);
    return c->tls || got == room;
}

/* What poll does not know of, such as bytes that the owner was given and has put by, waits for the next
 * turn when the share of this one is used up. */
void weir__tcp_read(struct weir__tcp *c)
{
    bool more = true;

    refill_share(c);
    if (!c->may_read) {
        if (c->read_soon) weir__loop_put_off(c->loop, &c->late);
        return;
    }
    c->read_soon = false;
    while (more && c->state == WEIR__TCP_OPEN && !c->paused && !c->ended && c->may_read)
        more = read_once(c);
    if (!c->may_read && c->tls && weir__tls_pending(c->tls)) c->read_soon = true;
    weir__tcp_visit(c);
}

void weir__tcp_hear(struct weir__tcp *c)
{
    if (c->state == WEIR__TCP_HANDSHAKE)
        weir__tcp_greet(c);
    else if (c->state == WEIR__TCP_OPEN)
        weir__tcp_read(c);
}

/* Many sockets may be ready at once, with much to read, or with handshakes, which take a millisecond.
 * Those that are ready after the turn is over wait in order. */
void weir__tcp_hear_in_turn(struct weir__tcp *c)
{
    if (weir__loop_turn_over(c->loop))
        weir__loop_put_off(c->loop, &c->late);
    else
        weir__tcp_hear(c);
}

/* One write of the owner's output; false when there is none, or no room for it. */
static bool write_once(struct weir__tcp *c)
{
    struct weir__bytes out = c->calls->output(c->owner);
    struct weir_error err;
    enum weir__flow flow;
    size_t put;

    c->blocked = false;
    if (!out.len) return false;
    if (c->tls && out.len > TLS_WRITE_MAX) out.len = TLS_WRITE_MAX;
    if (!c->tls && out.len > c->may_write) out.len = c->may_write;
    flow = c->tls ? weir__tls_write(c->tls, out, &put, &err) : socket_write(c, out, &put, &err);
    if (flow == WEIR__FLOW_FAILED || flow == WEIR__FLOW_ENDED) {
        if (flow == WEIR__FLOW_ENDED) weir__fail(&err, WEIR_EUNREACHABLE, "write: the peer left");
        if (!c->listener) weir__tcp_read(c); /* what it said before that */
        weir__tcp_fail_by(c, &err);
        return false;
    }
    c->blocked = flow == WEIR__FLOW_WAIT || (!c->tls && put < out.len);
    if (put) {
        c->may_write -= put < c->may_write ? put : c->may_write;
        c->owes_ack = false; /* it went with the bytes */
        c->moved_ms = c->stall_ms = weir__loop_now_ms(c->loop);
        c->calls->sent(c->owner, put);
    }
    return !c->blocked;
}

/* Having used up its turn, a connection waits until the socket takes more, like one that is
 * blocked: others come first. */
void weir__tcp_write(struct weir__tcp *c)
{
    bool was_blocked = c->blocked, more = true;

    refill_share(c);
    if (!c->may_write) return; /* it waits already */
    while (more && (c->state == WEIR__TCP_OPEN || c->state == WEIR__TCP_ENDING) && c->may_write)
        more = write_once(c);
    if (more && !c->may_write) c->blocked = true;
    if (!c->blocked || c->state != WEIR__TCP_OPEN) return;
    if (!was_blocked) c->stall_ms = weir__loop_now_ms(c->loop);
    weir__tcp_arm(c);
}

/* A client that does not set TCP_NODELAY holds its next small message back until the last one is
 * acknowledged, and the kernel takes up to 40 ms for that when there is no answer for it to travel
 * with. So what needs no answer, a lone disposition for instance, is acknowledged at once. The
 * kernel forgets the wish again: it has to be said each time. */
void weir__tcp_acknowledge(struct weir__tcp *c)
{
#ifdef TCP_QUICKACK
    int on = 1;

    setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
#endif
    c->owes_ack = false;
}

void weir__tcp_discard(struct weir__tcp *c)
{
    uint8_t scratch[8192];
    struct weir_error err;
    enum weir__flow flow = WEIR__FLOW_MOVED;
    size_t got;

    while (flow == WEIR__FLOW_MOVED && c->discarded < WEIR__TCP_DISCARD_MAX) {
        flow = socket_read(c, scratch, sizeof scratch, &got, &err);
        c->discarded += got;
    }
    if (flow == WEIR__FLOW_WAIT) return;
    c->ended = true;
    if (flow == WEIR__FLOW_FAILED && c->state < WEIR__TCP_DRAINING) weir__tcp_fail_by(c, &err);
}
