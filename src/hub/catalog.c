#include "hub/catalog.h"

#include <assert.h>
#include <stdlib.h>

void weir__catalog_init(struct weir__catalog *c)
{
    *c = (struct weir__catalog){.version = WEIR__CATALOG_VERSION, .next_hub_id = 1};
}

static void free_hub(struct weir__catalog_hub *h)
{
    free(h->groups);
    free(h->rules);
}

void weir__catalog_fini(struct weir__catalog *c)
{
    for (uint32_t i = 0; i < c->hub_count; i++) free_hub(&c->hubs[i]);
    free(c->hubs);
    free(c->rules);
    free(c->removed);
    weir__catalog_init(c);
}

static int fail_memory(struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOMEM, "out of memory for the catalogue");
}

/* A copy of an array; NULL for an empty one. */
static int copy_array(void **out, const void *from, size_t count, size_t size,
                      struct weir_error *err)
{
    *out = NULL;
    if (count == 0) return 0;
    *out = malloc(count * size);
    if (!*out) return fail_memory(err);
    memcpy(*out, from, count * size);
    return 0;
}

static int copy_hub(struct weir__catalog_hub *out, const struct weir__catalog_hub *from,
                    struct weir_error *err)
{
    void *groups, *rules = NULL;
    int rc;

    *out = *from;
    rc = copy_array(&groups, from->groups, from->group_count, sizeof *from->groups, err);
    if (rc == 0) rc = copy_array(&rules, from->rules, from->rule_count, sizeof *from->rules, err);
    out->groups = groups;
    out->rules = rules;
    return rc;
}

int weir__catalog_copy(struct weir__catalog *out, const struct weir__catalog *from,
                       struct weir_error *err)
{
    void *rules = NULL, *hubs = NULL, *removed = NULL;
    int rc = copy_array(&rules, from->rules, from->rule_count, sizeof *from->rules, err);

    weir__catalog_init(out);
    if (rc == 0)
        rc = copy_array(&removed, from->removed, from->removed_count, sizeof *from->removed, err);
    if (rc == 0) rc = copy_array(&hubs, from->hubs, from->hub_count, sizeof *from->hubs, err);
    if (rc != 0) {
        free(rules);
        free(removed);
        return rc;
    }
    *out = (struct weir__catalog){.version = from->version,
                                  .generation = from->generation,
                                  .next_hub_id = from->next_hub_id,
                                  .rules = rules,
                                  .rule_count = from->rule_count,
                                  .removed = removed,
                                  .removed_count = from->removed_count,
                                  .hubs = hubs};
    for (uint32_t i = 0; rc == 0 && i < from->hub_count; i++) {
        rc = copy_hub(&out->hubs[i], &from->hubs[i], err);
        out->hub_count = i + 1;
    }
    if (rc != 0) weir__catalog_fini(out);
    return rc;
}

struct weir__catalog_hub *weir__catalog_hub(const struct weir__catalog *c, const char *name)
{
    for (uint32_t i = 0; i < c->hub_count; i++)
        if (weir__name_equal(c->hubs[i].name, name)) return &c->hubs[i];
    return NULL;
}

struct weir__catalog_group *weir__catalog_group(const struct weir__catalog_hub *h, const char *name)
{
    for (uint32_t i = 0; i < h->group_count; i++)
        if (weir__name_equal(h->groups[i].name, name)) return &h->groups[i];
    return NULL;
}

struct weir__rule *weir__catalog_rule(struct weir__rule *rules, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (weir__name_equal(rules[i].name, name)) return &rules[i];
    return NULL;
}

/* One zeroed element more at the end of an array that holds at most max. */
static int grow(void **array, uint32_t *count, size_t size, uint32_t max, const char *what,
                struct weir_error *err)
{
    uint8_t *at;

    if (*count >= max)
        return weir__fail(err, WEIR_ELIMIT, "there are %u %s already, and no more are allowed",
                          *count, what);
    at = realloc(*array, (*count + 1) * size);
    if (!at) return fail_memory(err);
    memset(at + *count * size, 0, size);
    *array = at;
    (*count)++;
    return 0;
}

/* Takes element i out of an array. */
static void shrink(void *array, uint32_t *count, size_t size, size_t i)
{
    uint8_t *at = array;

    assert(i < *count);
    (*count)--;
    memmove(at + i * size, at + (i + 1) * size, (*count - i) * size);
}

int weir__catalog_add_hub(struct weir__catalog *c, struct weir__catalog_hub **out,
                          struct weir_error *err)
{
    void *hubs = c->hubs;
    int rc = grow(&hubs, &c->hub_count, sizeof *c->hubs, WEIR__CATALOG_HUBS_MAX, "hubs", err);

    c->hubs = hubs;
    if (rc == 0) *out = &c->hubs[c->hub_count - 1];
    return rc;
}

struct weir__catalog_hub *weir__catalog_place_hub(struct weir__catalog *c)
{
    struct weir__catalog_hub hub = c->hubs[c->hub_count - 1];
    uint32_t at = c->hub_count - 1;

    for (; at > 0 && c->hubs[at - 1].id > hub.id; at--) c->hubs[at] = c->hubs[at - 1];
    c->hubs[at] = hub;
    return &c->hubs[at];
}

int weir__catalog_add_removed(struct weir__catalog *c, uint64_t id, struct weir_error *err)
{
    void *removed = c->removed;
    uint32_t at;
    int rc = grow(&removed, &c->removed_count, sizeof *c->removed, WEIR__CATALOG_REMOVED_MAX,
                  "deleted hubs whose folders are to be removed", err);

    c->removed = removed;
    if (rc != 0) return rc;
    for (at = c->removed_count - 1; at > 0 && c->removed[at - 1] > id; at--)
        c->removed[at] = c->removed[at - 1];
    c->removed[at] = id;
    return 0;
}

bool weir__catalog_is_removed(const struct weir__catalog *c, uint64_t id)
{
    for (uint32_t i = 0; i < c->removed_count; i++)
        if (c->removed[i] == id) return true;
    return false;
}

void weir__catalog_drop_removed(struct weir__catalog *c, uint64_t id)
{
    for (uint32_t i = c->removed_count; i-- > 0;)
        if (c->removed[i] == id) shrink(c->removed, &c->removed_count, sizeof *c->removed, i);
}

int weir__catalog_add_group(struct weir__catalog_hub *h, const char *name, struct weir_error *err)
{
    void *groups = h->groups;
    int rc = grow(&groups, &h->group_count, sizeof *h->groups, WEIR__CATALOG_GROUPS_MAX,
                  "consumer groups", err);

    h->groups = groups;
    if (rc != 0) return rc;
    assert(strlen(name) <= WEIR__GROUP_NAME_MAX);
    memcpy(h->groups[h->group_count - 1].name, name, strlen(name) + 1);
    return 0;
}

int weir__catalog_add_rule(struct weir__rule **rules, uint32_t *count,
                           const struct weir__rule *rule, struct weir_error *err)
{
    void *at = *rules;
    int rc = grow(&at, count, sizeof *rule, WEIR__ACCESS_RULES_MAX, "access rules", err);

    *rules = at;
    if (rc == 0) (*rules)[*count - 1] = *rule;
    return rc;
}

void weir__catalog_remove_hub(struct weir__catalog *c, struct weir__catalog_hub *h)
{
    free_hub(h);
    shrink(c->hubs, &c->hub_count, sizeof *h, (size_t)(h - c->hubs));
}

void weir__catalog_remove_group(struct weir__catalog_hub *h, struct weir__catalog_group *g)
{
    shrink(h->groups, &h->group_count, sizeof *g, (size_t)(g - h->groups));
}

void weir__catalog_remove_rule(struct weir__rule *rules, uint32_t *count, struct weir__rule *rule)
{
    shrink(rules, count, sizeof *rule, (size_t)(rule - rules));
}
