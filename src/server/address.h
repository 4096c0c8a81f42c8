/* address.h - what the address of a link means.
 *
 *   $cbs, $management, HUB/$management          ask and be answered
 *   HUB, HUB/Partitions/N, HUB/Publishers/NAME  publish
 *   HUB/ConsumerGroups/GROUP/Partitions/N       receive
 *
 * Clients write them as paths, with a slash in front, or as URIs, in any case. Pure. */
#ifndef WEIR_SERVER_ADDRESS_H
#define WEIR_SERVER_ADDRESS_H

#include "hub/access.h"

enum weir__address_kind {
    WEIR__ADDRESS_UNKNOWN,
    WEIR__ADDRESS_CBS,
    WEIR__ADDRESS_MANAGEMENT,
    WEIR__ADDRESS_PUBLISH,
    WEIR__ADDRESS_RECEIVE,
    WEIR__ADDRESS_KINDS
};

#define WEIR__ADDRESS_PARTITION_MAX 32

struct weir__address {
    enum weir__address_kind kind;
    struct weir__access_path path; /* for asking whether it is allowed */
    char hub[WEIR__HUB_NAME_MAX + 1];
    char group[WEIR__GROUP_NAME_MAX + 1];            /* receive */
    char partition[WEIR__ADDRESS_PARTITION_MAX + 1]; /* as written; empty: none was named */
};

/* WEIR_EINVAL: no path, or a name in it is too long. An address that is none of the above is
 * WEIR__ADDRESS_UNKNOWN. */
int weir__address_parse(struct weir__address *, struct weir__bytes text, struct weir_error *);

/* The number of a partition, "0" to "1023" without ornaments; UINT32_MAX when it is none. */
uint32_t weir__address_partition(const char *text);

#endif
