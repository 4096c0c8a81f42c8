/* certificates_test.c - what is inside the certificates that are made, and which others are taken
 * for ours. */
#include "io/certificate.h"

#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "certificate.h"

#define DAY_MS (24LL * 3600 * 1000)
#define NOW_MS 1700000000000
#define UNTIL_MS (NOW_MS + 397 * DAY_MS)

static EVP_PKEY *ca_key, *key;
static X509 *ca;
static struct weir_error err;

static int make_authority(void **state)
{
    (void)state;
    return weir__key_make(&ca_key, NULL) || weir__key_make(&key, NULL) ||
           weir__certificate_make_authority(&ca, ca_key, NOW_MS, NOW_MS + 3650 * DAY_MS, NULL);
}

static int free_authority(void **state)
{
    (void)state;
    X509_free(ca);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    return 0;
}

/* Made in the place of `before`, which is freed. */
static X509 *make_server(const char *address, X509 *before)
{
    X509 *cert;

    if (weir__certificate_make_server(&cert, key, ca, ca_key, address, before, NOW_MS, UNTIL_MS,
                                      &err) != 0)
        fail_msg("%s", err.text);
    X509_free(before);
    return cert;
}

/* "DNS:localhost, IP Address:127.0.0.1, ..." */
static void names_of(X509 *cert, char *to, size_t room)
{
    int at = X509_get_ext_by_NID(cert, NID_subject_alt_name, -1), len;
    BIO *text = BIO_new(BIO_s_mem());

    assert_true(at >= 0);
    assert_true(X509V3_EXT_print(text, X509_get_ext(cert, at), 0, 0));
    len = BIO_read(text, to, (int)room - 1);
    to[len > 0 ? len : 0] = '\0';
    BIO_free(text);
}

#define USUAL "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1"

/* One after the other, each keeps what the one before it named. */
static void a_server_keeps_its_addresses(void **state)
{
    static const struct {
        const char *address, *names;
    } rows[] = {
        {NULL, USUAL},
        {"127.0.0.1", USUAL},
        {"127.0.0.9", USUAL ", IP Address:127.0.0.9"},
        {"127.0.0.9", USUAL ", IP Address:127.0.0.9"},
        {"127.5.0.1", USUAL ", IP Address:127.5.0.1, IP Address:127.0.0.9"},
        {"127.0.6.1", USUAL ", IP Address:127.0.6.1, IP Address:127.5.0.1, IP Address:127.0.0.9"},
        {NULL, USUAL ", IP Address:127.0.6.1, IP Address:127.5.0.1, IP Address:127.0.0.9"},
    };
    X509 *cert = NULL;
    char names[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cert = make_server(rows[i].address, cert);
        names_of(cert, names, sizeof names);
        assert_string_equal(names, rows[i].names);
        assert_int_equal(weir__certificate_check_server(cert, ca, &err), 0);
    }
    X509_free(cert);
}

/* The newest are named, as many as there is room for. */
static void addresses_have_a_limit(void **state)
{
    X509 *cert = NULL;
    char address[32];

    (void)state;
    for (int i = 100; i < 200; i++) {
        snprintf(address, sizeof address, "127.255.255.%d", i);
        cert = make_server(address, cert);
    }
    for (int i = 100; i < 200; i++) {
        snprintf(address, sizeof address, "127.255.255.%d", i);
        assert_int_equal(weir__certificate_has_address(cert, address), i >= 200 - 24);
    }
    assert_int_equal(weir__certificate_check_server(cert, ca, &err), 0);
    X509_free(cert);
}

static void certificates_are_as_they_should_be(void **state)
{
    X509 *cert = make_server(NULL, NULL), *other = make_server(NULL, NULL);
    const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);
    char name[64], expected[64];
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len;

    (void)state;
    assert_int_equal(X509_get_version(cert), 2); /* that is 3 */
    assert_int_equal(weir__certificate_from_ms(cert), NOW_MS - DAY_MS);
    assert_int_equal(weir__certificate_until_ms(cert), UNTIL_MS);
    assert_int_equal(ASN1_STRING_length(serial), 16);
    assert_int_equal(ASN1_STRING_get0_data(serial)[0] & 0xc0, 0x40);
    assert_int_equal(ASN1_STRING_type(serial), V_ASN1_INTEGER); /* not a negative one */
    assert_int_not_equal(ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(other)), 0);
    assert_true(weir__certificate_name(cert, name, sizeof name));
    assert_string_equal(name, "localhost");
    assert_int_equal(X509_check_issued(ca, cert), X509_V_OK);
    assert_true(X509_pubkey_digest(ca, EVP_sha256(), digest, &len));
    snprintf(expected, sizeof expected, "Weir local authority %02X%02X%02X%02X", digest[0],
             digest[1], digest[2], digest[3]);
    assert_true(weir__certificate_name(ca, name, sizeof name));
    assert_string_equal(name, expected);
    X509_free(cert);
    X509_free(other);
}

/* It is not taken for one that is valid. */
static void a_time_that_is_none_is_long_past(void **state)
{
    X509 *cert = make_server(NULL, NULL);

    (void)state;
    assert_true(ASN1_STRING_set(X509_getm_notAfter(cert), "soon", 4));
    assert_int_equal(weir__certificate_until_ms(cert), 0);
    X509_free(cert);
}

static void a_fingerprint_fits_its_room(void **state)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char whole[100] = "", text[100];
    unsigned len;

    (void)state;
    assert_true(X509_digest(ca, EVP_sha256(), digest, &len));
    for (unsigned i = 0; i < len; i++)
        snprintf(whole + strlen(whole), 4, "%s%02X", i ? ":" : "", digest[i]);
    assert_int_equal(strlen(whole), 95);
    for (size_t room = 1; room <= 96; room++) {
        memset(text, '?', sizeof text);
        weir__certificate_fingerprint(ca, text, room);
        assert_int_equal(text[room], '?');
        assert_true(strlen(text) < room);
        assert_memory_equal(text, whole, strlen(text));
    }
    assert_string_equal(text, whole);
}

/* As PEM and back; what is something else, or needs a password, is refused without a question. */
static void keys_and_certificates_are_read_from_pem(void **state)
{
    BIO *pem, *locked = BIO_new(BIO_s_mem());
    EVP_PKEY *again;
    X509 *cert;

    (void)state;
    assert_int_equal(weir__key_print(&pem, key, &err), 0);
    assert_int_equal(weir__certificate_parse(&cert, weir__pem_bytes(pem), &err), WEIR_ECORRUPT);
    assert_null(cert);
    assert_string_equal(err.text, "not a certificate: no start line");
    assert_int_equal(weir__key_parse(&again, weir__pem_bytes(pem), &err), 0);
    assert_int_equal(EVP_PKEY_eq(key, again), 1);
    EVP_PKEY_free(again);
    BIO_free(pem);
    assert_int_equal(weir__certificate_print(&pem, ca, &err), 0);
    assert_int_equal(weir__key_parse(&again, weir__pem_bytes(pem), &err), WEIR_ECORRUPT);
    assert_null(again);
    assert_int_equal(strncmp(err.text, "not a private key: ", 19), 0);
    assert_int_equal(weir__certificate_parse(&cert, weir__pem_bytes(pem), &err), 0);
    assert_int_equal(X509_cmp(cert, ca), 0);
    X509_free(cert);
    BIO_free(pem);
    assert_true(
        PEM_write_bio_PKCS8PrivateKey(locked, key, EVP_aes_256_cbc(), "word", 4, NULL, NULL));
    assert_int_equal(weir__key_parse(&again, weir__pem_bytes(locked), &err), WEIR_ECORRUPT);
    assert_int_equal(ERR_peek_error(), 0);
    BIO_free(locked);
}

/* The same issuer, but not a server, or not here. Time is not looked at. */
static void only_a_server_of_this_machine_is_ours(void **state)
{
    static const struct {
        const char *names, *usage;
        long days;
        bool good;
    } rows[] = {
        {"DNS:localhost", NULL, 1, true},
        {"DNS:localhost", "serverAuth", -1, true},
        {"DNS:localhost", "clientAuth", 1, false},
        {"IP:127.0.0.1", NULL, 1, false},
    };
    struct identity issuer = {.key = ca_key, .certificate = ca};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct identity who;
        X509V3_CTX context;
        X509_EXTENSION *id;
        int rc;
        identity_make(&who, "somebody", rows[i].names, &issuer, rows[i].days);
        X509V3_set_ctx(&context, ca, who.certificate, NULL, NULL, 0);
        for (int k = 0; k < 2; k++) { /* which strictness asks for */
            id = X509V3_EXT_conf_nid(NULL, &context,
                                     k ? NID_authority_key_identifier : NID_subject_key_identifier,
                                     k ? "keyid:always" : "hash");
            assert_true(id && X509_add_ext(who.certificate, id, -1));
            X509_EXTENSION_free(id);
        }
        if (rows[i].usage) add_extension(who.certificate, NID_ext_key_usage, rows[i].usage);
        assert_true(X509_sign(who.certificate, ca_key, EVP_sha256()));
        rc = weir__certificate_check_server(who.certificate, ca, &err);
        if (rc != (rows[i].good ? 0 : WEIR_ECORRUPT)) fail_msg("row %zu: %d %s", i, rc, err.text);
        assert_int_equal(weir__certificate_check_authority(who.certificate, &err), WEIR_ECORRUPT);
        assert_string_equal(err.text, "it is not an authority's certificate");
        identity_free(&who);
    }
    assert_int_equal(weir__certificate_check_authority(ca, &err), 0);
}

/* The first cause is told, and none is left for the next who asks. */
static void a_failure_names_its_cause(void **state)
{
    BIO *none;

    (void)state;
    ERR_clear_error();
    assert_int_equal(weir__ssl_fail(&err, WEIR_EIO, "trying"), WEIR_EIO);
    assert_string_equal(err.text, "trying: no reason given");
    none = BIO_new_file("/nowhere/at/all", "r");
    assert_null(none);
    assert_int_equal(weir__ssl_fail(&err, WEIR_EIO, "trying"), WEIR_ENOTFOUND);
    assert_string_equal(err.text, "trying: No such file or directory");
    assert_int_equal(ERR_peek_error(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_keeps_its_addresses),
        cmocka_unit_test(addresses_have_a_limit),
        cmocka_unit_test(certificates_are_as_they_should_be),
        cmocka_unit_test(a_time_that_is_none_is_long_past),
        cmocka_unit_test(a_fingerprint_fits_its_room),
        cmocka_unit_test(keys_and_certificates_are_read_from_pem),
        cmocka_unit_test(only_a_server_of_this_machine_is_ours),
        cmocka_unit_test(a_failure_names_its_cause),
    };

    return cmocka_run_group_tests_name("certificates", tests, make_authority, free_authority);
}
