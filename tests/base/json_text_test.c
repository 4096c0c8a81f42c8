/* json_text_test.c - strings of JSON, character by character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"

static struct weir__json j;
static struct weir_error err;
static bool takes_nul, is_line;

/* Reads one value that is the whole text. */
static int read_whole(const char *text, size_t len)
{
    enum weir__json_token token;
    int rc;

    weir__json_init(&j, weir__bytes_of(text, len));
    j.takes_nul = takes_nul;
    j.is_line = is_line;
    err.text[0] = '\0';
    rc = weir__json_next(&j, &token, &err);
    if (rc == 0) assert_int_equal(token, WEIR__JSON_TEXT);
    return rc == 0 ? weir__json_next(&j, &token, &err) : rc;
}

static void expect_text(const char *text, size_t len, const char *is, size_t is_len)
{
    if (read_whole(text, len) != 0) fail_msg("%.*s: %s", (int)len, text, err.text);
    assert_int_equal(j.text_len, is_len);
    assert_memory_equal(j.text, is, is_len);
    assert_int_equal(j.text[is_len], '\0');
}

static void expect_refused(const char *text, size_t len, const char *why)
{
    if (read_whole(text, len) != WEIR_EINVAL) fail_msg("taken: %.*s", (int)len, text);
    if (!strstr(err.text, why)) fail_msg("%.*s: %s", (int)len, text, err.text);
}

/* In just so many bytes, whether they are too many for it or not. */
static size_t put_code(char *to, unsigned code, unsigned bytes)
{
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    to[0] = (char)(first[bytes] | code >> 6 * (bytes - 1));
    for (unsigned i = 1; i < bytes; i++)
        to[i] = (char)(0x80 | (code >> 6 * (bytes - 1 - i) & 0x3f));
    return bytes;
}

static unsigned bytes_of(unsigned code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static size_t quote(char *text, size_t len)
{
    text[0] = text[len + 1] = '"';
    return len + 2;
}

static size_t escape(char *to, unsigned code)
{
    if (code < 0x10000) return (size_t)sprintf(to, "\\u%04x", code);
    code -= 0x10000;
    return (size_t)sprintf(to, "\\u%04X\\u%04x", 0xd800 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

/* Every character of the first plane, and some of each of the others. */
static void characters_stand_for_themselves(void **state)
{
    char raw[16], text[32];

    (void)state;
    for (unsigned code = 1; code <= 0x10ffff; code += code < 0x10000 ? 1 : 0xff) {
        size_t len = put_code(raw + 1, code, bytes_of(code)), escaped = escape(text + 1, code);
        bool half = code >= 0xd800 && code < 0xe000;

        if (half) {
            expect_refused(raw, quote(raw, len), "column 2: bytes that are not UTF-8");
            expect_refused(text, quote(text, escaped), "half of a surrogate pair");
            continue;
        }
        expect_text(text, quote(text, escaped), raw + 1, len);
        if (code < ' ')
            expect_refused(raw, quote(raw, len), "a string ends with '\"' on the same line");
        else if (code != '"' && code != '\\')
            expect_text(raw, quote(raw, len), raw + 1, len);
    }
    expect_text(text, quote(text, escape(text + 1, 0x10ffff)), "\xf4\x8f\xbf\xbf", 4);
    expect_text("\"\xf4\x8f\xbf\xbf\"", 6, "\xf4\x8f\xbf\xbf", 4);
}

/* Forms that are too long, codes that are too large, and bytes that begin or go on wrongly. */
static void other_bytes_are_no_characters(void **state)
{
    static const struct {
        unsigned code, bytes;
    } rows[] = {{0x7f, 2}, {0x41, 2}, {0x7ff, 3}, {0x41, 3}, {0xffff, 4}, {0x41, 4}, {0x110000, 4}};
    char text[16];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_refused(text, quote(text, put_code(text + 1, rows[i].code, rows[i].bytes)),
                       "column 2: bytes that are not UTF-8");
    for (int c = 0x80; c < 256; c++) {
        memset(text, 0xbf, sizeof text);
        text[1] = (char)c;
        if (c < 0xc2 || c > 0xf3) expect_refused(text, quote(text, 4), "not UTF-8");
        text[2] = 'x';
        expect_refused(text, quote(text, 2), "not UTF-8");
    }
    for (unsigned bytes = 2; bytes <= 4; bytes++)
        for (unsigned at = 1; at < bytes; at++)
            for (int c = 1; c < 256; c++) {
                bool good = (c & 0xc0) == 0x80;
                put_code(text + 1, bytes == 2 ? 0xe9 : bytes == 3 ? 0x6c34 : 0x55555, bytes);
                text[1 + at] = (char)c;
                if (good)
                    assert_int_equal(read_whole(text, quote(text, bytes)), 0);
                else
                    expect_refused(text, quote(text, bytes), "not UTF-8");
            }
    memcpy(text, "\"\xc3", 2); /* what follows is no part of the text */
    text[2] = (char)0xa9;
    expect_refused(text, 2, "column 2: bytes that are not UTF-8");
}

static void escapes_are_of_few_kinds(void **state)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    static const char digits[] = "0123456789abcdefABCDEF";
    char text[] = "\"\\?\"", code[] = "\"\\u0041\"", want[8];

    (void)state;
    for (int c = 1; c < 256; c++) {
        const char *name = strchr(names, c);
        text[2] = (char)c;
        if (name)
            expect_text(text, 4, &bytes[name - names], 1);
        else
            expect_refused(text, 4, c == 'u' ? "column 4: \\u needs four" : "an unknown escape");
        for (int at = 0; at < 4; at++) {
            bool good = strchr(digits, c);
            memcpy(code + 3, "1111", 4);
            code[3 + at] = (char)c;
            if (!good) expect_refused(code, 8, "\\u needs four hexadecimal digits");
            if (good && (at != 0 || (c != 'd' && c != 'D'))) {
                unsigned is = (unsigned)strtoul(code + 3, NULL, 16);
                expect_text(code, 8, want, put_code(want, is, bytes_of(is)));
            }
        }
    }
}

static void halves_of_pairs(void **state)
{
    static const char *const bad[] = {"\"\\ud800\"",        "\"\\udbff\\ud7ff\"",
                                      "\"\\udbff\\udbff\"", "\"\\udbff\\ue000\"",
                                      "\"\\udc00\\udc00\"", "\"\\udfff\"",
                                      "\"\\ud800x\"",       "\"\\ud800\\n\""};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_refused(bad[i], strlen(bad[i]), "half of a surrogate pair");
    expect_refused("\"\\ud800\\udc0", 12, "column 13: \\u needs four hexadecimal digits, but the");
    expect_refused("\"\\ud800\\udc00", 8, "column 8: half of a surrogate pair"); /* ends there */
}

/* Lines of events take a NUL, and have columns only. */
static void lines_and_files_differ(void **state)
{
    (void)state;
    expect_refused("\"\\u0000\"", 8, "line 1, column 8: a NUL is not allowed in a string");
    takes_nul = is_line = true;
    expect_text("\"a\\u0000b\"", 10, "a\0b", 3);
    expect_refused("\"a\0\"", 4, "column 3: a string ends with '\"' on the same line");
    assert_null(strstr(err.text, "line 1"));
    takes_nul = is_line = false;
}

/* A mark is passed over when it is whole and stands at the beginning. */
static void marks(void **state)
{
    (void)state;
    expect_text("\xef\xbb\xbf\"\"", 5, "", 0);
    expect_refused("\xef\xbb\xbf", 3,
                   "line 1, column 1: a value should be here, but the text ends");
    expect_refused("\xef\xbb\xbf\"\"", 2, "line 1, column 1: a value should be here");
    expect_refused("\xef\xbb\"\"", 4, "line 1, column 1: a value should be here");
    expect_refused("\xef\xbb\xbf\xef\xbb\xbf\"\"", 8, "line 1, column 1: a value should be here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_stand_for_themselves),
        cmocka_unit_test(other_bytes_are_no_characters),
        cmocka_unit_test(escapes_are_of_few_kinds),
        cmocka_unit_test(halves_of_pairs),
        cmocka_unit_test(lines_and_files_differ),
        cmocka_unit_test(marks),
    };

    return cmocka_run_group_tests_name("json_text", tests, NULL, NULL);
}
