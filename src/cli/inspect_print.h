/* inspect_print.h - what weir inspect says, as text or as JSON.
 *
 * JSON is one object for each line; "kind" says what it is about:
 *
 *   {"kind":"hub","name":"homes","partition_count":4,"group_count":1,"created":"...","folder":"..."}
 *   {"kind":"damage","hub":"homes","file":"...","at":0,"bytes":0,"partition":0,
 *    "first_sequence":0,"last_sequence":0,"text":"..."}
 *   {"kind":"orphan","id":"2a","readable":true}
 *   {"kind":"sum","hubs":1,"segments":1,"damaged":0,"orphans":0,"torn":0,"unread":0}
 *
 * Findings are of kind segment, damage, unread, torn, index, cut, ignored, version or warning; members
 * that say nothing are left out. */
#ifndef WEIR_CLI_INSPECT_PRINT_H
#define WEIR_CLI_INSPECT_PRINT_H

#include "hub/catalog.h"
#include "hub/namespace.h"

struct weir__inspection {
    const char *dir;
    bool json;
    const char *hub; /* whose log is looked at; NULL: none */
    uint64_t segments, damaged, torn, orphans;
    uint64_t
        unread; /* hubs of which nothing is known: no descriptor was left, or no right to read */
};

void weir__inspect_hub(const struct weir__inspection *, const struct weir__catalog_hub *,
                       const char *folder);
void weir__inspect_finding(const struct weir__inspection *, const struct weir__log_finding *);
void weir__inspect_unread(const struct weir__inspection *, bool damage, const struct weir_error *);
void weir__inspect_warning(const struct weir__inspection *, bool damage, const char *line);
void weir__inspect_orphan(const struct weir__inspection *, const struct weir__orphan *);
void weir__inspect_result(const struct weir__inspection *, uint32_t hubs);

#endif
