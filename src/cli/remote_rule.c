#include <stdio.h>

#include "cli/remote_state.h"
#include "hub/right.h"

static int take_right(void *out, const char *text, struct weir_error *err)
{
    struct weir_rule *rule = out;

    (void)err; /* rights that are not known here give nothing here */
    for (const struct weir__right_name *right = weir__right_names; right->name; right++)
        if (strcmp(text, right->name) == 0) rule->rights |= right->right;
    return 0;
}

static const struct weir__fact rule_facts[] = {
    {"name", WEIR__FACT_TEXT, offsetof(struct weir_rule, name), WEIR_NAME_BYTES, NULL},
    {"rights", WEIR__FACT_TEXTS, 0, 0, take_right},
    {0},
};

static const struct weir__fact string_facts[] = {
    {"connection_string", WEIR__FACT_TEXT, 0, WEIR__CONNECTION_BYTES, NULL},
    {0},
};

struct rules {
    int (*fn)(const struct weir_rule *, void *);
    void *user;
};

static int show_rule(void *out, void *user)
{
    const struct rules *to = user;

    return to->fn(out, to->user);
}

int weir__remote_rule_list(struct weir__remote *r, const char *hub,
                           int (*fn)(const struct weir_rule *, void *), void *user,
                           struct weir_error *err)
{
    struct rules to = {fn, user};
    struct weir_rule rule;

    return weir__remote_list(r, &(struct weir__remote_path){.hub = hub, .what = "keys"}, "keys",
                             rule_facts, &rule, sizeof rule, show_rule, &to, err);
}

/* A question whose answer has a connection string in it. */
static int ask_for_string(struct weir__remote *r, const struct weir__question *q,
                          const struct weir__remote_path *p, char out[WEIR__CONNECTION_BYTES],
                          struct weir_error *err)
{
    struct weir__reply reply;
    int rc = weir__remote_ask(r, q, p, &reply, err);

    *out = '\0';
    if (rc == 0) rc = weir__remote_read(r, &reply, string_facts, out, err);
    if (rc == 0 && !*out) rc = weir__remote_strange(r, &reply, err);
    return rc;
}

int weir__remote_rule_create(struct weir__remote *r, const char *hub, const struct weir_rule *rule,
                             char out[WEIR__CONNECTION_BYTES], struct weir_error *err)
{
    char body[64] = "{\"rights\":[";
    struct weir__question q = {.method = "PUT", .only_new = true, .body = body};
    size_t len = strlen(body), first = len;

    for (const struct weir__right_name *right = weir__right_names; right->name; right++)
        if (rule->rights & right->right)
            len += (size_t)snprintf(body + len, sizeof body - len, "%s\"%s\"",
                                    len > first ? "," : "", right->name);
    snprintf(body + len, sizeof body - len, "]}");
    return ask_for_string(
        r, &q, &(struct weir__remote_path){.hub = hub, .what = "keys", .name = rule->name}, out,
        err);
}

int weir__remote_rule_rotate(struct weir__remote *r, const char *hub, const char *rule,
                             char out[WEIR__CONNECTION_BYTES], struct weir_error *err)
{
    struct weir__question q = {.method = "POST"};
    struct weir__remote_path p = {.hub = hub,
                                  .what = "keys",
                                  .name = rule,
                                  .query = "?rotate=next"};

    return ask_for_string(r, &q, &p, out, err);
}

int weir__remote_rule_delete(struct weir__remote *r, const char *hub, const char *rule,
                             struct weir_error *err)
{
    struct weir__question q = {.method = "DELETE"};
    struct weir__reply reply;

    return weir__remote_ask(r, &q,
                            &(struct weir__remote_path){.hub = hub, .what = "keys", .name = rule},
                            &reply, err);
}
