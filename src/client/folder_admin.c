/* folder_admin.c - hubs, groups and rules of a folder. */
#include "client/folder.h"

#include <stdlib.h>
#include <string.h>

#define PARTITIONS_DEFAULT 4

static struct weir__namespace *namespace_of(struct weir__backend *b)
{
    return ((struct weir__folder *)b)->namespace;
}

static int hub_create(struct weir__backend *b, const char *hub, const struct weir_hub_options *o,
                      struct weir_error *err)
{
    struct weir__hub_config config = {
        .name = hub,
        .partitions = o->partitions ? o->partitions : PARTITIONS_DEFAULT,
        .retain_ms = o->retain_ms,
        .retain_bytes = o->retain_bytes,
        .groups = o->groups,
        .group_count = o->group_count,
    };

    return weir__namespace_hub_create(namespace_of(b), &config, err);
}

static int hub_update(struct weir__backend *b, const char *hub, const struct weir_hub_changes *c,
                      struct weir_error *err)
{
    const struct weir__hub_changes changes = {
        .given = (c->partitions ? WEIR__HUB_PARTITIONS : 0u) |
                 (c->retain_ms ? WEIR__HUB_RETAIN_MS : 0u) |
                 (c->retain_bytes ? WEIR__HUB_RETAIN_BYTES : 0u),
        .partitions = c->partitions,
        .retain_ms = c->retain_ms,
        .retain_bytes = c->retain_bytes == WEIR_RETAIN_ALL ? 0 : c->retain_bytes,
    };

    return weir__namespace_hub_update(namespace_of(b), hub, &changes, err);
}

static int hub_adopt(struct weir__backend *b, uint64_t id, const char *hub, struct weir_error *err)
{
    return weir__namespace_adopt(namespace_of(b), id, hub, err);
}

/* Copied, as hubs are below. */
struct orphan_copy {
    struct weir_orphan *at;
    size_t count;
};

static int copy_orphan(const struct weir__orphan *orphan, void *user)
{
    struct orphan_copy *copy = user;
    struct weir_orphan *at = realloc(copy->at, (copy->count + 1) * sizeof *at);

    if (!at) return WEIR_ENOMEM;
    copy->at = at;
    at[copy->count++] = (struct weir_orphan){orphan->id, orphan->partitions};
    return 0;
}

static int orphan_list(struct weir__backend *b, int (*fn)(const struct weir_orphan *, void *),
                       void *user, struct weir_error *err)
{
    struct orphan_copy copy = {0};
    int rc = weir__namespace_orphan_each(namespace_of(b), copy_orphan, &copy);

    if (rc != 0) weir__fail(err, rc, "listing orphans: no memory");
    for (size_t i = 0; rc == 0 && i < copy.count; i++) rc = fn(&copy.at[i], user);
    free(copy.at);
    return rc;
}

static int hub_delete(struct weir__backend *b, const char *hub, struct weir_error *err)
{
    return weir__namespace_hub_delete(namespace_of(b), hub, err);
}

/* Copied under the namespace's lock, so that the caller's fn runs without it. */
struct hub_copy {
    struct weir_hub_info *at;
    uint32_t count;
};

static int copy_hub(const struct weir__catalog_hub *hub, void *user)
{
    struct hub_copy *copy = user;

    if (!copy->at) copy->at = calloc(WEIR__CATALOG_HUBS_MAX, sizeof *copy->at);
    if (!copy->at) return WEIR_ENOMEM;
    weir__folder_hub_info(hub, &copy->at[copy->count++]);
    return 0;
}

static int hub_list(struct weir__backend *b, int (*fn)(const struct weir_hub_info *, void *),
                    void *user, struct weir_error *err)
{
    struct hub_copy copy = {0};
    int rc = weir__namespace_hub_each(namespace_of(b), copy_hub, &copy);

    if (rc != 0) weir__fail(err, rc, "listing the hubs: no memory");
    for (uint32_t i = 0; rc == 0 && i < copy.count; i++) rc = fn(&copy.at[i], user);
    free(copy.at);
    return rc;
}

static int group_create(struct weir__backend *b, const char *hub, const char *group,
                        struct weir_error *err)
{
    return weir__namespace_group_add(namespace_of(b), hub, group, err);
}

static int group_delete(struct weir__backend *b, const char *hub, const char *group,
                        struct weir_error *err)
{
    return weir__namespace_group_remove(namespace_of(b), hub, group, err);
}

_Static_assert((int)WEIR_SEND == WEIR__RIGHT_SEND && (int)WEIR_LISTEN == WEIR__RIGHT_LISTEN &&
                   (int)WEIR_MANAGE == WEIR__RIGHT_MANAGE,
               "rights are the same bits on both sides");
_Static_assert((int)WEIR_PRIMARY_KEY == WEIR__KEY_PRIMARY && WEIR__KEYS == 2, "so are keys");
_Static_assert(WEIR_NAME_BYTES == WEIR__RULE_NAME_MAX + 1 &&
                   WEIR_KEY_BYTES == WEIR__ACCESS_KEY_MAX + 1,
               "and names and keys are as long");

static int find_rule(struct weir__backend *b, const char *hub, const char *name,
                     struct weir__rule *out, struct weir_error *err)
{
    struct weir__rule rules[WEIR__ACCESS_RULES_MAX];
    uint32_t count;
    int rc =
        weir__namespace_rules(namespace_of(b), hub, rules, WEIR__ACCESS_RULES_MAX, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        if (!weir__name_equal(rules[i].name, name)) continue;
        *out = rules[i];
        return 0;
    }
    return rc != 0 ? rc : weir__fail(err, WEIR_ENOTFOUND, "there is no access rule '%.64s'", name);
}

static struct weir_rule public_rule(const struct weir__rule *rule)
{
    struct weir_rule out = {.rights = rule->rights};

    memcpy(out.name, rule->name, sizeof out.name);
    memcpy(out.key, rule->key, sizeof out.key);
    return out;
}

static int rule_create(struct weir__backend *b, const char *hub, struct weir_rule *r,
                       struct weir_error *err)
{
    struct weir__rule rule = {.rights = r->rights};
    int rc;

    memcpy(rule.name, r->name, sizeof rule.name);
    memcpy(rule.key, r->key, sizeof rule.key);
    rc = weir__namespace_rule_add(namespace_of(b), hub, &rule, err);
    if (rc == 0) rc = find_rule(b, hub, r->name, &rule, err);
    if (rc == 0) *r = public_rule(&rule);
    return rc;
}

static int rule_delete(struct weir__backend *b, const char *hub, const char *rule,
                       struct weir_error *err)
{
    return weir__namespace_rule_remove(namespace_of(b), hub, rule, err);
}

static int rule_rotate(struct weir__backend *b, const char *hub, const char *rule,
                       enum weir_key which, const char *text, struct weir_error *err)
{
    enum weir__access_which key =
        which == WEIR_PRIMARY_KEY ? WEIR__KEY_PRIMARY : WEIR__KEY_SECONDARY;

    return weir__namespace_rule_rotate(namespace_of(b), hub, rule, key, text, err);
}

/* A crash in between leaves the first key twice, which locks nobody out who was in. */
static int rule_renew(struct weir__backend *b, const char *hub, const char *name,
                      struct weir_rule *out, struct weir_error *err)
{
    struct weir__namespace *ns = namespace_of(b);
    struct weir__rule rule;
    int rc = find_rule(b, hub, name, &rule, err);

    if (rc == 0)
        rc = weir__namespace_rule_rotate(ns, hub, name, WEIR__KEY_SECONDARY,
                                         rule.key[WEIR__KEY_PRIMARY], err);
    if (rc == 0) rc = weir__namespace_rule_rotate(ns, hub, name, WEIR__KEY_PRIMARY, NULL, err);
    if (rc == 0) rc = find_rule(b, hub, name, &rule, err);
    if (rc == 0) *out = public_rule(&rule);
    return rc;
}

static int rule_list(struct weir__backend *b, const char *hub,
                     int (*fn)(const struct weir_rule *, void *), void *user,
                     struct weir_error *err)
{
    struct weir__rule rules[WEIR__ACCESS_RULES_MAX];
    uint32_t count;
    int rc =
        weir__namespace_rules(namespace_of(b), hub, rules, WEIR__ACCESS_RULES_MAX, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct weir_rule r = public_rule(&rules[i]);
        rc = fn(&r, user);
    }
    return rc;
}

const struct weir__admin_ops weir__folder_admin = {
    .version = WEIR__BACKEND_VERSION,
    .hub_create = hub_create,
    .hub_update = hub_update,
    .hub_delete = hub_delete,
    .hub_adopt = hub_adopt,
    .orphan_list = orphan_list,
    .hub_list = hub_list,
    .group_create = group_create,
    .group_delete = group_delete,
    .rule_create = rule_create,
    .rule_delete = rule_delete,
    .rule_rotate = rule_rotate,
    .rule_renew = rule_renew,
    .rule_list = rule_list,
};
