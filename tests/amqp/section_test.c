/* section_test.c - the sections of a message by what names them. */
#include "sample.h"

/* Every section by its symbol; as by its code. */
static void sections_have_symbols(void **state)
{
    static const char *const rows[][2] = {
        {"00 a3 10 'amqp:header:list' 45", "00 53 70 45"},
        {"00 a3 1d 'amqp:delivery-annotations:map' c1 01 00", "00 53 71 c1 01 00"},
        {"00 a3 1c 'amqp:message-annotations:map' c1 01 00", "00 53 72 c1 01 00"},
        {"00 a3 14 'amqp:properties:list' 45", "00 53 73 45"},
        {"00 a3 1f 'amqp:application-properties:map' c1 01 00", "00 53 74 c1 01 00"},
        {"00 a3 10 'amqp:data:binary' a0 00", "00 53 75 a0 00"},
        {"00 a3 17 'amqp:amqp-sequence:list' 45", "00 53 76 45"},
        {"00 a3 11 'amqp:amqp-value:*' 40", "00 53 77 40"},
        {"00 a3 0f 'amqp:footer:map' c1 01 00", "00 53 78 c1 01 00"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes symbol, code = sample_hex(rows[i][1]);
        struct weir__amqp_message by_symbol, by_code;

        symbol = sample_hex(rows[i][0]);
        assert_int_equal(weir__amqp_message_scan(&by_symbol, symbol, WEIR__AMQP_DEEP, NULL), 0);
        assert_int_equal(weir__amqp_message_scan(&by_code, code, WEIR__AMQP_DEEP, NULL), 0);
        assert_int_equal(by_symbol.there, by_code.there);
        sample_free(symbol);
        sample_free(code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sections_have_symbols)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
