/* jwt.c - split > header > key > signature > claims. Strangers get as far as the signature: what
 * they can make us do is one pass over the token, a header of 3 KiB, and one check of a signature. */
#include "hub/jwt.h"

#include "base/base64url.h"
#include "base/json_members.h"

#define PARTS 3
#define SECONDS_DIGITS_MAX 15
#define HEADER_BYTES WEIR__BASE64URL_BYTES(WEIR__JWT_HEADER_MAX)
#define CLAIMS_BYTES WEIR__BASE64URL_BYTES(WEIR__JWT_BYTES_MAX)

_Static_assert(sizeof((struct weir__access_basis *)0)->key == WEIR__JWKS_DIGEST_BYTES,
               "a grant rests on a key by its digest");

enum part { PART_HEADER, PART_CLAIMS, PART_SIGNATURE };

const char *const weir__jwt_audiences[WEIR__JWT_AUDIENCES_MAX] = {"https://eventhubs.azure.net",
                                                                  "https://eventhubs.azure.net/"};

const struct weir__jwt_role weir__jwt_roles[] = {
    {"Azure Event Hubs Data Owner", WEIR__RIGHTS_ALL},
    {"Azure Event Hubs Data Sender", WEIR__RIGHT_SEND},
    {"Azure Event Hubs Data Receiver", WEIR__RIGHT_LISTEN},
};

const uint32_t weir__jwt_role_count = sizeof weir__jwt_roles / sizeof weir__jwt_roles[0];

struct header {
    bool has_algorithm, has_kid;
    enum weir__jws_algorithm algorithm;
    char kid[WEIR__JWK_KID_MAX + 1];
};

struct claims {
    bool issuer, audience; /* is ours */
    bool has_expiry;
    int64_t expires_s;
    int64_t begins_s; /* 0: at any time */
    unsigned rights;
};

static int fail_form(const char *why, struct weir_error *err)
{
    return weir__fail(err, WEIR_EDENIED, "MalformedToken: %s", why);
}

/* ---- objects ---- */

/* A part of a token, decoded: an object, member by member. */
struct object {
    struct weir__json json;
    struct weir__json_members members;
};

static const char *text_of(const struct object *o)
{
    return o->json.lent;
}

/* Says what is no JSON; the reader's own words have nothing of the token in them. */
static int fail_json(const char *part, struct weir_error *err)
{
    return weir__wrap(err, WEIR_EDENIED, "MalformedToken: The %s of the token", part);
}

static int open_object(struct object *o, struct weir__bytes text, char *room, size_t size,
                       struct weir_error *err)
{
    enum weir__json_token token;
    int rc;

    weir__json_init(&o->json, text);
    weir__json_lend(&o->json, room, size);
    rc = weir__json_next(&o->json, &token, err);
    if (rc == 0 && token != WEIR__JSON_OBJECT)
        rc = weir__fail(err, WEIR_EINVAL, "it is not an object");
    weir__json_members_init(&o->members, &o->json);
    return rc;
}

/* ---- the header ---- */

static int take_algorithm(struct header *h, const char *name, struct weir_error *err)
{
    h->has_algorithm = true;
    h->algorithm = WEIR__JWS_RS256;
    if (strcmp(name, "RS256") == 0) return 0;
    h->algorithm = WEIR__JWS_ES256;
    if (strcmp(name, "ES256") == 0) return 0;
    return fail_form("alg is not RS256 or ES256.", err);
}

static int take_kid(struct header *h, const struct object *o, struct weir_error *err)
{
    if (o->json.text_len > WEIR__JWK_KID_MAX) return fail_form("kid is too long.", err);
    memcpy(h->kid, text_of(o), o->json.text_len + 1);
    h->has_kid = true;
    return 0;
}

static int take_header(struct header *h, struct object *o, enum weir__json_token value,
                       struct weir_error *err)
{
    const char *name = o->members.name;
    bool is_alg = strcmp(name, "alg") == 0, is_kid = strcmp(name, "kid") == 0;

    if (strcmp(name, "crit") == 0) return fail_form("crit asks for what is not known here.", err);
    if (!is_alg && !is_kid)
        return weir__json_skip(&o->json, value, err) == 0 ? 0 : fail_json("header", err);
    if (value != WEIR__JSON_TEXT) return fail_form("alg or kid is not a string.", err);
    return is_alg ? take_algorithm(h, text_of(o), err) : take_kid(h, o, err);
}

static int read_header(struct weir__bytes part, struct header *h, struct weir_error *err)
{
    uint8_t bytes[HEADER_BYTES];
    char room[HEADER_BYTES + 1];
    enum weir__json_token value;
    struct object o;
    size_t len;
    int rc;

    if (part.len > WEIR__JWT_HEADER_MAX || !weir__base64url_decode(part, bytes, sizeof bytes, &len))
        return fail_form("Its header is not base64url, or too long.", err);
    rc = open_object(&o, weir__bytes_of(bytes, len), room, sizeof room, err);
    while (rc == 0) {
        rc = weir__json_members_next(&o.members, &value, err);
        if (rc != 0 || value == WEIR__JSON_OBJECT_END) break;
        rc = take_header(h, &o, value, err);
        if (rc != 0) return rc;
    }
    if (rc == 0) rc = weir__json_next(&o.json, &value, err); /* says so when there is more */
    if (rc != 0) return fail_json("header", err);
    return h->has_algorithm ? 0 : fail_form("Its header has no alg.", err);
}

/* ---- the signature ---- */

static int check_signature(const struct weir__jwks *keys, const struct header *h,
                           struct weir__bytes text, struct weir__bytes part,
                           const struct weir__jwks_key **out, struct weir_error *err)
{
    const struct weir__jwks_key *key =
        weir__jwks_find(keys, h->algorithm, h->has_kid ? h->kid : NULL);
    uint8_t signature[WEIR__JWS_SIGNATURE_MAX];
    size_t len;

    if (!key)
        return weir__fail(err, WEIR_EDENIED,
                          "InvalidSignature: The token has an invalid signature. %s",
                          h->has_kid
                              ? "The issuer has no key of its kid and alg."
                              : "It has no kid, and the issuer not just one key of its alg.");
    if (!weir__base64url_decode(part, signature, sizeof signature, &len) ||
        !weir__jws_verify(key->algorithm, key->public_key, text, weir__bytes_of(signature, len)))
        return weir__fail(err, WEIR_EDENIED,
                          "InvalidSignature: The token has an invalid signature.");
    *out = key;
    return 0;
}

/* ---- the claims ---- */

/* Seconds since 1970; a fraction is cut off. */
static bool parse_seconds(const char *text, int64_t *out)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;

    *out = 0;
    if (digits == 0 || digits > SECONDS_DIGITS_MAX) return false;
    for (size_t i = 0; i < digits; i++) *out = *out * 10 + (text[i] - '0');
    return *rest == '\0' || (*rest == '.' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

static int take_seconds(const struct object *o, enum weir__json_token value, int64_t *out,
                        struct weir_error *err)
{
    if (value == WEIR__JSON_NUMBER && parse_seconds(text_of(o), out)) return 0;
    return fail_form("exp or nbf is not a number of seconds.", err);
}

static void match_audience(const struct weir__jwt_issuer *issuer, const char *text,
                           struct claims *c)
{
    for (size_t i = 0; i < WEIR__JWT_AUDIENCES_MAX; i++)
        if (issuer->audience[i] && strcmp(issuer->audience[i], text) == 0) c->audience = true;
}

static void match_role(const struct weir__jwt_issuer *issuer, const char *text, struct claims *c)
{
    for (uint32_t i = 0; i < issuer->role_count; i++)
        if (strcmp(issuer->roles[i].name, text) == 0)
            c->rights |= weir__access_rights(issuer->roles[i].rights);
}

/* A string, or the strings of an array. Other values are nobody's audience and no role. */
static int match_each(const struct weir__jwt_issuer *issuer, struct object *o,
                      enum weir__json_token value,
                      void (*match)(const struct weir__jwt_issuer *, const char *, struct claims *),
                      struct claims *c, struct weir_error *err)
{
    int rc = 0;

    if (value == WEIR__JSON_TEXT) match(issuer, text_of(o), c);
    if (value != WEIR__JSON_ARRAY) return weir__json_skip(&o->json, value, err);
    while (rc == 0) {
        rc = weir__json_next(&o->json, &value, err);
        if (rc != 0 || value == WEIR__JSON_ARRAY_END) break;
        if (value == WEIR__JSON_TEXT) match(issuer, text_of(o), c);
        rc = weir__json_skip(&o->json, value, err);
    }
    return rc;
}

static int take_claim(const struct weir__jwt_issuer *issuer, struct object *o,
                      enum weir__json_token value, struct claims *c, struct weir_error *err)
{
    const char *name = o->members.name;
    int rc;

    if (strcmp(name, "exp") == 0) {
        c->has_expiry = true;
        return take_seconds(o, value, &c->expires_s, err);
    }
    if (strcmp(name, "nbf") == 0) return take_seconds(o, value, &c->begins_s, err);
    if (strcmp(name, "iss") == 0 && value == WEIR__JSON_TEXT)
        c->issuer = strcmp(text_of(o), issuer->name) == 0;
    if (strcmp(name, "aud") == 0)
        rc = match_each(issuer, o, value, match_audience, c, err);
    else if (strcmp(name, issuer->role_claim) == 0)
        rc = match_each(issuer, o, value, match_role, c, err);
    else
        rc = weir__json_skip(&o->json, value, err);
    return rc == 0 ? 0 : fail_json("payload", err);
}

static int read_claims(const struct weir__jwt_issuer *issuer, struct weir__bytes part,
                       struct claims *c, struct weir_error *err)
{
    uint8_t bytes[CLAIMS_BYTES];
    char room[CLAIMS_BYTES + 1];
    enum weir__json_token value;
    struct object o;
    size_t len;
    int rc;

    if (!weir__base64url_decode(part, bytes, sizeof bytes, &len))
        return fail_form("Its payload is not base64url.", err);
    rc = open_object(&o, weir__bytes_of(bytes, len), room, sizeof room, err);
    while (rc == 0) {
        rc = weir__json_members_next(&o.members, &value, err);
        if (rc != 0 || value == WEIR__JSON_OBJECT_END) break;
        rc = take_claim(issuer, &o, value, c, err);
        if (rc != 0) return rc;
    }
    if (rc == 0) rc = weir__json_next(&o.json, &value, err); /* says so when there is more */
    return rc == 0 ? 0 : fail_json("payload", err);
}

static int check_claims(const struct weir__jwt_issuer *issuer, const struct claims *c,
                        int64_t now_s, struct weir_error *err)
{
    if (!c->issuer) return weir__fail(err, WEIR_EDENIED, "InvalidIssuer: Token issuer is invalid.");
    if (!c->audience)
        return weir__fail(err, WEIR_EDENIED,
                          "InvalidAudience: Invalid authorization token audience.");
    if (!c->has_expiry) return fail_form("It has no exp.", err);
    if (now_s >= c->expires_s + WEIR__JWT_LEEWAY_S) return weir__access_expired(c->expires_s, err);
    if (now_s < c->begins_s - WEIR__JWT_LEEWAY_S)
        return weir__fail(err, WEIR_EDENIED, "InvalidToken: The token is not valid yet (nbf).");
    if (!c->rights)
        return weir__fail(err, WEIR_EDENIED,
                          "Unauthorized access. The token has no role, in its claim '%.64s', that "
                          "gives a right here.",
                          issuer->role_claim);
    return 0;
}

/* ---- the whole ---- */

static int split(struct weir__bytes token, struct weir__bytes parts[PARTS], struct weir_error *err)
{
    struct weir__bytes rest = token;

    if (token.len > WEIR__JWT_BYTES_MAX) return fail_form("The token is too long.", err);
    for (int i = 0; i < PARTS; i++) {
        const uint8_t *dot = rest.len ? memchr(rest.at, '.', rest.len) : NULL;
        size_t len = dot ? (size_t)(dot - rest.at) : rest.len;
        if (!dot != (i == PARTS - 1) || len == 0)
            return fail_form("It does not have three parts with dots between them.", err);
        parts[i] = weir__bytes_of(rest.at, len);
        if (dot) rest = weir__bytes_of(dot + 1, rest.len - len - 1);
    }
    return 0;
}

int weir__jwt_check(const struct weir__jwt_issuer *issuer, const struct weir__jwks *keys,
                    struct weir__bytes token, int64_t now_s, struct weir__access_grant *out,
                    struct weir_error *err)
{
    const struct weir__jwks_key *key = NULL;
    struct weir__bytes parts[PARTS], text;
    struct header header = {0};
    struct claims claims = {0};
    int rc = split(token, parts, err);

    if (rc == 0) rc = read_header(parts[PART_HEADER], &header, err);
    if (rc != 0) return rc;
    text = weir__bytes_of(token.at, token.len - parts[PART_SIGNATURE].len - 1);
    rc = check_signature(keys, &header, text, parts[PART_SIGNATURE], &key, err);
    if (rc == 0) rc = read_claims(issuer, parts[PART_CLAIMS], &claims, err);
    if (rc == 0) rc = check_claims(issuer, &claims, now_s, err);
    if (rc != 0) return rc;
    out->rights = claims.rights;
    out->expires_s = weir__access_cap(claims.expires_s + WEIR__JWT_LEEWAY_S, now_s);
    out->path.text[0] = '\0';
    out->basis = (struct weir__access_basis){.ground = WEIR__GROUND_ISSUER};
    memcpy(out->basis.key, key->digest, sizeof out->basis.key);
    return 0;
}
