/* bind.c - sockets that listen. Name resolution waits here, so this is not for a loop. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "io/holder.h"
#include "io/state.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static in_port_t *port_of(union address *a)
{
    return a->any.sa_family == AF_INET6 ? &a->v6.sin6_port : &a->v4.sin_port;
}

/* Who holds the port is what a person wants to know. */
static int fail_bind(int errnum, union address *a, struct weir_error *err)
{
    unsigned port = ntohs(*port_of(a));
    char address[WEIR__TCP_ADDRESS_MAX], holder[128];
    int rc;

    weir__address_format(&a->any, address);
    if (errnum != EADDRINUSE) {
        rc = weir__fail_errno(err, errnum, "bind");
        return weir__wrap(err, rc, "listening on %s", address);
    }
    if (weir__holder_of_port(port, holder, sizeof holder))
        return weir__fail(err, WEIR_EEXIST, "listening on %s: %s holds port %u", address, holder,
                          port);
    return weir__fail(err, WEIR_EEXIST, "listening on %s: another process holds port %u", address,
                      port);
}

static int listen_on(int fd, union address *a, socklen_t len, int backlog, struct weir_error *err)
{
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &a->any, len) == 0 && listen(fd, backlog) == 0) return 0;
    return fail_bind(errno, a, err);
}

/* The second address of a name listens on the port that the first was given. */
static int bind_one(struct weir__bound *b, const struct addrinfo *info, int backlog,
                    struct weir_error *err)
{
    union address a = {.v6 = {0}};
    socklen_t len = sizeof a;
    int rc, fd;

    memcpy(&a, info->ai_addr, info->ai_addrlen);
    if (b->count) *port_of(&a) = htons((uint16_t)b->port);
    fd = weir__descriptor_move(
        socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) return weir__fail_errno(err, errno, "socket");
    rc = listen_on(fd, &a, info->ai_addrlen, backlog, err);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    if (b->count == 0 && getsockname(fd, &a.any, &len) == 0) {
        b->port = ntohs(*port_of(&a));
        weir__address_format(&a.any, b->address);
    }
    b->fd[b->count++] = fd;
    return 0;
}

/* One family at a time. Addresses that this machine does not have (WEIR_EIO) do not matter while
 * there is another. */
static int bind_family(struct weir__bound *b, const struct addrinfo *list, int family, int backlog,
                       struct weir_error *err)
{
    int rc = 0;

    for (; list && (rc == 0 || rc == WEIR_EIO); list = list->ai_next)
        if (list->ai_family == family && b->count < WEIR__LISTENER_SOCKETS_MAX)
            rc = bind_one(b, list, backlog, err);
    return rc;
}

int weir__bind(const char *address, int backlog, struct weir__bound *b, struct weir_error *err)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char host[WEIR__HOST_MAX], port[WEIR__PORT_MAX];
    int rc = weir__address_split(address, host, port, err);

    b->count = 0;
    if (rc != 0) return rc;
    rc = getaddrinfo(host, port, &hints, &list);
    if (rc != 0) return weir__fail(err, WEIR_ENOTFOUND, "host '%s': %s", host, gai_strerror(rc));
    rc = bind_family(b, list, AF_INET, backlog, err);
    if (rc == 0 || rc == WEIR_EIO) {
        int second = bind_family(b, list, AF_INET6, backlog, err);
        if (second != 0) rc = second;
    }
    freeaddrinfo(list);
    if (rc == WEIR_EIO && b->count) rc = 0;
    while (rc != 0 && b->count) close(b->fd[--b->count]);
    return rc;
}
