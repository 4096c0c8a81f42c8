#include "hub/position.h"

#include <inttypes.h>

#include "hub/state.h"

static int fail_beyond(const char *what, int64_t value, int64_t last, struct weir_error *err)
{
    return weir__fail(err, WEIR_EINVAL,
                      "The supplied %s '%" PRId64 "' is invalid. The last %s in the system is "
                      "'%" PRId64 "'",
                      what, value, what, last);
}

int weir__position_find(struct weir__hub *hub, uint32_t partition,
                        const struct weir__position *from, uint64_t *out, struct weir_error *err)
{
    struct weir__partition_properties p;
    int rc = weir__hub_partition_properties(hub, partition, &p, err);
    int64_t value = from->value;

    if (rc != 0) return rc;
    *out = (uint64_t)p.begin_sequence;
    switch (from->kind) {
    case WEIR__FROM_EARLIEST: return 0;
    case WEIR__FROM_LATEST: *out = (uint64_t)p.last_sequence + 1; return 0;
    case WEIR__FROM_OFFSET:
        if (value == -1) return 0;
        if (value < -1 || value > p.last_offset)
            return fail_beyond("offset", value, p.last_offset, err);
        return weir__log_find(hub->log, partition, WEIR__LOG_BY_OFFSET, value, from->inclusive, out,
                              err);
    case WEIR__FROM_SEQUENCE:
        if (value == -1) return 0;
        if (value < -1 || value > p.last_sequence + (from->inclusive ? 1 : 0))
            return fail_beyond("sequence number", value, p.last_sequence, err);
        return weir__log_find(hub->log, partition, WEIR__LOG_BY_SEQUENCE, value, from->inclusive,
                              out, err);
    case WEIR__FROM_TIME:
        return weir__log_find(hub->log, partition, WEIR__LOG_BY_TIME, value, from->inclusive, out,
                              err);
    case WEIR__POSITION_KINDS: break;
    }
    return weir__fail(err, WEIR_EINVAL, "unknown kind of position %d", (int)from->kind);
}
