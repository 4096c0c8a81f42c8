/* jwks.c - each key is read into a struct weir__jwk, judged there, and then made one of OpenSSL's. */
#include "hub/jwks.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base64url.h"
#include "base/json_members.h"
#include "hub/jwk.h"

struct weir__jwks {
    atomic_uint refs;
    uint32_t count;
    struct weir__jwks_key keys[WEIR__JWKS_KEYS_MAX];
};

struct reader {
    struct weir__json json;
    struct weir__jwks *set;
    char *room; /* of the longest string */
    uint32_t passed_over;
};

/* ---- the set ---- */

struct weir__jwks *weir__jwks_retain(struct weir__jwks *set)
{
    atomic_fetch_add(&set->refs, 1);
    return set;
}

void weir__jwks_release(struct weir__jwks *set)
{
    if (!set || atomic_fetch_sub(&set->refs, 1) != 1) return;
    for (uint32_t i = 0; i < set->count; i++) EVP_PKEY_free(set->keys[i].public_key);
    free(set);
}

uint32_t weir__jwks_count(const struct weir__jwks *set)
{
    return set->count;
}

static const struct weir__jwks_key *find_kid(const struct weir__jwks *set, const char *kid)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->keys[i].has_kid && strcmp(set->keys[i].kid, kid) == 0) return &set->keys[i];
    return NULL;
}

const struct weir__jwks_key *weir__jwks_find(const struct weir__jwks *set,
                                             enum weir__jws_algorithm algorithm, const char *kid)
{
    const struct weir__jwks_key *found = kid ? find_kid(set, kid) : NULL;

    if (kid) return found && found->algorithm == algorithm ? found : NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->keys[i].algorithm != algorithm) continue;
        if (found) return NULL;
        found = &set->keys[i];
    }
    return found;
}

bool weir__jwks_has(const struct weir__jwks *set, const uint8_t digest[WEIR__JWKS_DIGEST_BYTES])
{
    for (uint32_t i = 0; i < set->count; i++)
        if (memcmp(set->keys[i].digest, digest, WEIR__JWKS_DIGEST_BYTES) == 0) return true;
    return false;
}

/* ---- judging a key ---- */

static int digest_key(struct weir__jwks_key *key, struct weir_error *err)
{
    uint8_t whole[SHA256_DIGEST_LENGTH], *der = NULL;
    int len = i2d_PUBKEY(key->public_key, &der);

    if (len <= 0) return weir__fail(err, WEIR_ENOMEM, "out of memory for a key");
    SHA256(der, (size_t)len, whole);
    OPENSSL_free(der);
    memcpy(key->digest, whole, sizeof key->digest);
    return 0;
}

static bool is_for(const struct weir__jwk *jwk, const char *algorithm)
{
    return (!*jwk->use || strcmp(jwk->use, "sig") == 0) &&
           (!*jwk->alg || strcmp(jwk->alg, algorithm) == 0);
}

/* Whether it is a key that we check signatures with. */
static bool is_usable(const struct weir__jwk *jwk, enum weir__jws_algorithm *out)
{
    *out = strcmp(jwk->kty, "RSA") == 0 ? WEIR__JWS_RS256 : WEIR__JWS_ES256;
    if (*out == WEIR__JWS_RS256) return is_for(jwk, "RS256");
    return strcmp(jwk->kty, "EC") == 0 && strcmp(jwk->crv, "P-256") == 0 && is_for(jwk, "ES256");
}

static int build_key(const struct weir__jwk *jwk, struct weir__jwks_key *key,
                     struct weir_error *err)
{
    int rc = weir__jwk_build(jwk, key->algorithm, &key->public_key, err);

    if (rc != 0) return rc;
    memcpy(key->kid, jwk->kid, sizeof key->kid);
    key->has_kid = jwk->has_kid;
    return digest_key(key, err);
}

static int add_key(struct weir__jwks *set, const struct weir__jwk *jwk, uint32_t *passed_over,
                   struct weir_error *err)
{
    struct weir__jwks_key key = {0};
    int rc;

    if (!*jwk->kty) return weir__fail(err, WEIR_EINVAL, "a key without kty");
    if (!is_usable(jwk, &key.algorithm)) {
        ++*passed_over;
        return 0;
    }
    if (set->count == WEIR__JWKS_KEYS_MAX)
        return weir__fail(err, WEIR_EINVAL, "there are more than %u keys", WEIR__JWKS_KEYS_MAX);
    if (jwk->has_kid && find_kid(set, jwk->kid))
        return weir__fail(err, WEIR_EINVAL, "another key has the same kid");
    rc = build_key(jwk, &key, err);
    if (rc == 0)
        set->keys[set->count++] = key;
    else
        EVP_PKEY_free(key.public_key);
    return rc;
}

/* ---- reading ---- */

static int fail_at(struct reader *r, size_t began, int rc, struct weir_error *err)
{
    unsigned line, column;

    r->json.began = began;
    weir__json_place(&r->json, &line, &column);
    return weir__wrap(err, rc, "line %u, column %u", line, column);
}

/* A word that is too long is none of those that we know. */
static int take_word(const struct reader *r, char to[WEIR__JWK_WORD_BYTES])
{
    bool fits = r->json.text_len && r->json.text_len < WEIR__JWK_WORD_BYTES;

    memcpy(to, fits ? r->room : "?", fits ? r->json.text_len + 1 : 2);
    return 0;
}

static int take_kid(const struct reader *r, struct weir__jwk *jwk, struct weir_error *err)
{
    if (r->json.text_len > WEIR__JWK_KID_MAX)
        return weir__fail(err, WEIR_EINVAL, "kid is longer than %u bytes", WEIR__JWK_KID_MAX);
    memcpy(jwk->kid, r->room, r->json.text_len + 1);
    jwk->has_kid = true;
    return 0;
}

static int take_number(const struct reader *r, struct weir__jwk_number *to, const char *name,
                       struct weir_error *err)
{
    if (weir__base64url_decode(weir__bytes_of(r->room, r->json.text_len), to->at, sizeof to->at,
                               &to->len) &&
        to->len > 0)
        return 0;
    return weir__fail(err, WEIR_EINVAL, "%s is not base64url of 1 to %d bytes", name,
                      WEIR__JWK_NUMBER_BYTES);
}

/* The value of a member that is ours: a string. */
static int take_member(const struct reader *r, struct weir__jwk *jwk, const char *name,
                       struct weir_error *err)
{
    if (strcmp(name, "kty") == 0) return take_word(r, jwk->kty);
    if (strcmp(name, "crv") == 0) return take_word(r, jwk->crv);
    if (strcmp(name, "use") == 0) return take_word(r, jwk->use);
    if (strcmp(name, "alg") == 0) return take_word(r, jwk->alg);
    if (strcmp(name, "kid") == 0) return take_kid(r, jwk, err);
    if (strcmp(name, "n") == 0) return take_number(r, &jwk->n, name, err);
    if (strcmp(name, "e") == 0) return take_number(r, &jwk->e, name, err);
    if (strcmp(name, "x") == 0) return take_number(r, &jwk->x, name, err);
    if (strcmp(name, "y") == 0) return take_number(r, &jwk->y, name, err);
    return 0;
}

static bool is_known(const char *name)
{
    static const char *const names[] = {"kty", "crv", "use", "alg", "kid", "n", "e", "x", "y"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static int read_member(struct reader *r, struct weir__jwk *jwk, const char *name,
                       enum weir__json_token value, struct weir_error *err)
{
    int rc;

    if (strcmp(name, "d") == 0) jwk->is_private = true;
    if (!is_known(name)) return weir__json_skip(&r->json, value, err);
    rc = value == WEIR__JSON_TEXT ? take_member(r, jwk, name, err)
                                  : weir__fail(err, WEIR_EINVAL, "%s is not a string", name);
    return rc == 0 ? 0 : fail_at(r, r->json.began, rc, err);
}

static int read_key(struct reader *r, struct weir_error *err)
{
    struct weir__json_members members;
    enum weir__json_token value;
    struct weir__jwk jwk = {0};
    size_t began = r->json.began;
    int rc;

    weir__json_members_init(&members, &r->json);
    while ((rc = weir__json_members_next(&members, &value, err)) == 0) {
        if (value == WEIR__JSON_OBJECT_END) break;
        rc = read_member(r, &jwk, members.name, value, err);
        if (rc != 0) return rc;
    }
    if (rc != 0) return rc;
    rc = add_key(r->set, &jwk, &r->passed_over, err);
    return rc == 0 ? 0 : fail_at(r, began, rc, err);
}

static int read_keys(struct reader *r, enum weir__json_token value, struct weir_error *err)
{
    int rc = 0;

    if (value != WEIR__JSON_ARRAY)
        return fail_at(r, r->json.began, weir__fail(err, WEIR_EINVAL, "keys is not an array"), err);
    while (rc == 0) {
        rc = weir__json_next(&r->json, &value, err);
        if (rc != 0 || value == WEIR__JSON_ARRAY_END) return rc;
        if (value == WEIR__JSON_OBJECT)
            rc = read_key(r, err);
        else
            rc = fail_at(r, r->json.began,
                         weir__fail(err, WEIR_EINVAL, "a key is an object, {...}"), err);
    }
    return rc;
}

static int read_set(struct reader *r, struct weir_error *err)
{
    struct weir__json_members members;
    enum weir__json_token value;
    bool found = false;
    int rc = weir__json_next(&r->json, &value, err);

    if (rc == 0 && value != WEIR__JSON_OBJECT)
        return weir__fail(err, WEIR_EINVAL, "a key set is an object, {\"keys\": [...]}");
    weir__json_members_init(&members, &r->json);
    while (rc == 0) {
        rc = weir__json_members_next(&members, &value, err);
        if (rc != 0 || value == WEIR__JSON_OBJECT_END) break;
        if (strcmp(members.name, "keys") == 0) {
            found = true;
            rc = read_keys(r, value, err);
        } else {
            rc = weir__json_skip(&r->json, value, err);
        }
    }
    if (rc == 0) rc = weir__json_next(&r->json, &value, err); /* says so when there is more */
    if (rc == 0 && !found)
        rc = weir__fail(err, WEIR_EINVAL, "it has no \"keys\": it is not a JSON Web Key Set");
    return rc;
}

int weir__jwks_parse(struct weir__jwks **out, struct weir__bytes text, struct weir_error *err)
{
    struct reader r = {.set = calloc(1, sizeof *r.set), .room = malloc(text.len + 1)};
    int rc = 0;

    *out = NULL;
    if (!r.set || !r.room) rc = weir__fail(err, WEIR_ENOMEM, "out of memory for keys");
    if (rc == 0 && text.len > WEIR__JWKS_BYTES_MAX)
        rc = weir__fail(err, WEIR_EINVAL, "it is longer than %zu bytes", WEIR__JWKS_BYTES_MAX);
    if (r.set) atomic_init(&r.set->refs, 1);
    weir__json_init(&r.json, text);
    if (r.room) weir__json_lend(&r.json, r.room, text.len + 1);
    if (rc == 0) rc = read_set(&r, err);
    if (rc == 0 && r.set->count == 0)
        rc = weir__fail(err, WEIR_EINVAL,
                        "it has no key for RS256 (RSA) or ES256 (P-256) signatures, and %u others",
                        r.passed_over);
    free(r.room);
    if (rc == 0)
        *out = r.set;
    else
        weir__jwks_release(r.set);
    return rc;
}
