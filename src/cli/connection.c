#include "cli/connection.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/args.h"
#include "client/connstr.h"

#define HOST_BYTES 256
#define SCHEME "sb://"
#define DEFAULT_PORT ":5672" /* which clients take when there is none */

/* The host without its brackets, empty when it is too long. Returns where ":PORT" begins. */
static const char *split(const char *address, char host[HOST_BYTES])
{
    const char *port = strrchr(address, ':');
    size_t len = port ? (size_t)(port - address) : strlen(address);

    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    snprintf(host, HOST_BYTES, "%.*s", len < HOST_BYTES ? (int)len : 0, address);
    return port ? port : "";
}

bool weir__connection_is_address(const char *text)
{
    const char *port = strrchr(text, ':');
    uint64_t number;

    return port && port > text && weir__args_number(port + 1, &number) && number <= UINT16_MAX;
}

/* A name that is not localhost may mean any machine, whatever it looks like. */
bool weir__connection_is_local(const char *address)
{
    struct in6_addr six;
    struct in_addr four;
    char host[HOST_BYTES];

    split(address, host);
    if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
    return strcmp(host, "localhost") == 0;
}

void weir__connection_own(char out[WEIR__CONNECTION_ADDRESS_BYTES], const char *address)
{
    char host[HOST_BYTES];
    const char *port = split(address, host);

    if (strcmp(host, "0.0.0.0") == 0)
        snprintf(out, WEIR__CONNECTION_ADDRESS_BYTES, "127.0.0.1%s", port);
    else if (strcmp(host, "::") == 0)
        snprintf(out, WEIR__CONNECTION_ADDRESS_BYTES, "[::1]%s", port);
    else
        snprintf(out, WEIR__CONNECTION_ADDRESS_BYTES, "%s", address);
}

/* The place alone, without its scheme; NULL: it is more than that, or something else. */
static const char *place_of(const char *text)
{
    if (strchr(text, '=')) return NULL;
    if (strncasecmp(text, SCHEME, strlen(SCHEME)) == 0) return text + strlen(SCHEME);
    return weir__connection_is_address(text) ? text : NULL;
}

bool weir__connection_expand(char out[WEIR__CONNECTION_TEXT_BYTES], const char *text)
{
    const char *place = place_of(text);
    int n;

    if (place)
        n = snprintf(out, WEIR__CONNECTION_TEXT_BYTES,
                     "Endpoint=" SCHEME "%s;SharedAccessKeyName=" WEIR__CONNECTION_RULE
                     ";SharedAccessKey=" WEIR__CONNECTION_DEVELOPMENT_KEY
                     ";UseDevelopmentEmulator=true",
                     place);
    else if (weir__connstr_is(text))
        n = snprintf(out, WEIR__CONNECTION_TEXT_BYTES, "%s", text);
    else
        return false;
    return n < WEIR__CONNECTION_TEXT_BYTES;
}

/* Every address of this machine, and the ones that it alone has, are localhost to clients. */
void weir__connection_string(char out[WEIR__CONNECTION_BYTES], const char *address, const char *hub,
                             const char *rule, const char *key)
{
    char host[HOST_BYTES];
    const char *port = split(address, host);
    bool here = weir__connection_is_local(address) || strcmp(host, "0.0.0.0") == 0 ||
                strcmp(host, "::") == 0;
    bool six = strchr(host, ':') && !here;

    snprintf(out, WEIR__CONNECTION_BYTES,
             "Endpoint=sb://%s%s%s%s;SharedAccessKeyName=%s;SharedAccessKey=%s;"
             "UseDevelopmentEmulator=true;%s%s%s",
             six ? "[" : "", here ? "localhost" : host, six ? "]" : "",
             strcmp(port, DEFAULT_PORT) == 0 ? "" : port, rule, key, hub ? "EntityPath=" : "",
             hub ? hub : "", hub ? ";" : "");
}

/* Adds "NAME=VALUE;" of that name, if `like` has it, as it stands there. */
static bool copy_part(char out[WEIR__CONNECTION_BYTES], const char *like, const char *name)
{
    size_t len = strlen(out), part, word = strlen(name);

    for (const char *at = like; *at; at += part + (at[part] == ';')) {
        at += strspn(at, " ");
        part = strcspn(at, ";");
        if (strncasecmp(at, name, word) != 0 || at[word + strspn(at + word, " ")] != '=') continue;
        return snprintf(out + len, WEIR__CONNECTION_BYTES - len, "%.*s;", (int)part, at) <
               (int)(WEIR__CONNECTION_BYTES - len);
    }
    return true;
}

bool weir__connection_like(char out[WEIR__CONNECTION_BYTES], const char *like, const char *hub,
                           const char *rule, const char *key)
{
    size_t len;
    int more;

    *out = '\0';
    if (!copy_part(out, like, "Endpoint")) return false;
    len = strlen(out);
    more = snprintf(out + len, WEIR__CONNECTION_BYTES - len,
                    "SharedAccessKeyName=%s;SharedAccessKey=%s;%s%s%s", rule, key,
                    hub ? "EntityPath=" : "", hub ? hub : "", hub ? ";" : "");
    return more < (int)(WEIR__CONNECTION_BYTES - len) &&
           copy_part(out, like, "UseDevelopmentEmulator") && copy_part(out, like, "TransportType");
}
