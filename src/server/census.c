#include "server/census.h"

#include <stdlib.h>

struct names {
    char (*at)[WEIR__HUB_NAME_MAX + 1];
    uint32_t count;
};

static int note_hub(const struct weir__catalog_hub *hub, void *user)
{
    struct names *names = user;

    if (names->count == WEIR__CATALOG_HUBS_MAX) return 0;
    memcpy(names->at[names->count++], hub->name, sizeof names->at[0]);
    return 0;
}

bool weir__census(struct weir__namespace *ns, weir__census_fn fn, void *user)
{
    struct names names = {calloc(WEIR__CATALOG_HUBS_MAX, sizeof *names.at), 0};
    bool going = names.at != NULL;

    if (going) weir__namespace_hub_each(ns, note_hub, &names);
    for (uint32_t i = 0; going && i < names.count; i++) {
        struct weir__hub *hub = NULL;
        int rc = weir__namespace_use(ns, names.at[i], &hub, NULL);
        if (rc == WEIR_ENOTFOUND) continue; /* deleted just now */
        going = fn(names.at[i], rc == 0 ? hub : NULL, user);
        if (rc == 0) weir__hub_release(hub);
    }
    free(names.at);
    return going;
}
