#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_code_has_a_row(void **state)
{
    (void)state;
#define WEIR_X(name, value, class, text)                                                           \
    assert_string_equal(weir_error_name(value), #name);                                            \
    assert_string_equal(weir_error_text(value), text);                                             \
    assert_int_equal(weir_error_class(value), WEIR_CLASS_##class);
    WEIR_ERRORS(WEIR_X)
#undef WEIR_X
}

static void unknown_codes_have_one_too(void **state)
{
    (void)state;
    assert_string_equal(weir_error_name(-9999), "WEIR_E?");
    assert_string_equal(weir_error_text(1), "unknown error code");
    assert_false(weir__error_known(1));
    assert_true(weir__error_known(WEIR_EIO));
    assert_int_equal(weir_error_class(1), WEIR_CLASS_FATAL);
}

static void text_gathers_on_the_way_up(void **state)
{
    struct weir_error err = {0};

    (void)state;
    assert_int_equal(weir__fail_errno(&err, ENOSPC, "write"), WEIR_ENOSPACE);
    assert_int_equal(weir__wrap(&err, WEIR_ENOSPACE, "segment %05d", 42), WEIR_ENOSPACE);
    assert_int_equal(weir__wrap(&err, WEIR_EFAILED, "opening hub '%s'", "homes"), WEIR_EFAILED);
    assert_int_equal(err.code, WEIR_EFAILED);
    assert_string_equal(err.text,
                        "opening hub 'homes': segment 00042: write: No space left on device");
}

static void null_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(weir__fail(NULL, WEIR_EBUSY, "%s", "x"), WEIR_EBUSY);
    assert_int_equal(weir__wrap(NULL, WEIR_EBUSY, "%s", "x"), WEIR_EBUSY);
    assert_int_equal(weir__fail_errno(NULL, EIO, "read"), WEIR_EIO);
}

/* However long the parts are, the text ends with a NUL inside its array and the widest context
 * stays readable. */
static void long_texts_are_cut(void **state)
{
    struct {
        struct weir_error err;
        char fence[8];
    } box;
    char wide[2 * WEIR_ERROR_TEXT_BYTES];

    (void)state;
    for (size_t len = WEIR_ERROR_TEXT_BYTES - 8; len < WEIR_ERROR_TEXT_BYTES + 8; len++) {
        memset(&box, '#', sizeof box);
        memset(wide, 'w', len);
        wide[len] = '\0';
        weir__fail(&box.err, WEIR_EIO, "%s", wide);
        assert_non_null(memchr(box.err.text, '\0', sizeof box.err.text));
        weir__wrap(&box.err, WEIR_EIO, "context");
        assert_memory_equal(box.err.text, "context: www", 12);
        weir__wrap(&box.err, WEIR_EIO, "%s", wide);
        assert_non_null(memchr(box.err.text, '\0', sizeof box.err.text));
        assert_memory_equal(box.fence, "########", 8);
    }
}

/* What has run out for the moment is named, and what helps; then trying again may help, too. */
static void errno_maps_to_codes(void **state)
{
    static const struct {
        int errnum, code;
        const char *hint;
    } rows[] = {
        {ENOSPC, WEIR_ENOSPACE, ""},
        {EDQUOT, WEIR_ENOSPACE, ""},
        {ENOENT, WEIR_ENOTFOUND, ""},
        {EEXIST, WEIR_EEXIST, ""},
        {ENOMEM, WEIR_ENOMEM, ""},
        {EIO, WEIR_EIO, ""},
        {EPERM, WEIR_EIO, ""},
        {EBUSY, WEIR_EBUSY, ""},
        {EMFILE, WEIR_EBUSY, " (this process has no file descriptor left: raise ulimit -n)"},
        {ENFILE, WEIR_EBUSY, " (the machine has no file descriptor left: raise fs.file-max)"},
        {EAGAIN, WEIR_EBUSY, " (the machine is short of it for now: threads, memory or locks)"},
        {ELOOP, WEIR_EIO, " (it is a symbolic link, and those are not followed here)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_error err;
        char text[WEIR_ERROR_TEXT_BYTES];
        assert_int_equal(weir__fail_errno(&err, rows[i].errnum, "call"), rows[i].code);
        snprintf(text, sizeof text, "call: %s%s", strerror(rows[i].errnum), rows[i].hint);
        assert_string_equal(err.text, text);
        assert_int_equal(err.code, rows[i].code);
    }
    assert_int_equal(weir_error_class(WEIR_EBUSY), WEIR_CLASS_RETRY);
}

/* The context is said in full where it fits; of what it is put before, as much as fits behind. */
static void a_context_that_just_fits(void **state)
{
    char wide[WEIR_ERROR_TEXT_BYTES];

    (void)state;
    for (size_t len = WEIR_ERROR_TEXT_BYTES - 5; len < WEIR_ERROR_TEXT_BYTES; len++) {
        struct weir_error err = {WEIR_EIO, "why"};
        size_t behind = WEIR_ERROR_TEXT_BYTES - 1 - len;
        memset(wide, 'w', len);
        wide[len] = '\0';
        weir__wrap(&err, WEIR_EBUSY, "%s", wide);
        assert_memory_equal(err.text, wide, len);
        if (behind < 3) behind = 0; /* ": " alone says nothing */
        assert_int_equal(strlen(err.text), len + behind);
        assert_memory_equal(err.text + len, ": why", behind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_row),       cmocka_unit_test(unknown_codes_have_one_too),
        cmocka_unit_test(text_gathers_on_the_way_up), cmocka_unit_test(null_is_allowed),
        cmocka_unit_test(long_texts_are_cut),         cmocka_unit_test(errno_maps_to_codes),
        cmocka_unit_test(a_context_that_just_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
