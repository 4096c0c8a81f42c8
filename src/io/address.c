/* address.c - "host:port" taken apart, and written for people. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "io/state.h"

static bool is_port(const char *s)
{
    unsigned value = 0;
    size_t n = strspn(s, "0123456789");

    if (n == 0 || n > 5 || s[n]) return false;
    for (size_t i = 0; i < n; i++) value = value * 10 + (unsigned)(s[i] - '0');
    return value <= 65535;
}

int weir__address_split(const char *address, char host[WEIR__HOST_MAX], char port[WEIR__PORT_MAX],
                        struct weir_error *err)
{
    const char *colon = strrchr(address, ':'), *first = address, *last = colon;

    if (!colon || !is_port(colon + 1))
        return weir__fail(err, WEIR_EINVAL, "'%.200s' is not HOST:PORT", address);
    if (*first == '[') {
        first++;
        last--;
        if (last <= first || *last != ']')
            return weir__fail(err, WEIR_EINVAL, "'%.200s' is not [HOST]:PORT", address);
    } else if (memchr(first, ':', (size_t)(last - first))) {
        return weir__fail(err, WEIR_EINVAL, "'%.200s': write [HOST]:PORT for IPv6", address);
    }
    if (last <= first || last - first >= WEIR__HOST_MAX)
        return weir__fail(err, WEIR_EINVAL, "'%.200s' has no host, or a long one", address);
    memcpy(host, first, (size_t)(last - first));
    host[last - first] = '\0';
    snprintf(port, WEIR__PORT_MAX, "%s", colon + 1);
    return 0;
}

void weir__address_format(const struct sockaddr *sa, char to[WEIR__TCP_ADDRESS_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";

    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(to, WEIR__TCP_ADDRESS_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const void *)sa;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(to, WEIR__TCP_ADDRESS_MAX, "%s:%u", host, ntohs(in->sin_port));
    }
}

/* But for the ports. Of one socket, so of one family. */
static bool are_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

    if (a->ss_family == AF_INET6)
        return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
    return a->ss_family == AF_INET && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

bool weir__address_shared(int fd)
{
    struct sockaddr_storage ours = {0}, theirs = {0};
    socklen_t len = sizeof ours, their_len = sizeof theirs;

    return getsockname(fd, (struct sockaddr *)&ours, &len) == 0 &&
           getpeername(fd, (struct sockaddr *)&theirs, &their_len) == 0 &&
           are_equal(&ours, &theirs);
}
