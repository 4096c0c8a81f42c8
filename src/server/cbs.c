/* cbs.c - who somebody is: put-token, by which a client shows a token for an audience, the path of
 * what it wants to use; SASL PLAIN, by which it shows the key itself, for all of them; and SASL
 * EXTERNAL, by which its certificate stands for the key. */
#include "server/state.h"

#define TYPE_SAS "servicebus.windows.net:sastoken"
#define TYPE_JWT "jwt"

static bool is_text(struct weir__bytes b, const char *text)
{
    return b.len == strlen(text) && memcmp(b.at, text, b.len) == 0;
}

/* An audience of a hub that is not there is told now, as the service does: clients expect it here
 * and not when they attach. */
static int check_hub(struct weir__connection *c, const struct weir__access_path *path,
                     struct weir_error *err)
{
    char name[WEIR__HUB_NAME_MAX + 1];
    struct weir__hub *hub;
    int rc;

    weir__access_path_hub(path, name);
    if (!*name || *name == '$') return 0;
    rc = weir__connection_use(c, name, &hub, err);
    if (rc == 0) weir__hub_release(hub);
    return rc;
}

static int put_token(struct weir__connection *c, bool is_jwt, struct weir__bytes token,
                     struct weir__bytes audience, struct weir__refusal *r)
{
    int64_t now_s = weir__connection_now_s(c);
    struct weir__server *s = c->server;
    struct weir__access_grant grant;
    struct weir__claim claim;
    int rc = is_jwt ? weir__issuer_verify(s, token, now_s, &grant, &r->why)
                    : weir__namespace_verify(s->ns, token, audience, now_s, &grant, &r->why);

    if (rc == WEIR_EDENIED) r->condition = WEIR__COND_AUTH_FAILED;
    if (rc == 0) rc = weir__access_path_parse(&claim.path, audience, false, &r->why);
    if (rc != 0) return rc;
    weir__connection_trust(c);
    rc = check_hub(c, &claim.path, &r->why);
    if (rc != 0) return rc;
    claim.rights = grant.rights;
    claim.expires_s = grant.expires_s;
    claim.basis = grant.basis;
    return weir__claims_add(&c->claims, &claim, now_s, &r->why);
}

static int answer(const struct weir__request *request, struct weir__refusal *r)
{
    struct weir__bytes operation = weir__request_text(request, "operation");
    struct weir__bytes type = weir__request_text(request, "type");
    bool is_jwt = is_text(type, TYPE_JWT);

    if (!is_text(operation, "put-token")) {
        r->condition = WEIR__AMQP_COND_NOT_ALLOWED;
        return weir__fail(&r->why, WEIR_EINVAL, "Invalid command '%.*s'.",
                          operation.len < 64 ? (int)operation.len : 64,
                          operation.at ? (const char *)operation.at : "");
    }
    if (!is_jwt && !is_text(type, TYPE_SAS)) {
        r->condition = WEIR__COND_AUTH_FAILED;
        return weir__fail(&r->why, WEIR_EDENIED,
                          "InvalidToken: Tokens of type '%.*s' are not accepted here; use a "
                          "connection string with a shared access key.",
                          type.len < 64 ? (int)type.len : 64, type.at ? (const char *)type.at : "");
    }
    if (request->body.type != WEIR__AMQP_STRING) {
        r->condition = WEIR__COND_AUTH_FAILED;
        return weir__fail(&r->why, WEIR_EDENIED, "MalformedToken: The body has no token.");
    }
    return put_token(request->connection, is_jwt, request->body.bytes,
                     weir__request_text(request, "name"), r);
}

int weir__cbs_answer(const struct weir__request *request, struct weir__amqp_writer *body,
                     struct weir__refusal *r)
{
    struct weir__connection *c = request->connection;
    int rc = answer(request, r);

    (void)body;
    if (rc == WEIR_EDENIED) {
        c->refused = true;
        weir__report_refused(c->server, "server", c->id, weir__connection_peer(c), r->why.text);
    }
    return rc;
}

/* Takes the same time wherever they differ. */
static bool is_same(struct weir__bytes given, const char *key)
{
    size_t len = strlen(key);
    unsigned differ = given.len != len || len == 0;

    for (size_t i = 0; i < given.len; i++)
        differ |= given.at[i] ^ (unsigned char)key[len ? i % len : 0];
    return differ == 0;
}

static uint32_t find_rules(struct weir__connection *c,
                           struct weir__rule rules[WEIR__ACCESS_RULES_MAX])
{
    uint32_t count = 0;

    weir__namespace_rules(c->server->ns, NULL, rules, WEIR__ACCESS_RULES_MAX, &count, NULL);
    return count < WEIR__ACCESS_RULES_MAX ? count : WEIR__ACCESS_RULES_MAX;
}

/* With these rights, on everything. */
static bool let_in(struct weir__connection *c, unsigned rights, int64_t expires_s,
                   const struct weir__access_basis *basis)
{
    int64_t now_s = weir__connection_now_s(c);
    struct weir__claim claim = {.rights = rights,
                                .expires_s = weir__access_cap(expires_s, now_s),
                                .basis = *basis};

    if (!rights || weir__claims_add(&c->claims, &claim, now_s, NULL) != 0) return false;
    weir__connection_trust(c);
    return true;
}

bool weir__cbs_login(struct weir__connection *c, struct weir__bytes rule, struct weir__bytes key)
{
    struct weir__rule rules[WEIR__ACCESS_RULES_MAX];
    struct weir__access_basis basis = {0};
    uint32_t count = find_rules(c, rules);
    unsigned rights = 0;

    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < WEIR__KEYS; k++) {
            if (!is_same(key, rules[i].key[k]) || !is_text(rule, rules[i].name)) continue;
            rights |= rules[i].rights;
            basis = weir__access_basis_of(rules[i].name, rules[i].key[k], false);
        }
    return let_in(c, rights, INT64_MAX, &basis);
}

int weir__cbs_login_certified(struct weir__connection *c, const struct weir__tls_identity *who,
                              struct weir__bytes as, struct weir_error *err)
{
    struct weir__access_basis basis = weir__access_basis_of(who->name, NULL, false);
    struct weir__rule rules[WEIR__ACCESS_RULES_MAX];
    uint32_t count = find_rules(c, rules);
    unsigned rights = 0;

    if (as.len && !is_text(as, who->name))
        return weir__fail(err, WEIR_EDENIED, "the certificate is of '%s', not of '%.*s'", who->name,
                          as.len < 64 ? (int)as.len : 64, (const char *)as.at);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(who->name, rules[i].name) == 0) rights = rules[i].rights;
    if (let_in(c, rights, who->until_s, &basis)) return 0;
    return weir__fail(err, WEIR_EDENIED,
                      "the certificate is of '%s', and there is no access rule of this name",
                      who->name);
}
