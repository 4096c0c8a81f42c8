#include "hub/epoch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define NAMES_BYTES (WEIR__EPOCH_SHARED_MAX * (WEIR__RECEIVER_NAME_MAX + 2) + 1)
#define EPOCH_BYTES 21

static const char *name_of(const struct weir__epoch_member *m)
{
    return m->name && m->name[0] ? m->name : "nil";
}

/* The member with an epoch, of whom there is at most one and who is then alone. */
static const struct weir__epoch_member *owner_of(const struct weir__epoch_place *p)
{
    return p->count == 1 && p->member[0]->epoch != WEIR__EPOCH_NONE ? p->member[0] : NULL;
}

static int refuse_lower(const struct weir__epoch_member *m, const struct weir__epoch_member *owner,
                        struct weir_error *err)
{
    return weir__fail(err, WEIR_EEPOCH,
                      "Receiver '%s' with a higher epoch '%" PRId64 "' already exists. Receiver "
                      "'%s' with epoch %" PRId64 " cannot be created. Make sure you are creating "
                      "receiver with increasing epoch value to ensure connectivity, or ensure all "
                      "old epoch receivers are closed or disconnected.",
                      name_of(owner), owner->epoch, name_of(m), m->epoch);
}

static int refuse_without(const struct weir__epoch_member *owner, struct weir_error *err)
{
    return weir__fail(err, WEIR_EEPOCH,
                      "At least one receiver for the endpoint is created with epoch of '%" PRId64
                      "', and so non-epoch receiver is not allowed. Either reconnect with a higher "
                      "epoch, or make sure all epoch receivers are closed or disconnected.",
                      owner->epoch);
}

static int refuse_sixth(const struct weir__epoch_place *p, struct weir_error *err)
{
    char names[NAMES_BYTES] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < p->count; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", i ? ", " : "",
                                 WEIR__RECEIVER_NAME_MAX, name_of(p->member[i]));
    return weir__fail(err, WEIR_ELIMIT,
                      "Exceeded the maximum number of allowed receivers per partition in a "
                      "consumer group which is %d. List of connected receivers - %s.",
                      WEIR__EPOCH_SHARED_MAX, names);
}

static int admit(const struct weir__epoch_place *p, const struct weir__epoch_member *m,
                 struct weir_error *err)
{
    const struct weir__epoch_member *owner = owner_of(p);
    bool without = m->epoch == WEIR__EPOCH_NONE;

    if (m->epoch < WEIR__EPOCH_NONE)
        return weir__fail(err, WEIR_EINVAL, "epoch %" PRId64 " is negative", m->epoch);
    if (owner && without) return refuse_without(owner, err);
    if (owner && m->epoch < owner->epoch) return refuse_lower(m, owner, err);
    if (without && p->count == WEIR__EPOCH_SHARED_MAX) return refuse_sixth(p, err);
    return 0;
}

int weir__epoch_attach(struct weir__epoch_place *p, struct weir__epoch_member *m,
                       struct weir__epoch_member *out[WEIR__EPOCH_SHARED_MAX], uint32_t *out_count,
                       struct weir_error *err)
{
    int rc = admit(p, m, err);

    *out_count = 0;
    if (rc != 0) return rc;
    if (m->epoch != WEIR__EPOCH_NONE) {
        while (*out_count < p->count) {
            out[*out_count] = p->member[*out_count];
            ++*out_count;
        }
        p->count = 0;
    }
    p->member[p->count++] = m;
    return 0;
}

void weir__epoch_detach(struct weir__epoch_place *p, const struct weir__epoch_member *m)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < p->count; i++)
        if (p->member[i] != m) p->member[kept++] = p->member[i];
    p->count = kept;
}

int weir__epoch_stolen(const struct weir__epoch_member *old, const struct weir__epoch_member *by,
                       struct weir_error *err)
{
    char epoch[EPOCH_BYTES] = ""; /* a receiver without one prints nothing */

    if (old->epoch != WEIR__EPOCH_NONE) snprintf(epoch, sizeof epoch, "%" PRId64, old->epoch);
    return weir__fail(err, WEIR_ESTOLEN,
                      "New receiver '%s' with higher epoch of '%" PRId64 "' is created hence "
                      "current receiver '%s' with epoch '%s' is getting disconnected. If you are "
                      "recreating the receiver, make sure a higher epoch is used.",
                      name_of(by), by->epoch, name_of(old), epoch);
}
