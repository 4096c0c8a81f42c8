/* connstr.h - Azure's connection strings, which say where a namespace is and how to get in:
 *
 *   Endpoint=sb://HOST[:PORT]/;SharedAccessKeyName=NAME;SharedAccessKey=KEY[;EntityPath=HUB]
 *   Endpoint=sb://HOST[:PORT]/;SharedAccessSignature=TOKEN[;EntityPath=HUB]
 *
 * with UseDevelopmentEmulator=true for AMQP without TLS and TransportType=AmqpWebSockets for AMQP
 * inside a WebSocket. Without a PORT it is the usual one:
 *
 *                AMQP    in a WebSocket
 *   TLS          5671    443
 *   emulator     5672    5300
 *
 * Parts come in any order, names in any case; blanks around names and values are cut off, and parts
 * that are not known here are for somebody else. Texts of errors never repeat a value: it may be the
 * key, in the wrong place. */
#ifndef WEIR_CLIENT_CONNSTR_H
#define WEIR_CLIENT_CONNSTR_H

#include <stdbool.h>

#include "base/error.h"
#include "hub/access.h"

#define WEIR__CONNSTR_HOST_MAX 253
#define WEIR__CONNSTR_KEY_MAX 256
#define WEIR__CONNSTR_BYTES_MAX 8192

struct weir__connstr {
    char host[WEIR__CONNSTR_HOST_MAX + 1];        /* without brackets and port */
    char address[WEIR__CONNSTR_HOST_MAX + 1 + 8]; /* HOST:PORT, to connect to */
    char key_name[WEIR__RULE_NAME_MAX + 1];
    char key[WEIR__CONNSTR_KEY_MAX + 1];
    char signature[WEIR__ACCESS_TOKEN_MAX + 1]; /* a token that somebody else made; "": none */
    char hub[WEIR__HUB_NAME_MAX + 1];           /* EntityPath; "": any */
    bool plain;                                 /* no TLS */
    bool websocket;
};

/* Whether this is meant to be one, and not the path of a folder. */
bool weir__connstr_is(const char *text);

/* WEIR_EINVAL: the text names the part, and what is expected there. */
int weir__connstr_parse(struct weir__connstr *, const char *text, struct weir_error *);

#endif
