/* serve_key.c - who may come in when nobody said.
 *
 * The key of Microsoft's emulator is known to everybody and is what everybody's tests use. So a new
 * folder accepts it, as long as only this machine can reach the server. Any folder that accepts it,
 * old or new, by whichever of a rule's two keys, is not served to other machines unless somebody
 * insists. */
#include "cli/connection.h"
#include "cli/serve.h"

struct rules {
    struct weir__serve *serve;
    uint32_t count;
    bool known; /* one of them has the well-known key */
};

static void look_at(struct rules *r, const struct weir__rule *rules, uint32_t count,
                    const char *hub)
{
    for (uint32_t i = 0; i < count; i++) {
        if (r->count++ == 0) {
            r->serve->rule = rules[i];
            memcpy(r->serve->rule_hub, hub, strlen(hub) + 1);
        }
        for (int k = 0; k < WEIR__KEYS; k++)
            if (strcmp(rules[i].key[k], WEIR__SERVE_DEVELOPMENT_KEY) == 0) r->known = true;
    }
}

static int look_at_hub(const struct weir__catalog_hub *hub, void *user)
{
    look_at(user, hub->rules, hub->rule_count, hub->name);
    return 0;
}

/* The namespace's rules come first: the first of all is the one to tell. */
static int look_at_all(struct weir__serve *s, struct rules *out, struct weir_error *err)
{
    struct weir__rule rules[WEIR__ACCESS_RULES_MAX];
    uint32_t count;
    int rc = weir__namespace_rules(s->ns, NULL, rules, WEIR__ACCESS_RULES_MAX, &count, err);

    *out = (struct rules){.serve = s};
    if (rc != 0) return rc;
    look_at(out, rules, count, "");
    return weir__namespace_hub_each(s->ns, look_at_hub, out);
}

static int add_first(struct weir__serve *s, bool known, struct weir_error *err)
{
    struct weir__rule rule = {.name = WEIR__SERVE_RULE, .rights = WEIR__RIGHTS_ALL};

    if (known)
        memcpy(rule.key[WEIR__KEY_PRIMARY], WEIR__SERVE_DEVELOPMENT_KEY,
               sizeof WEIR__SERVE_DEVELOPMENT_KEY);
    return weir__namespace_rule_add(s->ns, NULL, &rule, err);
}

static int check_known(struct weir__serve *s, const char *open, struct weir_error *err)
{
    if (!open) return 0;
    if (!s->o.allow_development_key)
        return weir__fail(err, WEIR_EDENIED,
                          "the folder accepts the well-known key " WEIR__SERVE_DEVELOPMENT_KEY
                          ", which is for this machine only: listen on 127.0.0.1, make it go with "
                          "'weir key rotate' (twice) or 'weir key remove', or give "
                          "--allow-development-key");
    weir__warn(&s->warnings,
               "WHOEVER CAN REACH %s CAN READ AND WRITE EVERY HUB, with the well-known "
               "key " WEIR__SERVE_DEVELOPMENT_KEY ": that is what --allow-development-key means",
               open);
    return 0;
}

int weir__serve_choose_key(struct weir__serve *s, struct weir_error *err)
{
    const char *const addresses[] = {s->o.amqp, s->o.amqps, s->o.http, s->o.https};
    const char *open = NULL; /* the first that others can reach */
    struct rules rules;
    int rc = look_at_all(s, &rules, err);

    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        if (!open && addresses[i] && !weir__connection_is_local(addresses[i])) open = addresses[i];
    if (rc == 0 && rules.count == 0) {
        rc = add_first(s, !open || s->o.allow_development_key, err);
        if (rc == 0) rc = look_at_all(s, &rules, err);
    }
    if (rc == 0 && rules.known) rc = check_known(s, open, err);
    return rc;
}
