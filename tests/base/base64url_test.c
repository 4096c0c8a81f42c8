#include "base/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROOM 64

static bool decode(const char *text, uint8_t out[ROOM], size_t *len)
{
    return weir__base64url_decode(weir__bytes_of(text, strlen(text)), out, ROOM, len);
}

static void texts(void **state)
{
    static const struct {
        const char *text, *bytes;
    } rows[] = {
        {"", ""},           {"Zg", "f"},          {"Zm8", "fo"},          {"Zm9v", "foo"},
        {"Zm9vYg", "foob"}, {"Zm9vYmE", "fooba"}, {"Zm9vYmFy", "foobar"}, {"_-8", "\xff\xef"}};
    uint8_t out[ROOM];
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(decode(rows[i].text, out, &len));
        assert_int_equal(len, strlen(rows[i].bytes));
        assert_memory_equal(out, rows[i].bytes, len);
    }
}

static void what_is_refused(void **state)
{
    static const char *const bad[] = {"Z",     "Zm9vY", "Zg==", "Zg=",   "Zm+v", "Zm/v", "Zm 9",
                                      "Zm9\n", "Zh",    "Zm9",  "\x80g", "Zm.v", "A"};
    uint8_t out[ROOM];
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(decode(bad[i], out, &len));
    assert_false(weir__base64url_decode(weir__bytes_of("A\0AA", 4), out, ROOM, &len));
}

static void room(void **state)
{
    uint8_t out[4] = {0, 0, 0, 7};
    size_t len;

    (void)state;
    assert_true(weir__base64url_decode(weir__bytes_of("Zm9v", 4), out, 3, &len));
    assert_false(weir__base64url_decode(weir__bytes_of("Zm9vYg", 6), out, 3, &len));
    assert_int_equal(out[3], 7);
    assert_true(WEIR__BASE64URL_BYTES(6) >= 4 && WEIR__BASE64URL_BYTES(7) >= 5);
}

/* Each character stands for its own six bits, and no other character for any. */
static void the_alphabet(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t out[ROOM];
    size_t len;

    (void)state;
    for (int c = 1; c < 256; c++) {
        char text[] = {'A', 'A', 'A', (char)c, '\0'};
        const char *digit = strchr(digits, c);
        assert_int_equal(decode(text, out, &len), digit != NULL);
        if (digit) assert_int_equal(out[2], digit - digits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(room),
        cmocka_unit_test(the_alphabet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
