/* route.h - which partition a batch goes to when its sender did not say.
 *
 * With a key: Azure's own hash, so that clients that compute it themselves agree with us. Without:
 * one after another. */
#ifndef WEIR_HUB_ROUTE_H
#define WEIR_HUB_ROUTE_H

#include <stdatomic.h>

#include "base/bytes.h"

/* Of the key's UTF-8 bytes. */
int16_t weir__route_hash(struct weir__bytes key);

/* 0 .. partitions - 1; partitions is 1 or more. */
uint32_t weir__route_key(struct weir__bytes key, uint32_t partitions);

/* Whose turn it is; zero to begin with. Any thread. */
struct weir__route_turn {
    atomic_uint next;
};

uint32_t weir__route_next(struct weir__route_turn *, uint32_t partitions);

#endif
