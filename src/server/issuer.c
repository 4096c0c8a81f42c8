/* issuer.c - tokens of an issuer (hub/jwt.h), where the server was told of one: in put-token with
 * the type jwt, as security_token of a question, and as Bearer in HTTP.
 *
 * Its keys may be replaced while the server runs. What rests on one that is not among the new ones
 * ends as rights end when a rule is removed: see rights.c. */
#include "server/state.h"

#define SAS_SCHEME "SharedAccessSignature "

void weir__issuer_init(struct weir__issuer *i, const struct weir__server_options *o)
{
    weir__mutex_init(&i->lock);
    if (!o->issuer) return;
    i->policy = o->issuer;
    i->keys = weir__jwks_retain(o->issuer_keys);
}

void weir__issuer_fini(struct weir__issuer *i)
{
    weir__jwks_release(i->keys);
    weir__mutex_fini(&i->lock);
}

/* The keys of this moment; the caller releases them. */
static struct weir__jwks *take_keys(struct weir__issuer *i)
{
    struct weir__jwks *keys;

    weir__mutex_lock(&i->lock);
    keys = weir__jwks_retain(i->keys);
    weir__mutex_unlock(&i->lock);
    return keys;
}

int weir__issuer_verify(struct weir__server *s, struct weir__bytes token, int64_t now_s,
                        struct weir__access_grant *out, struct weir_error *err)
{
    struct weir__jwks *keys;
    int rc;

    if (!s->issuer.policy)
        return weir__fail(err, WEIR_EDENIED,
                          "InvalidToken: Tokens of type 'jwt' are not accepted here; use a "
                          "connection string with a shared access key, or start the server with "
                          "--issuer.");
    keys = take_keys(&s->issuer);
    rc = weir__jwt_check(s->issuer.policy, keys, token, now_s, out, err);
    weir__jwks_release(keys);
    return rc;
}

unsigned weir__issuer_rights(struct weir__server *s, const struct weir__claim *claim)
{
    struct weir__jwks *keys;
    bool there;

    if (!s->issuer.policy) return 0;
    keys = take_keys(&s->issuer);
    there = weir__jwks_has(keys, claim->basis.key);
    weir__jwks_release(keys);
    return there ? claim->rights : 0;
}

int weir__issuer_verify_any(struct weir__server *s, struct weir__bytes token,
                            struct weir__bytes resource, int64_t now_s,
                            struct weir__access_grant *out, struct weir_error *err)
{
    const size_t scheme = sizeof SAS_SCHEME - 1;
    bool is_sas = token.len >= scheme && memcmp(token.at, SAS_SCHEME, scheme) == 0;

    if (is_sas || !s->issuer.policy)
        return weir__namespace_verify(s->ns, token, resource, now_s, out, err);
    return weir__issuer_verify(s, token, now_s, out, err);
}

void weir__server_renew_issuer(struct weir__server *s, struct weir__jwks *keys)
{
    struct weir__jwks *old;

    weir__mutex_lock(&s->issuer.lock);
    old = s->issuer.keys;
    s->issuer.keys = weir__jwks_retain(keys);
    weir__mutex_unlock(&s->issuer.lock);
    weir__jwks_release(old);
    weir__rights_changed(s);
}
