/* Key sets: which are taken, which keys in them are used, and what is said about the others. */
#include "hub/issuer_world.h"

static EVP_PKEY *rsa, *ec, *weak;
static char rsa_jwk[4096], ec_jwk[4096], text[TEXT_BYTES];
static struct weir_error err;

static int make_keys(void **state)
{
    (void)state;
    rsa = EVP_RSA_gen(2048);
    ec = EVP_EC_gen("P-256");
    weak = EVP_RSA_gen(1024);
    put_jwk(rsa_jwk, rsa, "r", "");
    put_jwk(ec_jwk, ec, "e", "");
    return rsa && ec && weak ? 0 : -1;
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(weak);
    return 0;
}

/* A set of one or two keys. */
static const char *set_of(const char *first, const char *second)
{
    snprintf(text, sizeof text, "{\"keys\":[%s%s%s]}", first, *second ? "," : "", second);
    return text;
}

static void refused(const char *set, const char *words)
{
    struct weir__jwks *keys = NULL;

    assert_int_equal(weir__jwks_parse(&keys, bytes_of(set), &err), WEIR_EINVAL);
    assert_null(keys);
    if (!strstr(err.text, words)) fail_msg("'%s' is not in: %s", words, err.text);
}

static void a_kid_selects_a_key(void **state)
{
    struct weir__jwks *keys;
    const struct weir__jwks_key *r, *e;

    (void)state;
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(set_of(rsa_jwk, ec_jwk)), &err), 0);
    assert_int_equal(weir__jwks_count(keys), 2);
    r = weir__jwks_find(keys, WEIR__JWS_RS256, "r");
    e = weir__jwks_find(keys, WEIR__JWS_ES256, "e");
    assert_non_null(r);
    assert_non_null(e);
    assert_int_equal(EVP_PKEY_eq(r->public_key, rsa), 1);
    assert_int_equal(EVP_PKEY_eq(e->public_key, ec), 1);
    assert_null(weir__jwks_find(keys, WEIR__JWS_ES256, "r")); /* not for this algorithm */
    assert_null(weir__jwks_find(keys, WEIR__JWS_RS256, "e"));
    assert_null(weir__jwks_find(keys, WEIR__JWS_RS256, "other"));
    assert_null(weir__jwks_find(keys, WEIR__JWS_RS256, ""));
    assert_ptr_equal(weir__jwks_find(keys, WEIR__JWS_RS256, NULL), r); /* the only one */
    assert_true(weir__jwks_has(keys, r->digest));
    assert_memory_not_equal(r->digest, e->digest, WEIR__JWKS_DIGEST_BYTES);
    weir__jwks_release(keys);
}

static void without_a_kid_there_must_be_just_one(void **state)
{
    EVP_PKEY *other = EVP_RSA_gen(2048);
    char nameless[4096], second[4096];
    struct weir__jwks *keys;

    (void)state;
    put_jwk(nameless, rsa, NULL, "");
    put_jwk(second, other, NULL, "");
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(set_of(nameless, "")), &err), 0);
    assert_non_null(weir__jwks_find(keys, WEIR__JWS_RS256, NULL));
    assert_null(weir__jwks_find(keys, WEIR__JWS_ES256, NULL));
    assert_null(weir__jwks_find(keys, WEIR__JWS_RS256, "r"));
    assert_null(weir__jwks_find(keys, WEIR__JWS_RS256, ""));
    weir__jwks_release(keys);
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(set_of(nameless, second)), &err), 0);
    assert_null(weir__jwks_find(keys, WEIR__JWS_RS256, NULL));
    weir__jwks_release(keys);
    EVP_PKEY_free(other);
}

static void a_digest_is_of_the_key_alone(void **state)
{
    struct weir__jwks *before, *after;
    char renamed[4096];

    (void)state;
    put_jwk(renamed, rsa, "another", ",\"use\":\"sig\",\"alg\":\"RS256\"");
    assert_int_equal(weir__jwks_parse(&before, bytes_of(set_of(rsa_jwk, "")), &err), 0);
    assert_int_equal(weir__jwks_parse(&after, bytes_of(set_of(ec_jwk, renamed)), &err), 0);
    assert_true(weir__jwks_has(after, weir__jwks_find(before, WEIR__JWS_RS256, "r")->digest));
    assert_false(weir__jwks_has(before, weir__jwks_find(after, WEIR__JWS_ES256, "e")->digest));
    weir__jwks_release(before);
    weir__jwks_release(after);
}

static void other_keys_are_passed_over(void **state)
{
    static const char *const others[] = {
        "{\"kty\":\"oct\",\"k\":\"c2VjcmV0\",\"kid\":\"e\",\"alg\":\"HS256\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
        "{\"kty\":\"a type that nobody has thought of yet\"}",
        "{\"kty\":\"RSA\",\"use\":\"enc\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"alg\":\"PS256\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"alg\":\"ES256\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"use\":\"\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
    };
    struct weir__jwks *keys;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(weir__jwks_parse(&keys, bytes_of(set_of(others[i], ec_jwk)), &err), 0);
        assert_int_equal(weir__jwks_count(keys), 1);
        weir__jwks_release(keys);
        refused(set_of(others[i], ""), "no key for RS256 (RSA) or ES256 (P-256) signatures, and 1");
    }
}

/* As issuers publish them: with certificates, which are longer than other strings. */
static void what_else_stands_there(void **state)
{
    char more[8192] = ",\"use\":\"sig\",\"x5t\":\"abc\",\"key_ops\":[\"verify\"],\"x5c\":[\"";
    struct weir__jwks *keys;
    char jwk[16384];
    size_t len = strlen(more);

    (void)state;
    memset(more + len, 'A', 4000);
    memcpy(more + len + 4000, "\"],\"oth\":{\"a\":[{}]}", 20);
    put_jwk(jwk, rsa, "r", more);
    snprintf(text, sizeof text, "\xef\xbb\xbf{\"issuer\":\"x\",\n \"keys\" : [%s], \"n\":[]}\n",
             jwk);
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(text), &err), 0);
    assert_int_equal(weir__jwks_count(keys), 1);
    weir__jwks_release(keys);
}

static void what_is_no_key_set(void **state)
{
    (void)state;
    refused("", "the text ends");
    refused("rubbish", "line 1, column 1");
    refused("[]", "a key set is an object");
    refused("{}", "it has no \"keys\"");
    refused("{\"keys\":{}}", "line 1, column 9: keys is not an array");
    refused("{\"keys\":[]}", "no key for RS256");
    refused("{\"keys\":[1]}", "line 1, column 10: a key is an object");
    refused("{\"keys\":[{}]}", "line 1, column 10: a key without kty");
    refused("{\"keys\":[],\"keys\":[]}", "line 1, column 12: a name is there twice");
    snprintf(text, sizeof text, "{\"keys\":[%s]} {}", rsa_jwk);
    refused(text, "something follows the end");
    snprintf(text, sizeof text, "{\"keys\":[%s", rsa_jwk);
    refused(text, "the text ends");
    refused(rsa_jwk, "it has no \"keys\""); /* a key alone */
}

static void keys_that_are_none(void **state)
{
    char jwk[8192];

    (void)state;
    put_jwk(jwk, weak, "w", "");
    refused(set_of(jwk, ec_jwk), "line 1, column 10: n has 1024 bits, fewer than 2048");
    put_jwk(jwk, ec, "e", ",\"d\":\"AAAA\"");
    refused(set_of(jwk, ""), "d makes it a private key");
    put_jwk(jwk, rsa, "r", ",\"kid\":\"r\"");
    refused(set_of(jwk, ""), "a name is there twice");
    put_jwk(jwk, rsa, "r", ",\"\\u006bid\":\"r\"");
    refused(set_of(jwk, ""), "a name is there twice");
    put_jwk(jwk, ec, "r", "");
    refused(set_of(rsa_jwk, jwk), "another key has the same kid");
    refused(set_of("{\"kty\":\"RSA\"}", ""), "an RSA key has n and e");
    refused(set_of("{\"kty\":1}", ""), "kty is not a string");
    refused(set_of("{\"kty\":\"RSA\",\"n\":\"AQ==\"}", ""), "n is not base64url");
    refused(set_of("{\"kty\":\"RSA\",\"n\":\"\"}", ""), "n is not base64url");
    refused(set_of("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"}", ""),
            "x and y have 32 bytes");
}

/* The first characters of a member are others. */
static void change(char *jwk, const char *member, const char *to)
{
    char *at = strstr(jwk, member) + strlen(member);

    memcpy(at, to, strlen(to));
}

static void numbers_that_are_no_key(void **state)
{
    char jwk[4096];

    (void)state;
    put_jwk(jwk, ec, "e", "");
    change(jwk, "\"x\":\"", "AAAAAAAAAAAA");
    refused(set_of(jwk, ""), "no point of P-256");
    put_jwk(jwk, rsa, "r", "");
    change(jwk, "\"e\":\"", "AAAB"); /* 1: every text would be its own signature */
    refused(set_of(jwk, ""), "e is no exponent");
    change(jwk, "\"e\":\"", "AQAA");
    refused(set_of(jwk, ""), "e is no exponent");
    change(jwk, "\"e\":\"", "AQAB");
    memcpy(strstr(jwk, "\",\"e\"") - 2, "AA", 2); /* an even modulus */
    refused(set_of(jwk, ""), "n and e are no RSA key");
}

static void there_are_limits(void **state)
{
    char *many = malloc(WEIR__JWKS_BYTES_MAX + 4096), *at = many;
    char kid[300] = "", jwk[4096];
    struct weir__jwks *keys;

    (void)state;
    at += sprintf(at, "{\"keys\":[");
    for (unsigned i = 0; i < WEIR__JWKS_KEYS_MAX; i++) {
        snprintf(kid, sizeof kid, "%u", i);
        put_jwk(jwk, ec, kid, "");
        at += sprintf(at, "%s%s", i ? "," : "", jwk);
    }
    strcpy(at, "]}");
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(many), &err), 0);
    assert_int_equal(weir__jwks_count(keys), WEIR__JWKS_KEYS_MAX);
    weir__jwks_release(keys);
    sprintf(at, ",%s]}", ec_jwk);
    refused(many, "there are more than 64 keys");
    memset(kid, 'k', 257);
    kid[257] = '\0';
    put_jwk(jwk, ec, kid, "");
    refused(set_of(jwk, ""), "kid is longer than 256 bytes");
    memset(many, ' ', WEIR__JWKS_BYTES_MAX + 1);
    many[WEIR__JWKS_BYTES_MAX + 1] = '\0';
    refused(many, "it is longer than 262144 bytes");
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kid_selects_a_key),
        cmocka_unit_test(without_a_kid_there_must_be_just_one),
        cmocka_unit_test(a_digest_is_of_the_key_alone),
        cmocka_unit_test(other_keys_are_passed_over),
        cmocka_unit_test(what_else_stands_there),
        cmocka_unit_test(what_is_no_key_set),
        cmocka_unit_test(keys_that_are_none),
        cmocka_unit_test(numbers_that_are_no_key),
        cmocka_unit_test(there_are_limits),
    };

    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
