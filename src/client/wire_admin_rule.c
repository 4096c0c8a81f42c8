/* wire_admin_rule.c - requests about rules. A server tells the keys of a rule when it makes them,
 * and never again. */
#include <stdio.h>

#include "client/wire_admin.h"
#include "hub/right.h"

static struct weir__wire *wire_of(struct weir__backend *b)
{
    return (struct weir__wire *)b;
}

static struct weir__admin_path rule_path(const char *hub, const char *rule)
{
    return (struct weir__admin_path){.hub = hub, .what = "keys", .name = rule};
}

/* ---- reading ---- */

static int take_right(void *out, const char *text, struct weir_error *err)
{
    struct weir_rule *rule = out;

    (void)err; /* rights that are not known here give nothing here */
    for (const struct weir__right_name *right = weir__right_names; right->name; right++)
        if (strcmp(text, right->name) == 0) rule->rights |= right->right;
    return 0;
}

static const struct weir__json_field rule_fields[] = {
    {"name", WEIR__JSON_FIELD_TEXT, offsetof(struct weir_rule, name), WEIR_NAME_BYTES, NULL},
    {"rights", WEIR__JSON_FIELD_TEXTS, 0, 0, take_right},
    {"primary_key", WEIR__JSON_FIELD_TEXT, offsetof(struct weir_rule, key[WEIR_PRIMARY_KEY]),
     WEIR_KEY_BYTES, NULL},
    {"secondary_key", WEIR__JSON_FIELD_TEXT, offsetof(struct weir_rule, key[WEIR_SECONDARY_KEY]),
     WEIR_KEY_BYTES, NULL},
    {0},
};

/* A rule with both of its keys. */
static int read_rule(const struct weir__admin_reply *reply, struct weir_rule *out,
                     struct weir_error *err)
{
    int rc;

    memset(out, 0, sizeof *out);
    rc = weir__admin_read(reply, rule_fields, out, err);
    if (rc == 0 && (!*out->name || !*out->key[WEIR_PRIMARY_KEY] || !*out->key[WEIR_SECONDARY_KEY]))
        rc = weir__admin_strange(reply, err);
    return rc;
}

struct rule_list {
    int (*fn)(const struct weir_rule *, void *);
    void *user;
};

static int show_rule(const void *out, void *user)
{
    const struct rule_list *to = user;

    return to->fn(out, to->user);
}

int weir__admin_rule_list(struct weir__backend *b, const char *hub,
                          int (*fn)(const struct weir_rule *, void *), void *user,
                          struct weir_error *err)
{
    struct weir__admin_path path = rule_path(hub, NULL);
    struct rule_list to = {fn, user};
    struct weir_rule rule;
    const struct weir__admin_list list = {.name = "keys",
                                          .fields = rule_fields,
                                          .out = &rule,
                                          .size = sizeof rule,
                                          .show = show_rule,
                                          .user = &to};

    return weir__admin_list(wire_of(b), &path, &list, err);
}

/* ---- making and changing ---- */

static void put_key(struct weir__admin_body *body, const char *name, const char *key)
{
    if (!*key) return;
    weir__admin_put(body, ",\"%s\":", name);
    weir__admin_quote(body, key);
}

int weir__admin_rule_create(struct weir__backend *b, const char *hub, struct weir_rule *rule,
                            struct weir_error *err)
{
    struct weir__http_call call = {.method = "PUT", .only_new = true};
    struct weir__admin_path path = rule_path(hub, rule->name);
    struct weir__admin_reply reply;
    struct weir__admin_body body;
    struct weir_rule made;
    const char *comma = "";
    int rc;

    weir__admin_body_init(&body);
    weir__admin_put(&body, "{\"rights\":[");
    for (const struct weir__right_name *right = weir__right_names; right->name; right++) {
        if (!(rule->rights & right->right)) continue;
        weir__admin_put(&body, "%s\"%s\"", comma, right->name);
        comma = ",";
    }
    weir__admin_put(&body, "]");
    put_key(&body, "primary_key", rule->key[WEIR_PRIMARY_KEY]);
    put_key(&body, "secondary_key", rule->key[WEIR_SECONDARY_KEY]);
    weir__admin_put(&body, "}");
    rc = weir__admin_send(wire_of(b), &call, &body, &path, &reply, err);
    if (rc == 0) rc = read_rule(&reply, &made, err);
    if (rc == 0) *rule = made;
    weir__admin_reply_fini(&reply);
    return rc;
}

int weir__admin_rule_delete(struct weir__backend *b, const char *hub, const char *rule,
                            struct weir_error *err)
{
    struct weir__http_call call = {.method = "DELETE"};
    struct weir__admin_path path = rule_path(hub, rule);

    return weir__admin_order(wire_of(b), &call, &path, err);
}

int weir__admin_rule_rotate(struct weir__backend *b, const char *hub, const char *rule,
                            enum weir_key which, const char *text, struct weir_error *err)
{
    bool first = which == WEIR_PRIMARY_KEY;
    struct weir__http_call call = {.method = "POST"};
    struct weir__admin_path path = rule_path(hub, rule);
    struct weir__admin_reply reply;
    struct weir__admin_body body;
    int rc;

    path.query = first ? "?rotate=primary" : "?rotate=secondary";
    if (!text) return weir__admin_order(wire_of(b), &call, &path, err);
    weir__admin_body_init(&body);
    weir__admin_put(&body, "{\"%s\":", first ? "primary_key" : "secondary_key");
    weir__admin_quote(&body, text);
    weir__admin_put(&body, "}");
    rc = weir__admin_send(wire_of(b), &call, &body, &path, &reply, err);
    weir__admin_reply_fini(&reply);
    return rc;
}

int weir__admin_rule_renew(struct weir__backend *b, const char *hub, const char *rule,
                           struct weir_rule *out, struct weir_error *err)
{
    struct weir__http_call call = {.method = "POST"};
    struct weir__admin_path path = rule_path(hub, rule);
    struct weir__admin_reply reply;
    int rc;

    path.query = "?rotate=next";
    rc = weir__admin_ask(wire_of(b), &call, &path, &reply, err);
    if (rc == 0) rc = read_rule(&reply, out, err);
    weir__admin_reply_fini(&reply);
    return rc;
}
