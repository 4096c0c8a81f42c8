/* connection.h - connection strings, as Azure's clients take them. */
#ifndef WEIR_CLI_CONNECTION_H
#define WEIR_CLI_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR__CONNECTION_BYTES 1280      /* of any, with its NUL */
#define WEIR__CONNECTION_TEXT_BYTES 8193 /* of one that a user may write */
#define WEIR__CONNECTION_ADDRESS_BYTES 272
#define WEIR__CONNECTION_RULE "RootManageSharedAccessKey"
#define WEIR__CONNECTION_DEVELOPMENT_KEY "SAS_KEY_VALUE"
#define WEIR__CONNECTION_ADDRESS "127.0.0.1:5672"

/* The string for plain AMQP at an address, with a rule's first key. hub is whose rule it is; NULL:
 * the namespace's, which opens every hub. */
void weir__connection_string(char out[WEIR__CONNECTION_BYTES], const char *address, const char *hub,
                             const char *rule, const char *key);

/* The string for another key of the same place: where it is, and how it is reached, are those of
 * `like`. false: it is too long. */
bool weir__connection_like(char out[WEIR__CONNECTION_BYTES], const char *like, const char *hub,
                           const char *rule, const char *key);

/* What a user may write for a server: a connection string, which is copied; or HOST:PORT, or
 * sb://HOST[:PORT], which mean weir serve or the emulator there, without TLS and with its well-known
 * key. false: it is neither, or too long. Whether a string is well-formed shows when it is used. */
bool weir__connection_expand(char out[WEIR__CONNECTION_TEXT_BYTES], const char *text);

/* The address by which this machine itself reaches what listens on one: that of every address is
 * the machine's own. */
void weir__connection_own(char out[WEIR__CONNECTION_ADDRESS_BYTES], const char *address);

/* Whether it has the form "HOST:PORT", with a port of 0 to 65535. */
bool weir__connection_is_address(const char *text);

/* Whether only this machine can reach an address "HOST:PORT". */
bool weir__connection_is_local(const char *address);

#endif
