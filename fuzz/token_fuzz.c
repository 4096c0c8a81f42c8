/* token_fuzz.c - any text as a token, as the resource of a good one, and as its last byte.
 *
 * Nobody gets in with a token that was not signed; a signed one is taken until its time for what it
 * names and below, and for nothing else. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "hub/access.h"

#define EXPIRES_S 1700000000
#define KEY "SAS_KEY_VALUE"

static const struct weir__rule rule = {"Root", WEIR__RIGHTS_ALL, {KEY, "another"}};
static const struct weir__access_rules row = {&rule, 1};
static const struct weir__access_path everything, elsewhere = {"elsewhere/than/that"};

static void try_token(const uint8_t *at, size_t len)
{
    struct weir__access_token token;
    struct weir__access_grant grant;
    struct weir_error err = {0};

    if (weir__access_token_parse(&token, weir__bytes_of(at, len), &err) != 0) {
        ORACLE(err.code == WEIR_EDENIED && strncmp(err.text, "MalformedToken: ", 16) == 0);
        return;
    }
    ORACLE(weir__access_token_check(&token, &row, 1, &everything, 0, &grant, &err) != 0);
    ORACLE(strstr(err.text, "InvalidSignature") || strstr(err.text, "ExpiredToken") ||
           strstr(err.text, "InvalidAudience"));
}

static size_t put_escaped(char *to, const uint8_t *at, size_t len)
{
    size_t used = 0;

    for (size_t i = 0; i < len; i++)
        used += (size_t)sprintf(to + used, i % 2 ? "%%%02x" : "%%%02X", at[i]);
    return used;
}

/* A good token for the resource, escaped from end to end. */
static struct weir__bytes sign(const uint8_t *at, size_t len, char to[WEIR__ACCESS_TOKEN_MAX])
{
    char text[WEIR__ACCESS_TOKEN_MAX];
    uint8_t mac[EVP_MAX_MD_SIZE];
    char signature[64];
    unsigned mac_len = 0;
    size_t sr, used;

    sr = put_escaped(text, at, len);
    used = sr + (size_t)sprintf(text + sr, "\n%d", EXPIRES_S);
    ORACLE(HMAC(EVP_sha256(), KEY, sizeof KEY - 1, (uint8_t *)text, used, mac, &mac_len));
    EVP_EncodeBlock((unsigned char *)signature, mac, (int)mac_len);
    used = (size_t)sprintf(to, "SharedAccessSignature se=%d&skn=root&sr=%.*s&sig=", EXPIRES_S,
                           (int)sr, text);
    used += put_escaped(to + used, (uint8_t *)signature, strlen(signature));
    return weir__bytes_of(to, used);
}

static void try_resource(const uint8_t *at, size_t len)
{
    struct weir__access_path path;
    struct weir__access_token token;
    struct weir__access_grant grant;
    char text[WEIR__ACCESS_TOKEN_MAX];
    struct weir__bytes signature;
    bool good = weir__access_path_parse(&path, weir__bytes_of(at, len), false, NULL) == 0;

    signature = sign(at, len, text);
    ORACLE((weir__access_token_parse(&token, signature, NULL) == 0) == good);
    if (!good) return;
    ORACLE(weir__access_token_check(&token, &row, 1, &path, EXPIRES_S - 1, &grant, NULL) == 0);
    ORACLE(strcmp(grant.path.text, path.text) == 0 && grant.rights == WEIR__RIGHTS_ALL);
    ORACLE(weir__access_token_check(&token, &row, 1, &path, EXPIRES_S, &grant, NULL) != 0);
    ORACLE(!*path.text || weir__access_path_covers(&path, &elsewhere) ||
           weir__access_token_check(&token, &row, 1, &elsewhere, 0, &grant, NULL) != 0);
    token.signature[len % WEIR__ACCESS_SIGNATURE_BYTES] ^= 1;
    ORACLE(weir__access_token_check(&token, &row, 1, &path, 0, &grant, NULL) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    try_token(at, len);
    if (len <= WEIR__ACCESS_PATH_MAX + 8) try_resource(at, len);
    return 0;
}
