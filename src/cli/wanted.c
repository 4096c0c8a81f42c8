#include "cli/wanted.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/args.h"
#include "log/log.h"

#define HUB_TEXT_MAX 4096

/* ---- gathering ---- */

int weir__wanted_add(struct weir__wanted *w, const char *from, struct weir__wanted_hub **out,
                     struct weir_error *err)
{
    struct weir__wanted_hub *hubs;

    if (w->count == WEIR__CATALOG_HUBS_MAX)
        return weir__fail(err, WEIR_ELIMIT, "more than %d hubs", WEIR__CATALOG_HUBS_MAX);
    hubs = realloc(w->hubs, (w->count + 1) * sizeof *hubs);
    if (!hubs) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    w->hubs = hubs;
    *out = &hubs[w->count++];
    memset(*out, 0, sizeof **out);
    snprintf((*out)->from, sizeof(*out)->from, "%s", from);
    return 0;
}

int weir__wanted_set_name(struct weir__wanted_hub *h, const char *name, struct weir_error *err)
{
    int rc = weir__name_check(WEIR__NAME_HUB, name, err);

    if (rc == 0) memcpy(h->name, name, strlen(name) + 1);
    return rc;
}

int weir__wanted_set_partitions(struct weir__wanted_hub *h, const char *number,
                                struct weir_error *err)
{
    uint64_t partitions;

    if (!weir__args_number(number, &partitions) || partitions == 0 ||
        partitions > WEIR__LOG_PARTITIONS_MAX)
        return weir__fail(err, WEIR_EINVAL, "a hub has 1 to %u partitions, not '%.32s'",
                          WEIR__LOG_PARTITIONS_MAX, number);
    h->partitions = (uint32_t)partitions;
    return 0;
}

/* One that was named before is not added again; every hub has $Default anyway. */
int weir__wanted_add_group(struct weir__wanted_hub *h, const char *name, struct weir_error *err)
{
    struct weir__catalog_group *groups;
    int rc = weir__name_check(WEIR__NAME_GROUP, name, err);

    if (rc != 0 || weir__name_equal(name, WEIR__GROUP_DEFAULT)) return rc;
    for (uint32_t i = 0; i < h->group_count; i++)
        if (weir__name_equal(h->groups[i].name, name)) return 0;
    if (h->group_count == WEIR__CATALOG_GROUPS_MAX)
        return weir__fail(err, WEIR_ELIMIT, "more than %d consumer groups",
                          WEIR__CATALOG_GROUPS_MAX);
    groups = realloc(h->groups, (h->group_count + 1) * sizeof *groups);
    if (!groups) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    h->groups = groups;
    memcpy(groups[h->group_count++].name, name, strlen(name) + 1);
    return 0;
}

int weir__wanted_parse(struct weir__wanted *w, const char *text, struct weir_error *err)
{
    char copy[HUB_TEXT_MAX], from[WEIR__WANTED_FROM_BYTES], *number, *groups, *rest = NULL;
    struct weir__wanted_hub *hub;
    int rc;

    snprintf(copy, sizeof copy, "%s", text);
    number = strchr(copy, ':');
    if (!number || strlen(text) >= sizeof copy)
        return weir__fail(err, WEIR_EINVAL,
                          "--hub must be NAME:PARTITIONS[:GROUP,...], not '%.64s'", text);
    *number++ = '\0';
    groups = strchr(number, ':');
    if (groups) *groups++ = '\0';
    snprintf(from, sizeof from, "--hub %.100s", text);
    rc = weir__wanted_add(w, from, &hub, err);
    if (rc == 0) rc = weir__wanted_set_name(hub, copy, err);
    if (rc == 0) rc = weir__wanted_set_partitions(hub, number, err);
    for (char *g = groups ? strtok_r(groups, ",", &rest) : NULL; rc == 0 && g;
         g = strtok_r(NULL, ",", &rest))
        rc = weir__wanted_add_group(hub, g, err);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", from);
}

void weir__wanted_fini(struct weir__wanted *w)
{
    for (uint32_t i = 0; i < w->count; i++) free(w->hubs[i].groups);
    free(w->hubs);
    *w = (struct weir__wanted){0};
}

/* ---- making ---- */

static int note_partitions(const struct weir__catalog_hub *hub, void *user)
{
    *(uint32_t *)user = hub->partitions;
    return 0;
}

/* WEIR_ENOTFOUND: it is missing. */
static int agree(const struct weir__wanted_hub *h, struct weir__namespace *ns,
                 struct weir_error *err)
{
    uint32_t partitions = 0;
    int rc = weir__namespace_hub_show(ns, h->name, note_partitions, &partitions, err);

    if (rc != 0 || partitions >= h->partitions) return rc; /* it may have grown since */
    return weir__fail(err, WEIR_EINVAL,
                      "%s: hub '%s' has %u partition%s, and %u are asked for; 'weir hub update' "
                      "can give it more",
                      h->from, h->name, partitions, partitions == 1 ? "" : "s", h->partitions);
}

/* With its groups at once: that is one change of the catalogue instead of many. */
static int create(const struct weir__wanted_hub *h, struct weir__namespace *ns,
                  struct weir_error *err)
{
    const char **groups = calloc(h->group_count + 1, sizeof *groups);
    struct weir__hub_config config = {.name = h->name,
                                      .partitions = h->partitions,
                                      .groups = groups,
                                      .group_count = h->group_count};
    int rc;

    if (!groups) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < h->group_count; i++) groups[i] = h->groups[i].name;
    rc = weir__namespace_hub_create(ns, &config, err);
    free(groups);
    return rc;
}

static int add_groups(const struct weir__wanted_hub *h, struct weir__namespace *ns,
                      struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < h->group_count; i++) {
        rc = weir__namespace_group_add(ns, h->name, h->groups[i].name, err);
        if (rc == WEIR_EEXIST) rc = 0;
    }
    return rc;
}

static int make(const struct weir__wanted_hub *h, struct weir__namespace *ns,
                struct weir_error *err)
{
    int rc = agree(h, ns, err);

    if (rc == WEIR_ENOTFOUND) return create(h, ns, err);
    return rc == 0 ? add_groups(h, ns, err) : rc;
}

int weir__wanted_make(const struct weir__wanted *w, struct weir__namespace *ns,
                      struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < w->count; i++) {
        rc = agree(&w->hubs[i], ns, err);
        if (rc == WEIR_ENOTFOUND) rc = 0;
    }
    for (uint32_t i = 0; rc == 0 && i < w->count; i++) rc = make(&w->hubs[i], ns, err);
    return rc;
}
