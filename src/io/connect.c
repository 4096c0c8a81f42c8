/* connect.c - outgoing connections: the name is resolved, then its addresses are tried in turn.
 *
 * A dial is an object of its own, because its connection may be closed while the resolver or libuv
 * still holds it; it then frees itself when they let go. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "io/state.h"

struct weir__dial {
    struct weir__tcp *c; /* NULL: forgotten */
    uv_getaddrinfo_t resolve;
    uv_poll_t poll;
    struct addrinfo *list, *at;
    int fd;
    int errnum; /* why the last one failed */
    bool polling;
    char host[WEIR__HOST_MAX], port[WEIR__PORT_MAX], tls_name[WEIR__HOST_MAX];
};

static void free_dial(struct weir__dial *d)
{
    if (d->list) uv_freeaddrinfo(d->list);
    if (d->fd >= 0) close(d->fd);
    free(d);
}

static void on_closed_free(uv_handle_t *h)
{
    free_dial(h->data);
}

static void try_addresses(struct weir__dial *d);

static void on_closed_try_next(uv_handle_t *h)
{
    struct weir__dial *d = h->data;

    if (d->c)
        try_addresses(d);
    else
        free_dial(d);
}

static void give_up(struct weir__dial *d)
{
    struct weir_error err;

    d->c->dial = NULL;
    weir__fail_errno(&err, d->errnum, d->port);
    weir__tcp_fail(d->c, WEIR_EUNREACHABLE, "connecting to %s:%s", d->host, err.text);
    free_dial(d);
}

/* The socket goes to the connection, which has its own way of watching it. */
static void hand_over(struct weir__dial *d)
{
    struct weir__tcp *c = d->c;
    struct weir_error err;

    c->dial = NULL;
    c->fd = d->fd;
    d->fd = -1;
    weir__address_format(d->at->ai_addr, c->peer);
    if (c->tls_context && weir__tls_new(&c->tls, c->tls_context, c->fd, d->tls_name, &err) != 0)
        weir__tcp_fail_by(c, &err);
    else
        weir__tcp_start(c);
}

static void on_event(uv_poll_t *p, int status, int events)
{
    struct weir__dial *d = p->data;
    socklen_t len = sizeof d->errnum;

    (void)status; /* a refusal comes as an event that libuv calls bad */
    (void)events;
    d->polling = false;
    getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &d->errnum, &len);
    if (d->errnum == 0) {
        uv_close((uv_handle_t *)p, on_closed_free);
        hand_over(d);
        return;
    }
    uv_close((uv_handle_t *)p, on_closed_try_next);
    close(d->fd);
    d->fd = -1;
    d->at = d->at->ai_next;
}

/* Whether it is on its way. */
static bool try_address(struct weir__dial *d)
{
    const struct addrinfo *a = d->at;

    d->fd =
        weir__descriptor_move(socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (d->fd >= 0 && (connect(d->fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS) &&
        uv_poll_init(&d->c->loop->uv, &d->poll, d->fd) == 0) {
        d->poll.data = d;
        d->polling = true;
        uv_poll_start(&d->poll, UV_WRITABLE, on_event); /* fails only for one that is watched */
        return true;
    }
    d->errnum = errno;
    if (d->fd >= 0) close(d->fd);
    d->fd = -1;
    return false;
}

static void try_addresses(struct weir__dial *d)
{
    for (; d->at; d->at = d->at->ai_next)
        if (try_address(d)) return;
    give_up(d);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct weir__dial *d = req->data;

    d->list = d->at = list;
    if (!d->c) {
        free_dial(d);
    } else if (status != 0) {
        d->c->dial = NULL;
        weir__tcp_fail(d->c, WEIR_EUNREACHABLE, "resolving %s: %s", d->host, uv_strerror(status));
        free_dial(d);
    } else {
        try_addresses(d);
    }
}

/* Whoever holds it now frees it. */
void weir__dial_forget(struct weir__dial *d)
{
    if (!d) return;
    d->c = NULL;
    if (d->polling)
        uv_close((uv_handle_t *)&d->poll, on_closed_free);
    else if (!d->list)
        uv_cancel((uv_req_t *)&d->resolve);
}

static int begin_dial(struct weir__tcp *c, struct weir__dial *d, struct weir_error *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc;

    d->c = c;
    d->fd = -1;
    d->resolve.data = d;
    rc = uv_getaddrinfo(&c->loop->uv, &d->resolve, on_resolved, d->host, d->port, &hints);
    if (rc != 0) return weir__fail(err, WEIR_EIO, "resolving %s: %s", d->host, uv_strerror(rc));
    c->dial = d;
    return 0;
}

int weir__tcp_connect(struct weir__tcp **out, struct weir__loop *l,
                      const struct weir__tcp_options *o, const struct weir__tcp_calls *calls,
                      void *owner, struct weir_error *err)
{
    struct weir__dial *d = calloc(1, sizeof *d);
    struct weir__tcp *c = weir__tcp_new(l, -1, WEIR__TCP_DIALING, &o->limits);
    int rc = WEIR_ENOMEM;

    assert(weir__loop_here(l));
    *out = NULL;
    if (!d || !c) {
        weir__fail(err, rc, "connecting to %s: out of memory", o->address);
        goto fail;
    }
    rc = weir__address_split(o->address, d->host, d->port, err);
    if (rc != 0) goto fail;
    snprintf(d->tls_name, sizeof d->tls_name, "%s", o->tls_name ? o->tls_name : d->host);
    rc = begin_dial(c, d, err);
    if (rc != 0) goto fail;
    c->tls_context = o->tls;
    weir__tcp_adopt(c, calls, owner);
    weir__loop_enter(l, &c->resident);
    weir__tcp_set_state(c, WEIR__TCP_DIALING);
    *out = c;
    return 0;
fail:
    if (c) weir__tcp_free(c);
    free(d);
    return rc;
}
