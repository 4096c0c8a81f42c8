/* serve_issuer.c - --issuer: whose tokens are accepted, and the file with its keys. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json_members.h"
#include "cli/exit.h"
#include "cli/file_text.h"
#include "cli/rights.h"
#include "cli/serve.h"

#define TEXT_MAX 1024u /* of an issuer, audience, role or claim's name */

/* ---- options ---- */

static bool fail_usage(int *out_exit, const char *what)
{
    *out_exit = weir__exit_usage("serve", "%s", what);
    return false;
}

/* "NAME=RIGHTS"; names may have an equals sign, rights have none. */
static bool read_role(struct weir__serve_issuer *i, char *text, int *out_exit)
{
    char *equals = strrchr(text, '=');
    struct weir__jwt_role *role = &i->roles[i->policy.role_count];

    if (!equals || equals == text || strlen(text) > TEXT_MAX ||
        !weir__rights_parse(equals + 1, &role->rights)) {
        *out_exit = weir__exit_usage("serve",
                                     "--role is NAME=RIGHTS with RIGHTS of send, listen and "
                                     "manage, like writers=send,listen, not '%.256s'",
                                     text);
        return false;
    }
    *equals = '\0';
    role->name = text;
    i->policy.role_count++;
    return true;
}

/* Those that are given replace Azure's: a name that somebody else gives out must not be one of them by
 * chance. */
static bool read_roles(struct weir__serve *s, int *out_exit)
{
    struct weir__serve_issuer *i = &s->issuer;

    i->policy.roles = weir__jwt_roles;
    i->policy.role_count = weir__jwt_role_count;
    if (s->o.roles.count == 0) return true;
    i->policy.roles = i->roles;
    i->policy.role_count = 0;
    for (uint32_t n = 0; n < s->o.roles.count; n++) {
        i->role_texts[n] = strdup(s->o.roles.at[n]);
        if (!i->role_texts[n]) {
            *out_exit = weir__exit_error(WEIR_ENOMEM, NULL, "serve");
            return false;
        }
        if (!read_role(i, i->role_texts[n], out_exit)) return false;
    }
    return true;
}

static bool is_reserved(const char *claim)
{
    static const char *const names[] = {"iss", "aud", "exp", "nbf"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(claim, names[i]) == 0) return true;
    return false;
}

static bool is_short(const char *text, size_t max)
{
    return !text || (*text && strlen(text) <= max);
}

bool weir__serve_read_issuer(struct weir__serve *s, int *out_exit)
{
    const struct weir__serve_options *o = &s->o;
    struct weir__jwt_issuer *p = &s->issuer.policy;

    if (!o->issuer != !o->jwks)
        return fail_usage(out_exit, "--issuer URL and --jwks FILE belong together");
    if (!o->issuer && (o->audience || o->role_claim || o->roles.count > 0))
        return fail_usage(out_exit, "--audience, --role-claim and --role go with --issuer");
    if (!o->issuer) return true;
    if (!is_short(o->issuer, TEXT_MAX) || !is_short(o->audience, TEXT_MAX))
        return fail_usage(out_exit, "--issuer and --audience have 1 to 1024 characters");
    if (!is_short(o->role_claim, WEIR__JSON_MEMBER_NAME_MAX))
        return fail_usage(out_exit, "--role-claim has 1 to 255 characters");
    if (o->role_claim && is_reserved(o->role_claim))
        return fail_usage(out_exit, "--role-claim cannot be iss, aud, exp or nbf");
    p->name = o->issuer;
    p->audience[0] = o->audience ? o->audience : weir__jwt_audiences[0];
    p->audience[1] = o->audience ? NULL : weir__jwt_audiences[1];
    p->role_claim = o->role_claim ? o->role_claim : WEIR__JWT_ROLE_CLAIM;
    return read_roles(s, out_exit);
}

void weir__serve_free_issuer(struct weir__serve *s)
{
    for (uint32_t i = 0; i < s->o.roles.count; i++) free(s->issuer.role_texts[i]);
    weir__jwks_release(s->issuer.keys);
}

/* ---- the file ---- */

static int read_keys(const char *path, struct weir__jwks **out, struct weir_error *err)
{
    struct weir__buf buf;
    int rc;

    rc = weir__file_text(path, WEIR__JWKS_BYTES_MAX, &buf, err);
    if (rc == 0) rc = weir__jwks_parse(out, weir__buf_bytes(&buf), err);
    weir__buf_fini(&buf);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%.256s", path);
}

int weir__serve_open_issuer(struct weir__serve *s, struct weir_error *err)
{
    int rc = s->o.jwks ? read_keys(s->o.jwks, &s->issuer.keys, err) : 0;
    char why[WEIR_ERROR_TEXT_BYTES];

    if (rc == 0) return 0;
    snprintf(why, sizeof why, "%s", err->text);
    return weir__fail(
        err, rc,
        "--jwks %.300s; it must be a file with the issuer's public keys, the JSON that "
        "lies at the jwks_uri in its /.well-known/openid-configuration",
        why);
}

int weir__serve_renew_issuer(struct weir__serve *s, struct weir_error *err)
{
    struct weir__jwks *keys;
    int rc = read_keys(s->o.jwks, &keys, err);

    if (rc != 0) return rc;
    weir__server_renew_issuer(s->server, keys);
    weir__jwks_release(s->issuer.keys);
    s->issuer.keys = keys;
    return 0;
}
