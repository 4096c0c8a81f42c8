/* jwt_fuzz.c - any text as a token, as the payload and as the header of one that the issuer has
 * signed, and as its key set.
 *
 * Nobody gets in with a token that was not signed. Of signed ones, what is granted ends, is one of the
 * rights, and is not granted when a byte is another. */
#include "fuzz.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "hub/jwt.h"

#define NOW_S 1700000000
#define ISSUER "https://issuer"
#define HEADER "{\"alg\":\"ES256\",\"kid\":\"k\"}"
#define PAYLOAD                                                                                    \
    "{\"iss\":\"https://issuer\",\"aud\":\"https://eventhubs.azure.net\",\"exp\":1700003600,"      \
    "\"roles\":[\"Azure Event Hubs Data Sender\"]}"
#define TOKEN_BYTES (4 * WEIR__JWT_BYTES_MAX)

static struct weir__jwt_issuer issuer = {.name = ISSUER, .role_claim = WEIR__JWT_ROLE_CLAIM};
static struct weir__jwks *keys;
static EVP_PKEY *key;

static size_t put_base64url(char *to, const void *at, size_t len)
{
    size_t used = (size_t)EVP_EncodeBlock((unsigned char *)to, at, (int)len);

    while (used > 0 && to[used - 1] == '=') used--;
    for (size_t i = 0; i < used; i++) to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
    return used;
}

static size_t put_number(char *to, const char *param, const char *name)
{
    BIGNUM *number = NULL;
    uint8_t raw[32];
    char text[64];

    ORACLE(EVP_PKEY_get_bn_param(key, param, &number) == 1);
    ORACLE(BN_bn2binpad(number, raw, sizeof raw) == sizeof raw);
    BN_free(number);
    return (size_t)sprintf(to, ",\"%s\":\"%.*s\"", name, (int)put_base64url(text, raw, sizeof raw),
                           text);
}

static void make_issuer(void)
{
    char text[512];
    size_t used =
        (size_t)sprintf(text, "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\"");

    key = EVP_EC_gen("P-256");
    ORACLE(key);
    used += put_number(text + used, OSSL_PKEY_PARAM_EC_PUB_X, "x");
    used += put_number(text + used, OSSL_PKEY_PARAM_EC_PUB_Y, "y");
    used += (size_t)sprintf(text + used, "}]}");
    ORACLE(weir__jwks_parse(&keys, weir__bytes_of(text, used), NULL) == 0);
    issuer.audience[0] = weir__jwt_audiences[0];
    issuer.audience[1] = weir__jwt_audiences[1];
    issuer.roles = weir__jwt_roles;
    issuer.role_count = weir__jwt_role_count;
}

static size_t put_signature(char *to, const char *text, size_t text_len)
{
    uint8_t der[80], raw[64];
    const uint8_t *at = der;
    size_t len = sizeof der;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ECDSA_SIG *pair;

    ORACLE(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1);
    ORACLE(EVP_DigestSign(context, der, &len, (const uint8_t *)text, text_len) == 1);
    EVP_MD_CTX_free(context);
    pair = d2i_ECDSA_SIG(NULL, &at, (long)len);
    ORACLE(pair);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + 32, 32);
    ECDSA_SIG_free(pair);
    return put_base64url(to, raw, sizeof raw);
}

static int check(const char *token, size_t len, struct weir__access_grant *grant)
{
    static const char *const words[] = {
        "MalformedToken: ", "InvalidSignature: ", "InvalidIssuer: ",      "InvalidAudience: ",
        "ExpiredToken: ",   "InvalidToken: ",     "Unauthorized access. "};
    struct weir_error err = {0};
    int rc = weir__jwt_check(&issuer, keys, weir__bytes_of(token, len), NOW_S, grant, &err);
    bool said = rc == 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(err.text, words[i], strlen(words[i])) == 0) said = true;
    ORACLE(said && (rc == 0 || (rc == WEIR_EDENIED && err.code == WEIR_EDENIED)));
    return rc;
}

static void try_signed(const void *header, size_t header_len, const void *payload, size_t len)
{
    static char token[TOKEN_BYTES];
    size_t used = put_base64url(token, header, header_len), changed = len % (used + 1);
    struct weir__access_grant grant;

    token[used++] = '.';
    used += put_base64url(token + used, payload, len);
    token[used] = '.';
    used += 1 + put_signature(token + used + 1, token, used);
    if (check(token, used, &grant) != 0) return;
    ORACLE(grant.rights && !(grant.rights & ~WEIR__RIGHTS_ALL));
    ORACLE(grant.expires_s > NOW_S && grant.expires_s <= NOW_S + WEIR__ACCESS_GRANT_MAX_S);
    ORACLE(grant.basis.ground == WEIR__GROUND_ISSUER && weir__jwks_has(keys, grant.basis.key));
    token[changed] = token[changed] == 'A' ? 'B' : 'A';
    ORACLE(check(token, used, &grant) != 0);
}

static void try_keys(const uint8_t *at, size_t len)
{
    struct weir_error err = {0};
    struct weir__jwks *set = NULL;
    int rc = weir__jwks_parse(&set, weir__bytes_of(at, len), &err);

    ORACLE(rc == 0 ? set && weir__jwks_count(set) > 0 : !set && rc == WEIR_EINVAL && *err.text);
    weir__jwks_release(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__access_grant grant;

    if (!key) make_issuer();
    ORACLE(check((const char *)at, len, &grant) != 0);
    try_keys(at, len);
    if (len > WEIR__JWT_BYTES_MAX) return 0;
    try_signed(HEADER, strlen(HEADER), at, len);
    try_signed(at, len, PAYLOAD, strlen(PAYLOAD));
    return 0;
}
