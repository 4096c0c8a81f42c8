/* epoch.h - who may read a partition for a consumer group: the rules, and nothing else.
 *
 * A place is one (hub, group, partition). It holds either one receiver with an epoch, or up to five
 * without. Who comes is let in, or refused, and may push out those who are there:
 *
 *   who comes            nobody there   some without      one with epoch M
 *   without an epoch     in             in, at most 5     refused, naming M
 *   with epoch E         in             in, all out       E >= M: in, M out; E < M: refused
 *
 * Any epoch is good when nobody is there: a place does not remember. The texts are Azure's own.
 * Plain structs, no locks, no allocation; receiver.c calls this under its hub's lock. */
#ifndef WEIR_HUB_EPOCH_H
#define WEIR_HUB_EPOCH_H

#include <stdint.h>

#include "base/error.h"

#define WEIR__EPOCH_NONE (-1)
#define WEIR__EPOCH_SHARED_MAX 5   /* receivers without epoch in one place */
#define WEIR__RECEIVER_NAME_MAX 64 /* bytes; five of them fit an error's text */

/* A receiver as the rules see it. It belongs to the caller and stays while it is in a place. */
struct weir__epoch_member {
    int64_t epoch;    /* 0 or more, or WEIR__EPOCH_NONE */
    const char *name; /* for texts; NULL or empty prints as nil */
};

struct weir__epoch_place {
    struct weir__epoch_member *member[WEIR__EPOCH_SHARED_MAX];
    uint32_t count;
};

/* Lets a member in and puts those it pushed out into `out` (they are no longer in the place).
 * WEIR_EEPOCH: an epoch holds the place. WEIR_ELIMIT: five are there. WEIR_EINVAL: a negative
 * epoch that is not WEIR__EPOCH_NONE. Refused, the place is as it was. */
int weir__epoch_attach(struct weir__epoch_place *, struct weir__epoch_member *,
                       struct weir__epoch_member *out[WEIR__EPOCH_SHARED_MAX], uint32_t *out_count,
                       struct weir_error *);

/* Leaves; nothing when it is not there (any more). */
void weir__epoch_detach(struct weir__epoch_place *, const struct weir__epoch_member *);

/* What a member that was pushed out is told: fills err, returns WEIR_ESTOLEN. */
int weir__epoch_stolen(const struct weir__epoch_member *old, const struct weir__epoch_member *by,
                       struct weir_error *);

#endif
