/* wanted.h - the hubs that a server is asked to have, by --hub and by --config.
 *
 * They are gathered and checked first; then what is missing is made. Nothing is ever deleted, and a
 * hub that is there with less partitions is an error before anything was made. */
#ifndef WEIR_CLI_WANTED_H
#define WEIR_CLI_WANTED_H

#include "hub/namespace.h"

#define WEIR__WANTED_FROM_BYTES 160

struct weir__wanted_hub {
    char from[WEIR__WANTED_FROM_BYTES]; /* who asks: "--hub orders:4", "Config.json:7:11" */
    char name[WEIR__HUB_NAME_MAX + 1];
    uint32_t partitions;
    struct weir__catalog_group *groups;
    uint32_t group_count;
};

struct weir__wanted {
    struct weir__wanted_hub *hubs;
    uint32_t count;
};

/* Room for one more, zeroed but for `from`, which is copied. Lives until the next. */
int weir__wanted_add(struct weir__wanted *, const char *from, struct weir__wanted_hub **out,
                     struct weir_error *);
int weir__wanted_set_name(struct weir__wanted_hub *, const char *name, struct weir_error *);
int weir__wanted_set_partitions(struct weir__wanted_hub *, const char *number, struct weir_error *);
int weir__wanted_add_group(struct weir__wanted_hub *, const char *name, struct weir_error *);

/* "NAME:PARTITIONS[:GROUP,...]" */
int weir__wanted_parse(struct weir__wanted *, const char *text, struct weir_error *);

/* Makes the hubs and groups that are not there. */
int weir__wanted_make(const struct weir__wanted *, struct weir__namespace *, struct weir_error *);

void weir__wanted_fini(struct weir__wanted *);

#endif
