/* order.h - what a request to the administration wants: the members of its JSON object.
 *
 *   {"partitions":4,"retain_ms":86400000,"retain_bytes":0,"groups":["a","b"]}   of a hub
 *   {"adopt":"2a"}                                                              of an orphan
 *   {"rights":["send","listen"],"primary_key":"...","secondary_key":"..."}      of a rule
 *
 * Every member may be left out, and so may the whole object. Pure. */
#ifndef WEIR_SERVER_ORDER_H
#define WEIR_SERVER_ORDER_H

#include "hub/catalog.h"

enum weir__order_member {
    WEIR__ORDER_PARTITIONS = 1,
    WEIR__ORDER_RETAIN_MS = 2,
    WEIR__ORDER_RETAIN_BYTES = 4,
    WEIR__ORDER_GROUPS = 8,
    WEIR__ORDER_RIGHTS = 16,
    WEIR__ORDER_PRIMARY = 32,
    WEIR__ORDER_SECONDARY = 64,
    WEIR__ORDER_ADOPT = 128
};

#define WEIR__ORDER_HUB (15u | WEIR__ORDER_ADOPT)
#define WEIR__ORDER_CHANGES 7u
#define WEIR__ORDER_RULE 112u

struct weir__order {
    unsigned given; /* a set of the above */
    int64_t partitions, retain_ms, retain_bytes;
    uint64_t adopt;                     /* the id of an orphan */
    struct weir__catalog_group *groups; /* at most WEIR__CATALOG_GROUPS_MAX */
    uint32_t group_count;
    unsigned rights; /* enum weir__right */
    char key[WEIR__KEYS][WEIR__ACCESS_KEY_MAX + 1];
};

/* known: the members that may be there. WEIR_EINVAL names the one that is wrong, and how. Call fini
 * in any case. */
int weir__order_read(struct weir__order *, struct weir__bytes body, unsigned known,
                     struct weir_error *);
void weir__order_fini(struct weir__order *);

#endif
