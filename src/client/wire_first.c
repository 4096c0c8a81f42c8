/* wire_first.c - the first connection, before anybody has answered there: what a failure of it means
 * to who waits, and what may be wrong with the connection string. */
#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#include "client/wire.h"

#define FLAG "UseDevelopmentEmulator=true"

/* Want of memory passes; that nobody is there, or somebody else, does not by itself. */
bool weir__wire_is_final(const struct weir__wire *w, const struct weir_error *why)
{
    return !w->met && !w->wait && why->code != WEIR_ENOMEM;
}

static bool is_local(const char *host)
{
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
    return strcasecmp(host, "localhost") == 0;
}

static const char *hint(const struct weir__wire *w, enum weir__wire_failure failure)
{
    if (w->met) return NULL;
    if (w->to.plain)
        return failure == WEIR__WIRE_NOT_AMQP ? FLAG
                   " means AMQP without TLS: leave it out if TLS is spoken there"
                                              : NULL;
    if (failure == WEIR__WIRE_NOT_TLS)
        return "TLS is not spoken there: " FLAG " may be missing in the connection string";
    if (!is_local(w->to.host)) return NULL;
    if (failure == WEIR__WIRE_STRANGER)
        return FLAG " may be missing in the connection string; else 'weir trust' shows whom to "
                    "trust";
    return "TLS was tried: " FLAG " may be missing in the connection string";
}

void weir__wire_explain(const struct weir__wire *w, enum weir__wire_failure failure,
                        struct weir_error *why)
{
    const char *more = hint(w, failure);
    size_t len = strlen(why->text);

    if (more) snprintf(why->text + len, sizeof why->text - len, "; %s", more);
}
