#include "io/sniff.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct sample {
    const char *bytes;
    size_t len;
    enum weir__sniff is;
};

#define SAMPLE(text, is)                                                                           \
    {                                                                                              \
        text, sizeof text - 1, is                                                                  \
    }

static const struct sample samples[] = {
    SAMPLE("", WEIR__SNIFF_MORE),
    SAMPLE("A", WEIR__SNIFF_MORE),
    SAMPLE("AMQP", WEIR__SNIFF_MORE),
    SAMPLE("AMQP\0\1\0", WEIR__SNIFF_MORE),
    SAMPLE("AMQP\0\1\0\0", WEIR__SNIFF_AMQP),
    SAMPLE("AMQP\0\1\0\0\0\0\0\x2c", WEIR__SNIFF_AMQP),
    SAMPLE("AMQP\3\1\0\0", WEIR__SNIFF_AMQP_SASL),
    SAMPLE("AMQP\2\1\0\0", WEIR__SNIFF_AMQP_TLS),
    SAMPLE("AMQP\0\0\x9\1", WEIR__SNIFF_AMQP_091),
    SAMPLE("AMQP\1\1\x9\1", WEIR__SNIFF_AMQP_091),
    SAMPLE("AMQP\1\1\0\xa", WEIR__SNIFF_AMQP_091),
    SAMPLE("AMQP\1\1\x8\0", WEIR__SNIFF_AMQP_091),
    SAMPLE("AMQP\0\2\0\0", WEIR__SNIFF_AMQP_ODD),
    SAMPLE("AMQX", WEIR__SNIFF_UNKNOWN),
    SAMPLE("\x16", WEIR__SNIFF_MORE),
    SAMPLE("\x16\3", WEIR__SNIFF_MORE),
    SAMPLE("\x16\3\1", WEIR__SNIFF_TLS),
    SAMPLE("\x16\3\1\2\0\1\0\1\xfc\3\3", WEIR__SNIFF_TLS),
    SAMPLE("\x16\2\1", WEIR__SNIFF_UNKNOWN),
    SAMPLE("\x15\3\1", WEIR__SNIFF_UNKNOWN),
    SAMPLE("G", WEIR__SNIFF_MORE),
    SAMPLE("GET", WEIR__SNIFF_MORE),
    SAMPLE("GET /", WEIR__SNIFF_HTTP),
    SAMPLE("GETX", WEIR__SNIFF_UNKNOWN),
    SAMPLE("get /", WEIR__SNIFF_UNKNOWN),
    SAMPLE("HEAD / HTTP/1.1", WEIR__SNIFF_HTTP),
    SAMPLE("POST /", WEIR__SNIFF_HTTP),
    SAMPLE("PUT /", WEIR__SNIFF_HTTP),
    SAMPLE("PATCH /", WEIR__SNIFF_HTTP),
    SAMPLE("P", WEIR__SNIFF_MORE),
    SAMPLE("DELETE /", WEIR__SNIFF_HTTP),
    SAMPLE("OPTIONS *", WEIR__SNIFF_HTTP),
    SAMPLE("OPTIONS", WEIR__SNIFF_MORE),
    SAMPLE("TRACE /", WEIR__SNIFF_HTTP),
    SAMPLE("CONNECT a:1", WEIR__SNIFF_HTTP),
    SAMPLE("PRI * HTTP/2.0\r\n", WEIR__SNIFF_HTTP),
    SAMPLE("\0\0\0", WEIR__SNIFF_MORE),
    SAMPLE("\0\0\0\x23\0\x12\0\3\0\0\0\1", WEIR__SNIFF_KAFKA),
    SAMPLE("\0\0\0\x13\0\3\0\0", WEIR__SNIFF_KAFKA),
    SAMPLE("\0\0\0\x23\0\x99", WEIR__SNIFF_UNKNOWN),
    SAMPLE("\0\0\0\0\0\0", WEIR__SNIFF_UNKNOWN),
    SAMPLE("\0\1\0\0", WEIR__SNIFF_UNKNOWN),
    SAMPLE("\x10\x16\0\4MQTT", WEIR__SNIFF_UNKNOWN),
};

static void knows_the_first_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (weir__sniff(weir__bytes_of(samples[i].bytes, samples[i].len)) != samples[i].is)
            fail_msg("sample %zu '%s'", i, samples[i].bytes);
}

/* Every first byte, and eight bytes are always enough. */
static void decides_in_time(void **state)
{
    uint8_t first[WEIR__SNIFF_BYTES] = "AMQP\0\1\0\0";

    (void)state;
    for (size_t at = 0; at < sizeof first; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t changed[WEIR__SNIFF_BYTES];
            memcpy(changed, first, sizeof changed);
            changed[at] = (uint8_t)byte;
            assert_int_not_equal(weir__sniff(weir__bytes_of(changed, sizeof changed)),
                                 WEIR__SNIFF_MORE);
        }
    for (enum weir__sniff s = WEIR__SNIFF_MORE; s <= WEIR__SNIFF_UNKNOWN; s++)
        assert_non_null(weir__sniff_name(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_first_bytes),
        cmocka_unit_test(decides_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
