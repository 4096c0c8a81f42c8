/* hub.c - the calls of weir/hub.h: refuse what cannot be right, then ask the backend. */
#include "client/weir.h"
#include "hub/route.h"

/* Every call here may wait for the disk, which a completion must not. */
static int enter(const char *call, const char *hub, struct weir_error *err)
{
    if (!hub) return weir__fail(err, WEIR_EINVAL, "%s: no hub was named", call);
    return weir__completing_refuse(call, err);
}

/* The same for a call about a part of a hub, or of the place: a group, a rule. */
static int enter_part(const char *call, const void *part, struct weir_error *err)
{
    if (!part) return weir__fail(err, WEIR_EINVAL, "%s: none was named", call);
    return weir__completing_refuse(call, err);
}

int weir_hub_create(struct weir *w, const char *hub, const struct weir_hub_options *options,
                    struct weir_error *err)
{
    struct weir_hub_options o;
    int rc = enter("creating a hub", hub, err);

    if (rc == 0) rc = weir__options_copy(&o, sizeof o, options, err);
    if (rc != 0) return rc;
    return w->backend->admin->hub_create(w->backend, hub, &o, err);
}

int weir_hub_update(struct weir *w, const char *hub, const struct weir_hub_changes *changes,
                    struct weir_error *err)
{
    struct weir_hub_changes c;
    int rc = enter("changing a hub", hub, err);

    if (rc == 0) rc = weir__options_copy(&c, sizeof c, changes, err);
    if (rc != 0) return rc;
    return w->backend->admin->hub_update(w->backend, hub, &c, err);
}

int weir_hub_adopt(struct weir *w, uint64_t id, const char *hub, struct weir_error *err)
{
    int rc = enter("adopting a hub", hub, err);

    if (rc != 0) return rc;
    return w->backend->admin->hub_adopt(w->backend, id, hub, err);
}

int weir_orphan_list(struct weir *w, int (*fn)(const struct weir_orphan *, void *user), void *user,
                     struct weir_error *err)
{
    int rc = weir__completing_refuse("listing orphans", err);

    if (rc != 0) return rc;
    return w->backend->admin->orphan_list(w->backend, fn, user, err);
}

int weir_hub_delete(struct weir *w, const char *hub, struct weir_error *err)
{
    int rc = enter("deleting a hub", hub, err);

    if (rc != 0) return rc;
    return w->backend->admin->hub_delete(w->backend, hub, err);
}

int weir_hub_info(struct weir *w, const char *hub, struct weir_hub_info *out,
                  struct weir_error *err)
{
    int rc = enter("asking about a hub", hub, err);

    if (rc != 0) return rc;
    return w->backend->ops->hub_info(w->backend, hub, out, err);
}

int weir_hub_list(struct weir *w, int (*fn)(const struct weir_hub_info *, void *user), void *user,
                  struct weir_error *err)
{
    int rc = weir__completing_refuse("listing hubs", err);

    if (rc != 0) return rc;
    return w->backend->admin->hub_list(w->backend, fn, user, err);
}

int weir_hub_stats(struct weir *w, const char *hub, struct weir_hub_stats *out,
                   struct weir_error *err)
{
    int rc = enter("asking about a hub", hub, err);

    if (rc != 0) return rc;
    return w->backend->ops->hub_stats(w->backend, hub, out, err);
}

int weir_partition_info(struct weir *w, const char *hub, uint32_t partition,
                        struct weir_partition_info *out, struct weir_error *err)
{
    int rc = enter("asking about a partition", hub, err);

    if (rc != 0) return rc;
    return w->backend->ops->partition_info(w->backend, hub, partition, out, err);
}

uint32_t weir_partition_of_key(struct weir_bytes key, uint32_t partitions)
{
    return partitions == 0 ? 0 : weir__route_key(weir__bytes_of(key.at, key.len), partitions);
}

int weir_group_create(struct weir *w, const char *hub, const char *group, struct weir_error *err)
{
    int rc = enter("creating a group", hub, err);

    if (rc == 0) rc = enter_part("creating a group", group, err);
    if (rc != 0) return rc;
    return w->backend->admin->group_create(w->backend, hub, group, err);
}

int weir_group_delete(struct weir *w, const char *hub, const char *group, struct weir_error *err)
{
    int rc = enter("deleting a group", hub, err);

    if (rc == 0) rc = enter_part("deleting a group", group, err);
    if (rc != 0) return rc;
    return w->backend->admin->group_delete(w->backend, hub, group, err);
}

int weir_group_list(struct weir *w, const char *hub, int (*fn)(const char *group, void *user),
                    void *user, struct weir_error *err)
{
    int rc = enter("listing groups", hub, err);

    if (rc != 0) return rc;
    return w->backend->ops->group_list(w->backend, hub, fn, user, err);
}

static bool is_text(const char *at, size_t room)
{
    return memchr(at, 0, room) != NULL;
}

int weir_rule_create(struct weir *w, const char *hub, struct weir_rule *rule,
                     struct weir_error *err)
{
    int rc = enter_part("creating a rule", rule, err);

    if (rc == 0 &&
        (!is_text(rule->name, sizeof rule->name) || !is_text(rule->key[0], WEIR_KEY_BYTES) ||
         !is_text(rule->key[1], WEIR_KEY_BYTES)))
        rc = weir__fail(err, WEIR_EINVAL, "a rule's name or key has no end");
    if (rc != 0) return rc;
    return w->backend->admin->rule_create(w->backend, hub, rule, err);
}

int weir_rule_delete(struct weir *w, const char *hub, const char *rule, struct weir_error *err)
{
    int rc = enter_part("deleting a rule", rule, err);

    if (rc != 0) return rc;
    return w->backend->admin->rule_delete(w->backend, hub, rule, err);
}

int weir_rule_rotate(struct weir *w, const char *hub, const char *rule, enum weir_key which,
                     const char *text, struct weir_error *err)
{
    int rc = enter_part("changing a key", rule, err);

    if (rc != 0) return rc;
    return w->backend->admin->rule_rotate(w->backend, hub, rule, which, text, err);
}

int weir_rule_renew(struct weir *w, const char *hub, const char *rule, struct weir_rule *out,
                    struct weir_error *err)
{
    int rc = enter_part("renewing a key", rule, err);

    if (rc != 0) return rc;
    return w->backend->admin->rule_renew(w->backend, hub, rule, out, err);
}

int weir_rule_list(struct weir *w, const char *hub, int (*fn)(const struct weir_rule *, void *user),
                   void *user, struct weir_error *err)
{
    int rc = weir__completing_refuse("listing rules", err);

    if (rc != 0) return rc;
    return w->backend->admin->rule_list(w->backend, hub, fn, user, err);
}
