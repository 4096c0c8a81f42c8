/* rule.c - the access rules of a namespace and of its hubs. */
#include <stdlib.h>

#include "hub/state.h"

/* The row of rules that a change works on. */
struct rule_list {
    struct weir__rule **rules;
    uint32_t *count;
};

static int find_list(struct weir__catalog *c, const char *hub, struct rule_list *out,
                     struct weir_error *err)
{
    struct weir__catalog_hub *row;

    *out = (struct rule_list){&c->rules, &c->rule_count};
    if (!hub) return 0;
    row = weir__catalog_hub(c, hub);
    if (!row) return weir__hub_missing(hub, err);
    *out = (struct rule_list){&row->rules, &row->rule_count};
    return 0;
}

static int find_rule(struct weir__catalog *c, const char *hub, const char *name,
                     struct rule_list *list, struct weir__rule **out, struct weir_error *err)
{
    int rc = find_list(c, hub, list, err);

    if (rc != 0) return rc;
    *out = weir__catalog_rule(*list->rules, *list->count, name);
    if (*out) return 0;
    weir__fail(err, WEIR_ENOTFOUND, "there is no access rule '%.256s'", name);
    return WEIR_ENOTFOUND;
}

/* A copy of what was asked for, checked, with the keys that were left to us. */
static int complete_rule(struct weir__namespace *ns, const struct weir__rule *given,
                         struct weir__rule *out, struct weir_error *err)
{
    int rc = weir__name_check(WEIR__NAME_RULE, given->name, err);

    if (rc != 0) return rc;
    if (given->rights == 0 || given->rights > WEIR__RIGHTS_ALL)
        return weir__fail(err, WEIR_EINVAL, "a rule needs one of Send, Listen and Manage");
    *out = *given;
    out->rights = weir__access_rights(given->rights);
    for (int i = 0; rc == 0 && i < WEIR__KEYS; i++)
        rc = out->key[i][0] ? weir__access_key_check(out->key[i], err)
                            : weir__access_key_make(&ns->options.rand, out->key[i], err);
    return rc;
}

int weir__namespace_rule_add(struct weir__namespace *ns, const char *hub,
                             const struct weir__rule *given, struct weir_error *err)
{
    struct weir__catalog next;
    struct rule_list list;
    struct weir__rule rule;
    int rc = complete_rule(ns, given, &rule, err);

    if (rc == 0) rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    rc = find_list(&next, hub, &list, err);
    if (rc == 0 && weir__catalog_rule(*list.rules, *list.count, rule.name))
        rc = weir__fail(err, WEIR_EEXIST, "access rule '%s' exists already", rule.name);
    if (rc == 0) rc = weir__catalog_add_rule(list.rules, list.count, &rule, err);
    if (rc == 0) rc = weir__change_save(ns, &next, err);
    weir__change_end(ns, &next);
    return rc;
}

int weir__namespace_rule_remove(struct weir__namespace *ns, const char *hub, const char *name,
                                struct weir_error *err)
{
    struct weir__catalog next;
    struct weir__rule *rule;
    struct rule_list list;
    int rc = weir__change_begin(ns, &next, err);

    if (rc != 0) return rc;
    rc = find_rule(&next, hub, name, &list, &rule, err);
    if (rc == 0) {
        weir__catalog_remove_rule(*list.rules, list.count, rule);
        rc = weir__change_save(ns, &next, err);
    }
    weir__change_end(ns, &next);
    return rc;
}

int weir__namespace_rule_rotate(struct weir__namespace *ns, const char *hub, const char *name,
                                enum weir__access_which which, const char *key,
                                struct weir_error *err)
{
    char fresh[WEIR__ACCESS_KEY_MAX + 1] = "";
    struct weir__catalog next;
    struct weir__rule *rule;
    struct rule_list list;
    int rc = key ? weir__access_key_check(key, err)
                 : weir__access_key_make(&ns->options.rand, fresh, err);

    if (rc == 0) rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    rc = find_rule(&next, hub, name, &list, &rule, err);
    if (rc == 0) {
        memset(rule->key[which], 0, sizeof rule->key[which]);
        memcpy(rule->key[which], key ? key : fresh, strlen(key ? key : fresh));
        rc = weir__change_save(ns, &next, err);
    }
    weir__change_end(ns, &next);
    return rc;
}

int weir__namespace_rules(struct weir__namespace *ns, const char *hub, struct weir__rule *out,
                          uint32_t room, uint32_t *out_count, struct weir_error *err)
{
    struct rule_list list;
    int rc;

    weir__mutex_lock(&ns->lock);
    rc = find_list(&ns->catalog, hub, &list, err);
    *out_count = rc == 0 ? *list.count : 0;
    for (uint32_t i = 0; i < *out_count && i < room; i++) out[i] = (*list.rules)[i];
    weir__mutex_unlock(&ns->lock);
    return rc;
}

unsigned weir__namespace_rights(struct weir__namespace *ns, const struct weir__access_basis *basis,
                                const struct weir__access_path *path)
{
    struct weir__access_rules rows[3] = {{0}}; /* the namespace's, the hub's, the owner's */
    char hub[WEIR__HUB_NAME_MAX + 1];
    struct rule_list list;
    unsigned rights;

    weir__access_path_hub(path, hub);
    weir__mutex_lock(&ns->lock);
    rows[0] = (struct weir__access_rules){ns->catalog.rules, ns->catalog.rule_count};
    if (basis->of_hub && hub[0] && find_list(&ns->catalog, hub, &list, NULL) == 0)
        rows[1] = (struct weir__access_rules){*list.rules, *list.count};
    rows[2] = (struct weir__access_rules){&ns->owner, ns->owner.name[0] != '\0'};
    rights = weir__access_basis_rights(basis, rows, 3);
    weir__mutex_unlock(&ns->lock);
    return rights;
}

static bool is_same_row(const struct weir__rule *a, uint32_t a_count, const struct weir__rule *b,
                        uint32_t b_count)
{
    if (a_count != b_count) return false;
    for (uint32_t i = 0; i < a_count; i++) {
        if (strcmp(a[i].name, b[i].name) != 0 || a[i].rights != b[i].rights) return false;
        for (int k = 0; k < WEIR__KEYS; k++)
            if (strcmp(a[i].key[k], b[i].key[k]) != 0) return false;
    }
    return true;
}

bool weir__rules_lost(const struct weir__catalog *before, const struct weir__catalog *after)
{
    if (!is_same_row(before->rules, before->rule_count, after->rules, after->rule_count))
        return true;
    for (uint32_t i = 0; i < before->hub_count; i++) {
        const struct weir__catalog_hub *a = &before->hubs[i], *b;
        if (a->rule_count == 0) continue;
        b = weir__catalog_hub(after, a->name);
        if (!b || b->id != a->id || !is_same_row(a->rules, a->rule_count, b->rules, b->rule_count))
            return true;
    }
    return false;
}

void weir__namespace_watch_rules(struct weir__namespace *ns, void (*changed)(void *), void *user)
{
    weir__mutex_lock(&ns->change);
    ns->rules_changed = changed;
    ns->rules_user = user;
    weir__mutex_unlock(&ns->change);
}

int weir__namespace_verify(struct weir__namespace *ns, struct weir__bytes token,
                           struct weir__bytes resource, int64_t now_s,
                           struct weir__access_grant *out, struct weir_error *err)
{
    struct weir__access_rules rows[3] = {{0}}; /* the namespace's, the hub's, the owner's */
    char hub[WEIR__HUB_NAME_MAX + 1];
    struct weir__access_token parsed;
    struct weir__access_path wanted;
    struct rule_list list;
    int rc = weir__access_token_parse(&parsed, token, err);

    if (rc == 0) rc = weir__access_path_parse(&wanted, resource, false, err);
    if (rc != 0) return rc;
    weir__access_path_hub(&parsed.path, hub);
    weir__mutex_lock(&ns->lock); /* the work of signing is a few microseconds */
    rows[0] = (struct weir__access_rules){ns->catalog.rules, ns->catalog.rule_count};
    if (hub[0] && find_list(&ns->catalog, hub, &list, NULL) == 0)
        rows[1] = (struct weir__access_rules){*list.rules, *list.count};
    rows[2] = (struct weir__access_rules){&ns->owner, ns->owner.name[0] != '\0'};
    rc = weir__access_token_check(&parsed, rows, 3, &wanted, now_s, out, err);
    weir__mutex_unlock(&ns->lock);
    return rc;
}
