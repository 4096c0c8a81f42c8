/* Key sets: which are taken, which keys in them are used, and what is said about the others. */
#include <openssl/sha.h>
#include <openssl/x509.h>

#include "hub/issuer_world.h"
#include "support/allocs.h"

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
    struct weir__jwks *keys = (struct weir__jwks *)text;

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
    static const uint8_t none[WEIR__JWKS_DIGEST_BYTES];
    uint8_t der[1024], *at = der, whole[SHA256_DIGEST_LENGTH];
    struct weir__jwks *before, *after;
    char renamed[4096];

    (void)state;
    put_jwk(renamed, rsa, "another", ",\"use\":\"sig\",\"alg\":\"RS256\"");
    assert_int_equal(weir__jwks_parse(&before, bytes_of(set_of(rsa_jwk, "")), &err), 0);
    assert_int_equal(weir__jwks_parse(&after, bytes_of(set_of(ec_jwk, renamed)), &err), 0);
    assert_true(weir__jwks_has(after, weir__jwks_find(before, WEIR__JWS_RS256, "r")->digest));
    assert_false(weir__jwks_has(before, weir__jwks_find(after, WEIR__JWS_ES256, "e")->digest));
    assert_false(weir__jwks_has(before, none));
    assert_true(i2d_PUBKEY(rsa, &at) > 0);
    SHA256(der, (size_t)(at - der), whole);
    assert_true(weir__jwks_has(before, whole));
    weir__jwks_release(before);
    weir__jwks_release(after);
}

static void the_last_release_frees(void **state)
{
    struct weir__jwks *keys;

    (void)state;
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(set_of(rsa_jwk, ec_jwk)), &err), 0);
    assert_ptr_equal(weir__jwks_retain(keys), keys);
    weir__jwks_release(keys);
    assert_int_equal(EVP_PKEY_eq(weir__jwks_find(keys, WEIR__JWS_RS256, "r")->public_key, rsa), 1);
    weir__jwks_release(keys);
    weir__jwks_release(NULL);
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
        "{\"kty\":\"OKP\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"enc\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":\"RS256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
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
    refused(set_of("{\"kty\":\"RSA\",\"n\":\"AQAB\"}", ""), "an RSA key has n and e");
    refused(set_of("{\"kty\":\"RSA\",\"e\":\"AQAB\"}", ""), "an RSA key has n and e");
    refused(set_of("{\"kty\":\"RSA\",\"n\":\"AQ==\"}", ""), "n is not base64url");
    refused(set_of("{\"kty\":\"RSA\",\"n\":\"\"}", ""), "n is not base64url");
    refused(set_of("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"}", ""),
            "x and y have 32 bytes");
}

static void members_are_strings(void **state)
{
    static const char *const names[] = {"kty", "crv", "use", "alg", "kid", "n", "e", "x", "y"};
    char jwk[64], words[64];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(jwk, sizeof jwk, "{\"%s\":1}", names[i]);
        snprintf(words, sizeof words, "line 1, column %zu: %s is not a string",
                 14 + strlen(names[i]), names[i]);
        refused(set_of(jwk, ""), words);
    }
}

/* Both coordinates have their length; a number has its limit. */
static void lengths_of_numbers(void **state)
{
    char jwk[4096], digits[2 * WEIR__JWK_NUMBER_BYTES], *at;
    uint8_t number[WEIR__JWK_NUMBER_BYTES + 1] = {0};
    struct weir__jwks *keys;

    (void)state;
    for (int i = 0; i < 2; i++) {
        put_jwk(jwk, ec, "e", "");
        at = strstr(jwk, i ? "\"y\":\"" : "\"x\":\"") + 5;
        memmove(at + 4, at + 43, strlen(at + 43) + 1);
        refused(set_of(jwk, ""), "x and y have 32 bytes each on P-256");
    }
    put_base64url(digits, number, sizeof number);
    snprintf(jwk, sizeof jwk, "{\"kty\":\"RSA\",\"n\":\"%s\"}", digits);
    refused(set_of(jwk, ""), "n is not base64url of 1 to 1024 bytes");
    put_base64url(digits, number, sizeof number - 1);
    snprintf(jwk, sizeof jwk, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"AQAB\"}", digits);
    refused(set_of(jwk, ""), "n has 0 bits, fewer than 2048, which is not safe");
    put_jwk(jwk, rsa, "r", "");
    at = strstr(jwk, "\"e\":\"") + 5;
    strcpy(at, "AQAAAAAAAAAB\"}"); /* nine bytes */
    refused(set_of(jwk, ""), "e is no exponent of an RSA key");
    strcpy(at, "AQAAAAAAAAE\"}"); /* eight */
    if (weir__jwks_parse(&keys, bytes_of(set_of(jwk, "")), &err) != 0) fail_msg("%s", err.text);
    assert_int_equal(weir__jwks_count(keys), 1);
    weir__jwks_release(keys);
    strcpy(at, "Aw\"}"); /* one: some old keys have three */
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(set_of(jwk, "")), &err), 0);
    weir__jwks_release(keys);
}

/* Wherever the text ends, that is what is said. */
static void cut_anywhere(void **state)
{
    char whole[TEXT_BYTES], place[64];

    (void)state;
    snprintf(whole, sizeof whole, "{\"a\":[{\"b\":1}],\"keys\":[{\"c\":[0],%s]}", ec_jwk + 1);
    for (size_t len = strlen(whole) - 1; len > 0; len--) {
        whole[len] = '\0';
        refused(whole, ", but the text ends");
        snprintf(place, sizeof place, "line 1, column %zu: ", len + 1);
        refused(whole, place);
    }
}

/* One allocation is for the set, one for its strings. */
static void memory_runs_out(void **state)
{
    struct weir__jwks *keys;
    int rc;

    (void)state;
    set_of(rsa_jwk, ec_jwk);
    for (uint64_t at = 1; at <= 2; at++) {
        allocs_fail(at);
        rc = weir__jwks_parse(&keys, bytes_of(text), &err);
        allocs_fail(0);
        assert_int_equal(rc, WEIR_ENOMEM);
        assert_null(keys);
        assert_string_equal(err.text, "out of memory for keys");
    }
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
    kid[256] = '\0';
    put_jwk(jwk, ec, kid, "");
    set_of(jwk, "");
    memset(many, ' ', WEIR__JWKS_BYTES_MAX);
    memcpy(many, text, strlen(text));
    many[WEIR__JWKS_BYTES_MAX] = '\0';
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(many), &err), 0);
    assert_non_null(weir__jwks_find(keys, WEIR__JWS_ES256, kid));
    weir__jwks_release(keys);
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
        cmocka_unit_test(the_last_release_frees),
        cmocka_unit_test(other_keys_are_passed_over),
        cmocka_unit_test(what_else_stands_there),
        cmocka_unit_test(what_is_no_key_set),
        cmocka_unit_test(keys_that_are_none),
        cmocka_unit_test(members_are_strings),
        cmocka_unit_test(lengths_of_numbers),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(numbers_that_are_no_key),
        cmocka_unit_test(there_are_limits),
    };

    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
