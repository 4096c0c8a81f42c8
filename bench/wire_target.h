/* wire_target.h - whom a load client talks to, and how it proves who it is: an address, a hub and a
 * shared access key, and the token that is signed with it. */
#ifndef WEIR_BENCH_WIRE_TARGET_H
#define WEIR_BENCH_WIRE_TARGET_H

#include "base/error.h"
#include "hub/access.h"

#define WEIR__BENCH_WIRE_HOST_MAX 255
#define WEIR__BENCH_WIRE_AUDIENCE_BYTES 544 /* "sb://", host, port, hub and a NUL */

struct weir__bench_wire_target {
    char address[WEIR__BENCH_WIRE_HOST_MAX + 8]; /* "localhost:5672" */
    char hub[WEIR__HUB_NAME_MAX + 1];
    char rule[WEIR__RULE_NAME_MAX + 1];
    char key[WEIR__ACCESS_KEY_MAX + 1];
};

/* `connect` is a connection string of Event Hubs, or only HOST:PORT, which is taken to accept the
 * key of Microsoft's emulator. hub may be NULL where the string has an EntityPath. Plain AMQP is
 * spoken, so a string must say UseDevelopmentEmulator=true. */
int weir__bench_wire_target_parse(struct weir__bench_wire_target *, const char *connect,
                                  const char *hub, struct weir_error *);

/* What the token is for: "sb://localhost:5672/homes". */
void weir__bench_wire_target_audience(const struct weir__bench_wire_target *,
                                      char out[WEIR__BENCH_WIRE_AUDIENCE_BYTES]);

/* A shared access signature for that, valid until a second since 1970. */
int weir__bench_wire_target_token(const struct weir__bench_wire_target *, int64_t expires_s,
                                  char out[WEIR__ACCESS_TOKEN_MAX], struct weir_error *);

#endif
