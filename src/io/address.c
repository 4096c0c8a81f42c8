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
