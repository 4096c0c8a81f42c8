/* keys.c - access rules and their keys by HTTP, of the namespace or of one hub. On the worker.
 *
 *   GET                  /$weir/[hubs/NAME/]keys         {"keys":[RULE,...]}
 *   GET PUT DELETE POST  /$weir/[hubs/NAME/]keys/RULE    RULE
 *
 *   RULE = {"name":"till","rights":["send"]}, and where a key was made just now, this once, also
 *          "primary_key", "secondary_key" and "connection_string"
 *
 * PUT makes a rule (201) or agrees with one that has the same rights and, if they are given, the
 * same keys (200); others are 409. With "If-None-Match: *" it only makes one: 412. POST
 * ?rotate=primary or ?rotate=secondary makes a new key, or takes the one of that name from the
 * body; the old one is void at once. POST
 * ?rotate=next makes the first key the second, so that whoever uses it goes on, and a new first
 * one. The last rule of the namespace with Manage cannot be deleted: nobody could make another
 * one. */
#include <stdio.h>
#include <stdlib.h>

#include "http/target.h"
#include "hub/right.h"
#include "server/order.h"
#include "server/web.h"

#define AMQP_PORT ":5672" /* what clients assume */
#define HOST_MAX 255
#define STRING_WORDS                                                                               \
    "Endpoint=sb://:65535;SharedAccessKeyName=;SharedAccessKey=;EntityPath=;"                      \
    "UseDevelopmentEmulator=true;"
#define RIGHTS_BYTES 32

/* Whose rule it is, and which. */
static const char *rule_name(const struct weir__visit *v)
{
    return weir__visit_hub(v) ? v->star[1] : v->star[0];
}

static bool fail(struct weir__visit *v, const struct weir_error *err)
{
    weir__answer_failure(v, err);
    return true;
}

/* ---- writing ---- */

static void write_rights(struct weir__answer *a, unsigned rights)
{
    const char *between = "";

    weir__answer_add(a, ",\"rights\":[");
    for (const struct weir__right_name *r = weir__right_names; r->name; r++) {
        if (!(rights & r->right)) continue;
        weir__answer_add(a, "%s\"%s\"", between, r->name);
        between = ",";
    }
    weir__answer_add(a, "]");
}

/* Whoever reached us by HTTP reaches AMQP at the same host. */
static void write_connection_string(struct weir__visit *v, const struct weir__rule *rule)
{
    char text[HOST_MAX + sizeof rule->name + sizeof rule->key[0] + WEIR__HUB_NAME_MAX +
              sizeof STRING_WORDS];
    const char *amqp = weir__server_amqp(v->server), *hub = weir__visit_hub(v);
    const char *port = amqp ? strrchr(amqp, ':') : AMQP_PORT;
    struct weir__bytes host = v->request->host;

    for (size_t i = 0; i < host.len; i++)
        if (host.at[i] == ':' && (host.at[0] != '[' || host.at[i - 1] == ']')) host.len = i;
    if (host.len == 0 || host.len > HOST_MAX) host = weir__bytes_of("localhost", 9);
    snprintf(text, sizeof text,
             "Endpoint=sb://%.*s%s;SharedAccessKeyName=%s;SharedAccessKey=%s;%s%s%s"
             "UseDevelopmentEmulator=true;",
             (int)host.len, (const char *)host.at, strcmp(port, AMQP_PORT) == 0 ? "" : port,
             rule->name, rule->key[WEIR__KEY_PRIMARY], hub ? "EntityPath=" : "", hub ? hub : "",
             hub ? ";" : "");
    weir__answer_add(&v->answer, ",\"connection_string\":");
    weir__answer_quote(&v->answer, text);
}

static void write_rule(struct weir__visit *v, const struct weir__rule *rule, bool secrets)
{
    struct weir__answer *a = &v->answer;

    weir__answer_add(a, "{\"name\":");
    weir__answer_quote(a, rule->name);
    write_rights(a, rule->rights);
    if (secrets) {
        weir__answer_add(a, ",\"primary_key\":");
        weir__answer_quote(a, rule->key[WEIR__KEY_PRIMARY]);
        weir__answer_add(a, ",\"secondary_key\":");
        weir__answer_quote(a, rule->key[WEIR__KEY_SECONDARY]);
        write_connection_string(v, rule);
    }
    weir__answer_add(a, "}");
}

/* ---- looking ---- */

struct rules {
    struct weir__rule at[WEIR__ACCESS_RULES_MAX];
    uint32_t count;
};

static int load_rules(struct weir__visit *v, struct rules *out, struct weir_error *err)
{
    int rc = weir__namespace_rules(v->server->ns, weir__visit_hub(v), out->at,
                                   WEIR__ACCESS_RULES_MAX, &out->count, err);

    if (out->count > WEIR__ACCESS_RULES_MAX) out->count = WEIR__ACCESS_RULES_MAX;
    return rc;
}

/* WEIR_ENOTFOUND. */
static int load_rule(struct weir__visit *v, struct weir__rule *out, struct weir_error *err)
{
    struct rules rules;
    int rc = load_rules(v, &rules, err);

    for (uint32_t i = 0; rc == 0 && i < rules.count; i++) {
        if (!weir__name_equal(rules.at[i].name, rule_name(v))) continue;
        *out = rules.at[i];
        return 0;
    }
    if (rc != 0) return rc;
    return weir__fail(err, WEIR_ENOTFOUND, "The access rule '%.256s' could not be found.",
                      rule_name(v));
}

static bool show(struct weir__visit *v, unsigned status, bool secrets)
{
    struct weir__rule rule;
    struct weir_error err;

    if (load_rule(v, &rule, &err) != 0) return fail(v, &err);
    write_rule(v, &rule, secrets);
    weir__answer_json(v, status);
    return true;
}

bool weir__keys_list(struct weir__visit *v)
{
    struct weir_error err;
    struct rules rules;

    if (load_rules(v, &rules, &err) != 0) return fail(v, &err);
    weir__answer_add(&v->answer, "{\"keys\":[");
    for (uint32_t i = 0; i < rules.count; i++) {
        weir__answer_add(&v->answer, "%s", i ? "," : "");
        write_rule(v, &rules.at[i], false);
    }
    weir__answer_add(&v->answer, "]}");
    weir__answer_json(v, 200);
    return true;
}

bool weir__keys_show(struct weir__visit *v)
{
    return show(v, 200, false);
}

/* ---- changing ---- */

/* "send, listen" */
static const char *say_rights(unsigned rights, char out[RIGHTS_BYTES])
{
    size_t len = 0;

    *out = '\0';
    for (const struct weir__right_name *r = weir__right_names; r->name; r++)
        if (rights & r->right)
            len +=
                (size_t)snprintf(out + len, RIGHTS_BYTES - len, "%s%s", len ? ", " : "", r->name);
    return out;
}

/* What is given must be what is there. */
static int agree(struct weir__visit *v, const struct weir__order *o, struct weir_error *err)
{
    char there[RIGHTS_BYTES], wanted[RIGHTS_BYTES];
    struct weir__rule rule;
    int rc = load_rule(v, &rule, err);

    if (rc != 0) return rc;
    if (weir__access_rights(o->rights) != rule.rights)
        return weir__fail(err, WEIR_EEXIST, "access rule '%s' has the rights %s, not %s", rule.name,
                          say_rights(rule.rights, there), say_rights(o->rights, wanted));
    for (int i = 0; i < WEIR__KEYS; i++)
        if (o->key[i][0] && strcmp(o->key[i], rule.key[i]) != 0)
            return weir__fail(err, WEIR_EEXIST, "access rule '%s' has another %s key", rule.name,
                              i == WEIR__KEY_PRIMARY ? "primary" : "secondary");
    return 0;
}

static int make_rule(struct weir__visit *v, const struct weir__order *o, struct weir_error *err)
{
    struct weir__rule rule = {.rights = o->rights};

    if (!(o->given & WEIR__ORDER_RIGHTS))
        return weir__fail(err, WEIR_EINVAL,
                          "the body must have \"rights\": some of send, listen and manage");
    snprintf(rule.name, sizeof rule.name, "%s", rule_name(v));
    memcpy(rule.key, o->key, sizeof rule.key);
    return weir__namespace_rule_add(v->server->ns, weir__visit_hub(v), &rule, err);
}

bool weir__keys_put(struct weir__visit *v)
{
    struct weir__order order;
    struct weir_error err;
    bool made = false;
    int rc = weir__order_read(&order, weir__buf_bytes(&v->body), WEIR__ORDER_RULE, &err);

    if (rc == 0) rc = make_rule(v, &order, &err);
    made = rc == 0;
    if (rc == WEIR_EEXIST && !weir__visit_only_new(v)) rc = agree(v, &order, &err);
    weir__order_fini(&order);
    return rc == 0 ? show(v, made ? 201 : 200, made) : fail(v, &err);
}

/* A crash in between leaves the first key twice, which locks nobody out who was in. */
static int rotate_next(struct weir__visit *v, struct weir_error *err)
{
    struct weir__namespace *ns = v->server->ns;
    const char *hub = weir__visit_hub(v);
    struct weir__rule rule;
    int rc = load_rule(v, &rule, err);

    if (rc == 0)
        rc = weir__namespace_rule_rotate(ns, hub, rule.name, WEIR__KEY_SECONDARY,
                                         rule.key[WEIR__KEY_PRIMARY], err);
    if (rc == 0) rc = weir__namespace_rule_rotate(ns, hub, rule.name, WEIR__KEY_PRIMARY, NULL, err);
    return rc;
}

static bool is_word(struct weir__bytes b, const char *word)
{
    return b.len == strlen(word) && memcmp(b.at, word, b.len) == 0;
}

/* The key of the body, if there is one, or a random one. */
static int rotate_one(struct weir__visit *v, enum weir__access_which which, struct weir_error *err)
{
    unsigned known = which == WEIR__KEY_PRIMARY ? WEIR__ORDER_PRIMARY : WEIR__ORDER_SECONDARY;
    struct weir__order order;
    int rc = weir__order_read(&order, weir__buf_bytes(&v->body), known, err);

    if (rc == 0)
        rc = weir__namespace_rule_rotate(v->server->ns, weir__visit_hub(v), rule_name(v), which,
                                         order.given ? order.key[which] : NULL, err);
    weir__order_fini(&order);
    return rc;
}

bool weir__keys_rotate(struct weir__visit *v)
{
    struct weir__bytes word = {0};
    struct weir_error err;
    bool asked = weir__http_find_query(v->request->query, "rotate", &word);
    int rc;

    if (asked && is_word(word, "next")) {
        rc = rotate_next(v, &err);
    } else if (asked && is_word(word, "secondary")) {
        rc = rotate_one(v, WEIR__KEY_SECONDARY, &err);
    } else if (asked && (word.len == 0 || is_word(word, "primary"))) {
        rc = rotate_one(v, WEIR__KEY_PRIMARY, &err);
    } else {
        weir__answer_error(v, 400,
                           "POST here is ?rotate=primary, ?rotate=secondary or ?rotate=next.");
        return true;
    }
    return rc == 0 ? show(v, 200, true) : fail(v, &err);
}

/* Changes by HTTP come one after the other, all on the worker. *out: it is the last one. */
static int is_last_manager(struct weir__visit *v, bool *out, struct weir_error *err)
{
    bool others = false, last = false;
    struct rules rules;
    int rc;

    *out = false;
    if (weir__visit_hub(v)) return 0;
    rc = load_rules(v, &rules, err);
    for (uint32_t i = 0; rc == 0 && i < rules.count; i++) {
        bool manages = rules.at[i].rights & WEIR__RIGHT_MANAGE;
        bool this = weir__name_equal(rules.at[i].name, rule_name(v));
        others |= manages && !this;
        last |= manages && this;
    }
    *out = rc == 0 && last && !others;
    return rc;
}

bool weir__keys_delete(struct weir__visit *v)
{
    struct weir_error err;
    bool last;
    int rc = is_last_manager(v, &last, &err);

    if (rc == 0 && last) {
        weir__answer_error(
            v, 409,
            "access rule '%s' is the last of the namespace with Manage: make another "
            "one first",
            rule_name(v));
        return true;
    }
    if (rc == 0)
        rc = weir__namespace_rule_remove(v->server->ns, weir__visit_hub(v), rule_name(v), &err);
    if (rc != 0) return fail(v, &err);
    weir__answer_empty(v, 204);
    return true;
}
