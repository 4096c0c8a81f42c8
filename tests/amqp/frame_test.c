#include "amqp/frame.h"

#include "sample.h"

#define MAX 1024

static void frames_are_whole_or_part_or_broken(void **state)
{
    static const struct {
        enum weir__amqp_framing want;
        const char *hex;
    } rows[] = {
        {WEIR__AMQP_FRAME_WHOLE, "00000008 02 00 0000"},
        {WEIR__AMQP_FRAME_WHOLE, "0000000a 02 01 0007 aabb"},
        {WEIR__AMQP_FRAME_WHOLE, "0000000d 03 00 0001 01020304 aa ff"}, /* extended, and more */
        {WEIR__AMQP_FRAME_WHOLE, "0000000c 03 00 0001 01020304"},
        {WEIR__AMQP_FRAME_PART, ""},
        {WEIR__AMQP_FRAME_PART, "000000"},
        {WEIR__AMQP_FRAME_PART, "00000008 02 00 00"},
        {WEIR__AMQP_FRAME_PART, "00000400 02 00 0000"},
        {WEIR__AMQP_FRAME_BROKEN, "00000007"},
        {WEIR__AMQP_FRAME_BROKEN, "00000000 02 00 0000"},
        {WEIR__AMQP_FRAME_BROKEN, "00000401"},
        {WEIR__AMQP_FRAME_BROKEN, "ffffffff 02 00 0000"},
        {WEIR__AMQP_FRAME_BROKEN, "00000008 01 00 0000"},
        {WEIR__AMQP_FRAME_BROKEN, "00000008 00 00 0000"},
        {WEIR__AMQP_FRAME_BROKEN, "0000000b 03 00 0000 010203"},
        {WEIR__AMQP_FRAME_BROKEN, "00000010 ff 00 0000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].hex);
        struct weir__amqp_frame f;
        const char *why = NULL;

        assert_int_equal(weir__amqp_frame_read(b, MAX, &f, &why), rows[i].want);
        assert_int_equal(rows[i].want == WEIR__AMQP_FRAME_BROKEN, why != NULL);
        sample_free(b);
    }
}

static void the_body_begins_behind_the_extended_header(void **state)
{
    struct weir__bytes b = sample_hex("0000000d 03 00 0102 01020304 aa");
    struct weir__amqp_frame f = {0};
    const char *why;

    (void)state;
    assert_int_equal(weir__amqp_frame_read(b, MAX, &f, &why), WEIR__AMQP_FRAME_WHOLE);
    assert_bytes(f.body, weir__bytes_of("\xaa", 1));
    assert_int_equal(f.channel, 0x0102);
    sample_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_whole_or_part_or_broken),
        cmocka_unit_test(the_body_begins_behind_the_extended_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
