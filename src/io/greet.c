/* greet.c - the TLS handshake of a connection, and those who came to the wrong port. */
#include <errno.h>
#include <sys/socket.h>

#include "io/state.h"

void weir__tcp_greeted(struct weir__tcp *c)
{
    if (c->handshaking) weir__listener_handshake_over(c->listener);
    c->handshaking = false;
}

/* Somebody speaks something else on a port for TLS: they are told so. */
static void answer_mistaken(struct weir__tcp *c)
{
    uint8_t first[WEIR__SNIFF_BYTES];
    ssize_t n = recv(c->fd, first, sizeof first, 0);
    enum weir__sniff kind = weir__sniff(weir__bytes_of(first, n > 0 ? (size_t)n : 0));
    struct weir__bytes answer = weir__listener_mistaken(c->listener, c->peer, kind);

    if (answer.len) send(c->fd, answer.at, answer.len, MSG_NOSIGNAL);
    weir__tcp_greeted(c);
    weir__tcp_set_state(c, WEIR__TCP_GOODBYE);
    weir__tcp_visit(c);
}

/* A record of TLS begins with the byte 22; whatever else comes first is not TLS. */
static bool first_is_tls(struct weir__tcp *c)
{
    uint8_t first = 0;
    ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (n < 0)
        weir__tcp_fail_errno(c, errno);
    else if (n == 0)
        weir__tcp_fail(c, WEIR_EUNREACHABLE, "the peer left before the TLS handshake");
    else if (first != 22)
        answer_mistaken(c);
    return n == 1 && first == 22;
}

void weir__tcp_greet(struct weir__tcp *c)
{
    struct weir_error err;

    if (!c->tls && c->listener) {
        if (!first_is_tls(c)) return;
        if (weir__tls_new(&c->tls, c->tls_context, c->fd, NULL, &err) != 0)
            weir__tcp_fail_by(c, &err);
    }
    if (c->state == WEIR__TCP_CLOSED) return;
    switch (weir__tls_handshake(c->tls, &err)) {
    case WEIR__FLOW_MOVED: weir__tcp_become_open(c); break;
    case WEIR__FLOW_WAIT: break;
    case WEIR__FLOW_ENDED:
        weir__tcp_fail(c, WEIR_EUNREACHABLE, "the peer left in the TLS handshake");
        break;
    case WEIR__FLOW_FAILED: weir__tcp_fail_by(c, &err); break;
    }
}
