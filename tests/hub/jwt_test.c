/* Tokens that an issuer really signed, and those that somebody has tampered with. */
#include "base/json_members.h"
#include "hub/issuer_world.h"

#define NOW 1700000000
#define ISSUER "https://issuer.example/tenant/"
#define OWNER "Azure Event Hubs Data Owner"
#define SENDER "Azure Event Hubs Data Sender"
#define RECEIVER "Azure Event Hubs Data Receiver"
#define RS256 "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"r\"}"
#define ES256 "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"e\"}"
#define ISS "\"iss\":\"" ISSUER "\""
#define AUD "\"aud\":\"https://eventhubs.azure.net\""
#define EXP "\"exp\":1700003600"
#define ROLES "\"roles\":[\"" SENDER "\"]"
#define GOOD "{" ISS "," AUD "," EXP "," ROLES "}"

static struct weir__jwt_issuer issuer = {.name = ISSUER, .role_claim = WEIR__JWT_ROLE_CLAIM};
static EVP_PKEY *rsa, *ec, *other;
static struct weir__jwks *keys;
static struct weir_error err;
static struct weir__access_grant grant;
static char token[2 * TEXT_BYTES];

static int make_issuer(void **state)
{
    char rsa_jwk[4096], ec_jwk[4096], text[TEXT_BYTES];

    (void)state;
    issuer.audience[0] = weir__jwt_audiences[0];
    issuer.audience[1] = weir__jwt_audiences[1];
    issuer.roles = weir__jwt_roles;
    issuer.role_count = weir__jwt_role_count;
    rsa = EVP_RSA_gen(2048);
    other = EVP_RSA_gen(2048);
    ec = EVP_EC_gen("P-256");
    put_jwk(rsa_jwk, rsa, "r", "");
    put_jwk(ec_jwk, ec, "e", "");
    snprintf(text, sizeof text, "{\"keys\":[%s,%s]}", rsa_jwk, ec_jwk);
    return weir__jwks_parse(&keys, bytes_of(text), &err);
}

static int free_issuer(void **state)
{
    (void)state;
    weir__jwks_release(keys);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(other);
    return 0;
}

static int check_at(const char *text, int64_t now_s)
{
    err.text[0] = '\0';
    memset(&grant, 0x5a, sizeof grant);
    grant.rights = 0;
    return weir__jwt_check(&issuer, keys, bytes_of(text), now_s, &grant, &err);
}

static void refused(const char *text, const char *words)
{
    assert_int_equal(check_at(text, NOW), WEIR_EDENIED);
    assert_int_equal(grant.rights, 0);
    if (strncmp(err.text, words, strlen(words)) != 0) fail_msg("not '%s': %s", words, err.text);
}

/* A token of the issuer's RSA key. */
static const char *with(const char *payload)
{
    put_token(token, rsa, RS256, payload);
    return token;
}

static const char *with_header(EVP_PKEY *key, const char *header)
{
    put_token(token, key, header, GOOD);
    return token;
}

/* ---- good ones ---- */

static void a_good_token(void **state)
{
    (void)state;
    assert_int_equal(check_at(with(GOOD), NOW), 0);
    assert_int_equal(grant.rights, WEIR__RIGHT_SEND);
    assert_int_equal(grant.expires_s, 1700003600 + WEIR__JWT_LEEWAY_S);
    assert_string_equal(grant.path.text, "");
    assert_int_equal(grant.basis.ground, WEIR__GROUND_ISSUER);
    assert_false(grant.basis.of_hub);
    assert_memory_equal(grant.basis.key, weir__jwks_find(keys, WEIR__JWS_RS256, "r")->digest,
                        WEIR__JWKS_DIGEST_BYTES);
    assert_int_equal(check_at(with_header(ec, ES256), NOW), 0);
    assert_int_equal(grant.rights, WEIR__RIGHT_SEND);
    assert_memory_equal(grant.basis.key, weir__jwks_find(keys, WEIR__JWS_ES256, "e")->digest,
                        WEIR__JWKS_DIGEST_BYTES);
}

/* r and s have leading zeros now and then. */
static void every_signature_of_es256_is_read(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) assert_int_equal(check_at(with_header(ec, ES256), NOW), 0);
}

static void roles_are_rights(void **state)
{
    static const struct {
        const char *roles;
        unsigned rights;
    } rows[] = {
        {"\"roles\":[\"" OWNER "\"]", WEIR__RIGHTS_ALL},
        {"\"roles\":[\"" RECEIVER "\"]", WEIR__RIGHT_LISTEN},
        {"\"roles\":\"" SENDER "\"", WEIR__RIGHT_SEND},
        {"\"roles\":[\"x\",1,null,[\"" OWNER "\"],\"" RECEIVER "\",{},\"" SENDER "\"]",
         WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN},
    };
    char payload[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(payload, sizeof payload, "{%s,\"sub\":\"me\",%s,%s,%s}", rows[i].roles, ISS, AUD,
                 EXP);
        assert_int_equal(check_at(with(payload), NOW), 0);
        assert_int_equal(grant.rights, rows[i].rights);
    }
}

static void roles_of_ones_own(void **state)
{
    static const struct weir__jwt_role own[] = {{"writers", WEIR__RIGHT_SEND},
                                                {"ops", WEIR__RIGHT_MANAGE},
                                                {"uncounted", WEIR__RIGHT_SEND}};
    struct weir__jwt_issuer azure = issuer;

    (void)state;
    issuer.role_claim = "groups";
    issuer.roles = own;
    issuer.role_count = 2;
    assert_int_equal(check_at(with("{" ISS "," AUD "," EXP ",\"groups\":[\"ops\"]}"), NOW), 0);
    assert_int_equal(grant.rights, WEIR__RIGHTS_ALL);
    assert_int_equal(check_at(with("{" ISS "," AUD "," EXP ",\"groups\":\"writers\"}"), NOW), 0);
    assert_int_equal(grant.rights, WEIR__RIGHT_SEND);
    refused(with("{" ISS "," AUD "," EXP ",\"roles\":[\"ops\"]}"),
            "Unauthorized access. The token has no role, in its claim 'groups'");
    refused(with("{" ISS "," AUD "," EXP ",\"groups\":[\"" OWNER "\"]}"), "Unauthorized access.");
    refused(with("{" ISS "," AUD "," EXP ",\"groups\":\"uncounted\"}"), "Unauthorized access.");
    issuer = azure;
}

static void audiences(void **state)
{
    struct weir__jwt_issuer azure = issuer;

    (void)state;
    assert_int_equal(
        check_at(with("{" ISS "," EXP "," ROLES ",\"aud\":\"https://eventhubs.azure.net/\"}"), NOW),
        0);
    assert_int_equal(check_at(with("{" ISS "," EXP "," ROLES
                                   ",\"aud\":[\"x\",\"https://eventhubs.azure.net\"]}"),
                              NOW),
                     0);
    refused(with("{" ISS "," EXP "," ROLES ",\"aud\":\"https://eventhubs.azure.net//\"}"),
            "InvalidAudience: Invalid authorization token audience.");
    refused(with("{" ISS "," EXP "," ROLES ",\"aud\":\"https://EVENTHUBS.azure.net\"}"),
            "InvalidAudience: ");
    refused(with("{" ISS "," EXP "," ROLES ",\"aud\":[[\"https://eventhubs.azure.net\"]]}"),
            "InvalidAudience: ");
    refused(with("{" ISS "," EXP "," ROLES ",\"aud\":{}}"), "InvalidAudience: ");
    refused(with("{" ISS "," EXP "," ROLES ",\"aud\":\"" WEIR__JWT_ROLE_CLAIM "\"}"),
            "InvalidAudience: ");
    refused(with("{" ISS "," EXP "," ROLES "}"), "InvalidAudience: ");
    issuer.audience[0] = "api://weir";
    issuer.audience[1] = NULL;
    refused(with(GOOD), "InvalidAudience: ");
    assert_int_equal(check_at(with("{" ISS "," EXP "," ROLES ",\"aud\":\"api://weir\"}"), NOW), 0);
    issuer = azure;
}

/* ---- times ---- */

static void expiry(void **state)
{
    (void)state;
    with(GOOD);
    assert_int_equal(check_at(token, 1700003600 + WEIR__JWT_LEEWAY_S - 1), 0);
    assert_int_equal(grant.expires_s, 1700003600 + WEIR__JWT_LEEWAY_S);
    assert_int_equal(check_at(token, 1700003600 + WEIR__JWT_LEEWAY_S), WEIR_EDENIED);
    assert_string_equal(err.text, "ExpiredToken: The token is expired. Expiration time: "
                                  "'2023-11-14 23:13:20Z'");
    refused(with("{" ISS "," AUD "," ROLES "}"), "MalformedToken: It has no exp.");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":0}"), "ExpiredToken: ");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":\"1700003600\"}"), "MalformedToken: exp");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":-1}"), "MalformedToken: exp");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":1e12}"), "MalformedToken: exp");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":9999999999999999}"), "MalformedToken: exp");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":null}"), "MalformedToken: exp");
    refused(with("{" ISS "," AUD "," ROLES ",\"exp\":1700003600.5e3}"), "MalformedToken: exp");
    assert_int_equal(check_at(with("{" ISS "," AUD "," ROLES ",\"exp\":1700003600.75}"), NOW), 0);
    assert_int_equal(check_at(with("{" ISS "," AUD "," ROLES ",\"exp\":999999999999999}"), NOW), 0);
    assert_int_equal(grant.expires_s, NOW + WEIR__ACCESS_GRANT_MAX_S);
}

static void not_before(void **state)
{
    (void)state;
    with("{" ISS "," AUD "," EXP "," ROLES ",\"nbf\":1700000060}");
    assert_int_equal(check_at(token, NOW), 0);
    assert_int_equal(check_at(token, NOW - 1), WEIR_EDENIED);
    assert_string_equal(err.text, "InvalidToken: The token is not valid yet (nbf).");
    refused(with("{" ISS "," AUD "," EXP "," ROLES ",\"nbf\":\"0\"}"),
            "MalformedToken: exp or nbf");
}

/* ---- whose, and for whom ---- */

static void another_issuer(void **state)
{
    (void)state;
    refused(with("{\"iss\":\"https://issuer.example/tenant\"," AUD "," EXP "," ROLES "}"),
            "InvalidIssuer: Token issuer is invalid.");
    refused(with("{\"iss\":[\"" ISSUER "\"]," AUD "," EXP "," ROLES "}"), "InvalidIssuer: ");
    refused(with("{" AUD "," EXP "," ROLES "}"), "InvalidIssuer: ");
}

static void without_a_role(void **state)
{
    (void)state;
    refused(with("{" ISS "," AUD "," EXP "}"), "Unauthorized access. The token has no role");
    refused(with("{" ISS "," AUD "," EXP ",\"roles\":[]}"), "Unauthorized access.");
    refused(with("{" ISS "," AUD "," EXP ",\"roles\":[\"azure event hubs data owner\"]}"),
            "Unauthorized access.");
    refused(with("{" ISS "," AUD "," EXP ",\"roles\":{\"" OWNER "\":\"" OWNER "\"}}"),
            "Unauthorized access.");
    refused(with("{" ISS "," AUD "," EXP ",\"Roles\":[\"" OWNER "\"]}"), "Unauthorized access.");
}

/* ---- signatures ---- */

static void a_wrong_signature(void **state)
{
    char *payload, *signature;

    (void)state;
    put_token(token, other, RS256, GOOD);
    refused(token, "InvalidSignature: The token has an invalid signature.");
    for (int i = 0; i < 2; i++) { /* of each key, one bit of each part */
        with_header(i ? ec : rsa, i ? ES256 : RS256);
        payload = strchr(token, '.') + 1;
        signature = strrchr(token, '.') + 1;
        assert_int_equal(check_at(token, NOW), 0);
        signature[10] = signature[10] == 'A' ? 'B' : 'A';
        refused(token, "InvalidSignature: ");
        with_header(i ? ec : rsa, i ? ES256 : RS256);
        payload[40] = payload[40] == 'A' ? 'B' : 'A';
        refused(token, "InvalidSignature: ");
    }
}

/* The claims are another's, the signature is good for its own. */
static void claims_of_another_token(void **state)
{
    char owner[TEXT_BYTES], mixed[2 * TEXT_BYTES];

    (void)state;
    put_token(owner, other, RS256, "{" ISS "," AUD "," EXP ",\"roles\":[\"" OWNER "\"]}");
    with(GOOD);
    *strrchr(owner, '.') = '\0';
    snprintf(mixed, sizeof mixed, "%s%s", owner, strrchr(token, '.'));
    refused(mixed, "InvalidSignature: ");
}

static void an_empty_or_short_signature(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        with_header(i ? ec : rsa, i ? ES256 : RS256);
        strrchr(token, '.')[1] = '\0';
        refused(token, "MalformedToken: ");
        strcat(token, "AA");
        refused(token, "InvalidSignature: ");
    }
    with_header(ec, ES256); /* r = s = 0 */
    memset(strrchr(token, '.') + 1, 'A', 86);
    refused(token, "InvalidSignature: ");
}

static void another_algorithm(void **state)
{
    static const char *const algorithms[] = {"none",  "None",  "NONE",  "HS256", "HS384", "RS384",
                                             "RS512", "PS256", "ES384", "EdDSA", "rs256", ""};
    char header[128];

    (void)state;
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"r\"}", algorithms[i]);
        refused(with_header(rsa, header), "MalformedToken: alg is not RS256 or ES256.");
        strrchr(token, '.')[1] = '\0'; /* as those without a signature are */
        assert_int_equal(check_at(token, NOW), WEIR_EDENIED);
    }
    refused(with_header(rsa, "{\"kid\":\"r\"}"), "MalformedToken: Its header has no alg.");
    refused(with_header(rsa, "{\"alg\":null,\"kid\":\"r\"}"), "MalformedToken: alg or kid is not");
}

/* HMAC with the public key, which everybody has, as the secret. */
static void the_public_key_is_no_secret(void **state)
{
    static const char header[] = "{\"alg\":\"HS256\",\"kid\":\"r\"}";
    size_t used = put_base64url(token, header, strlen(header)), len = EVP_MAX_MD_SIZE;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t mac[EVP_MAX_MD_SIZE];
    EVP_PKEY *secret;
    char jwk[4096];

    (void)state;
    put_jwk(jwk, rsa, "r", "");
    secret = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (uint8_t *)jwk, strlen(jwk));
    token[used++] = '.';
    used += put_base64url(token + used, GOOD, strlen(GOOD));
    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, secret), 1);
    assert_int_equal(EVP_DigestSign(context, mac, &len, (uint8_t *)token, used), 1);
    token[used++] = '.';
    put_base64url(token + used, mac, len);
    refused(token, "MalformedToken: alg is not RS256 or ES256.");
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(secret);
}

static void the_algorithm_is_the_keys(void **state)
{
    (void)state;
    refused(
        with_header(rsa, "{\"alg\":\"ES256\",\"kid\":\"r\"}"),
        "InvalidSignature: The token has an invalid signature. The issuer has no key of its kid");
    refused(with_header(ec, "{\"alg\":\"RS256\",\"kid\":\"e\"}"), "InvalidSignature: ");
    refused(with_header(ec, "{\"alg\":\"RS256\",\"kid\":\"r\"}"), "InvalidSignature: ");
    refused(with_header(rsa, "{\"alg\":\"ES256\",\"kid\":\"e\"}"), "InvalidSignature: ");
}

static void kids(void **state)
{
    char header[512], kid[300];

    (void)state;
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"x\"}"), "InvalidSignature: ");
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"\"}"), "InvalidSignature: ");
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"kid\":7}"), "MalformedToken: alg or kid");
    assert_int_equal(check_at(with_header(rsa, "{\"alg\":\"RS256\"}"), NOW), 0); /* the only one */
    memset(kid, 'k', sizeof kid);
    snprintf(header, sizeof header, "{\"alg\":\"RS256\",\"kid\":\"%.257s\"}", kid);
    refused(with_header(rsa, header), "MalformedToken: kid is too long.");
    snprintf(header, sizeof header, "{\"alg\":\"RS256\",\"kid\":\"%.256s\"}", kid);
    refused(with_header(rsa, header), "InvalidSignature: ");
}

/* ---- form ---- */

static void members_that_stand_twice(void **state)
{
    (void)state;
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\",\"alg\":\"RS256\"}"),
            "MalformedToken: The header of the token: line 1, column 26: a name is there twice");
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"\\u0061lg\":\"RS256\",\"kid\":\"r\"}"),
            "MalformedToken: The header of the token");
    refused(with("{" ISS "," AUD "," EXP "," ROLES ",\"roles\":[\"" OWNER "\"]}"),
            "MalformedToken: The payload of the token");
    refused(with("{" ISS "," AUD "," EXP "," ROLES ",\"x\":1,\"x\":1}"),
            "MalformedToken: The payload of the token");
}

static void what_is_no_object(void **state)
{
    (void)state;
    refused(with_header(rsa, "[]"), "MalformedToken: The header of the token: it is not an object");
    refused(with_header(rsa, RS256 "x"), "MalformedToken: The header of the token: ");
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\"}{}"), "MalformedToken: ");
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"exp\"]}"),
            "MalformedToken: crit");
    refused(with_header(rsa, "{\"alg\":\"RS256\",\"x\":[1}"),
            "MalformedToken: The header of the token: line 1, column 22: ',' or ']' should be");
    refused(with_header(rsa, "{\"alg\":\"RS256\""), "MalformedToken: The header of the token: ");
    refused(with("{\"aud\":[1}"),
            "MalformedToken: The payload of the token: line 1, column 10: ',' or ']' should be");
    refused(with("{\"roles\":[[1}]}"),
            "MalformedToken: The payload of the token: line 1, column 13: ',' or ']' should be");
    refused(with("null"), "MalformedToken: The payload of the token: ");
    refused(with(GOOD "}"), "MalformedToken: The payload of the token: ");
    refused(with("{" ISS "," AUD "," EXP "," ROLES), "MalformedToken: The payload of the token: ");
    refused(with("{" ISS "," AUD "," EXP "," ROLES ",\"x\":\"\xff\"}"), "MalformedToken: ");
    refused(with("{" ISS "," AUD "," EXP "," ROLES ",\"x\":\"\\u0000\"}"), "MalformedToken: ");
}

static void depth_is_limited(void **state)
{
    char payload[4096] = "{" ISS "," AUD "," EXP "," ROLES ",\"x\":";

    (void)state;
    memset(payload + strlen(payload), '[', 1000);
    refused(with(payload), "MalformedToken: The payload of the token: ");
    assert_non_null(strstr(err.text, "too many levels"));
}

static void members_are_counted(void **state)
{
    char payload[8192];
    size_t len = (size_t)sprintf(payload, "{" ISS "," AUD "," EXP "," ROLES);

    (void)state;
    for (unsigned i = 4; i < WEIR__JSON_MEMBERS_MAX; i++)
        len += (size_t)sprintf(payload + len, ",\"c%u\":{\"a\":[%u]}", i, i);
    strcpy(payload + len, "}");
    assert_int_equal(check_at(with(payload), NOW), 0);
    strcpy(payload + len, ",\"more\":0}");
    refused(with(payload), "MalformedToken: The payload of the token: ");
    assert_non_null(strstr(err.text, "more members than can be"));
}

/* Names and groups of a large company. */
static void a_long_token(void **state)
{
    static char payload[TEXT_BYTES];
    size_t len = (size_t)sprintf(payload, "{" ISS "," AUD "," EXP "," ROLES ",\"name\":\"");

    (void)state;
    memset(payload + len, 'n', 11000);
    strcpy(payload + len + 11000, "\"}");
    assert_int_equal(check_at(with(payload), NOW), 0);
    memset(payload + len, 'n', 12500);
    strcpy(payload + len + 12500, "\"}");
    refused(with(payload), "MalformedToken: The token is too long.");
}

/* A token of just so many characters: a part has spaces behind its object. */
static const char *with_length(size_t want)
{
    static char payload[TEXT_BYTES];
    char header[128];
    size_t rest = 1;

    for (int spaces = 0; rest % 4 == 1; spaces++) { /* no text has so many characters */
        size_t len = (size_t)snprintf(header, sizeof header, RS256 "%*s", spaces, "");
        rest = want - (4 * len + 2) / 3 - 1 - 1 - 342; /* of a signature of 256 bytes */
    }
    snprintf(payload, sizeof payload, "%-*s", (int)(rest * 3 / 4), GOOD);
    put_token(token, rsa, header, payload);
    assert_int_equal(strlen(token), want);
    return token;
}

static void the_longest_token(void **state)
{
    char header[4096];

    (void)state;
    assert_int_equal(check_at(with_length(WEIR__JWT_BYTES_MAX), NOW), 0);
    refused(with_length(WEIR__JWT_BYTES_MAX + 1), "MalformedToken: The token is too long.");
    snprintf(header, sizeof header, "%-*s", (int)(WEIR__JWT_HEADER_MAX * 3 / 4), RS256);
    assert_int_equal(check_at(with_header(rsa, header), NOW), 0);
    strcat(header, " ");
    refused(with_header(rsa, header), "MalformedToken: Its header is not base64url, or too long.");
}

static void parts(void **state)
{
    static const char *const texts[] = {"",    ".",       "..",   "...", "a",
                                        "a.b", "a.b.c.d", ".b.c", "a..c"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refused(texts[i], "MalformedToken: It does not have three parts");
    refused("e30.e30.e30", "MalformedToken: Its header has no alg.");
}

/* Cut at every place, and with every byte behind it. */
static void cut_and_continued(void **state)
{
    size_t len;
    char cut[4096];

    (void)state;
    len = strlen(with_header(ec, ES256));
    for (size_t i = 0; i < len; i++) {
        memcpy(cut, token, i);
        cut[i] = '\0';
        assert_int_equal(check_at(cut, NOW), WEIR_EDENIED);
    }
    for (int c = 1; c < 256; c++) {
        token[len] = (char)c;
        token[len + 1] = '\0';
        assert_int_equal(check_at(token, NOW), WEIR_EDENIED);
    }
    token[len] = '\0';
    assert_int_equal(check_at(token, NOW), 0);
    snprintf(cut, sizeof cut, " %s", token);
    refused(cut, "MalformedToken: Its header is not base64url");
    snprintf(cut, sizeof cut, "%s==", token);
    refused(cut, "InvalidSignature: ");
}

/* A text that decodes to the same bytes is not the same token. */
static void left_over_bits(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char *last;

    (void)state;
    with_header(ec, ES256); /* 64 bytes: the last character has four bits that are not used */
    last = token + strlen(token) - 1;
    *last = digits[(strchr(digits, *last) - digits) | 1];
    refused(token, "InvalidSignature: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_token),
        cmocka_unit_test(every_signature_of_es256_is_read),
        cmocka_unit_test(roles_are_rights),
        cmocka_unit_test(roles_of_ones_own),
        cmocka_unit_test(audiences),
        cmocka_unit_test(expiry),
        cmocka_unit_test(not_before),
        cmocka_unit_test(another_issuer),
        cmocka_unit_test(without_a_role),
        cmocka_unit_test(a_wrong_signature),
        cmocka_unit_test(claims_of_another_token),
        cmocka_unit_test(an_empty_or_short_signature),
        cmocka_unit_test(another_algorithm),
        cmocka_unit_test(the_public_key_is_no_secret),
        cmocka_unit_test(the_algorithm_is_the_keys),
        cmocka_unit_test(kids),
        cmocka_unit_test(members_that_stand_twice),
        cmocka_unit_test(what_is_no_object),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(members_are_counted),
        cmocka_unit_test(a_long_token),
        cmocka_unit_test(the_longest_token),
        cmocka_unit_test(parts),
        cmocka_unit_test(cut_and_continued),
        cmocka_unit_test(left_over_bits),
    };

    return cmocka_run_group_tests(tests, make_issuer, free_issuer);
}
