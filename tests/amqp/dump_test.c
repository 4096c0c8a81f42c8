#include "peer.h"

static void assert_dump(const char *text, const char *want)
{
    struct weir__bytes body = peer_body(text), frame;
    uint8_t *to = malloc(WEIR__AMQP_FRAME_HEAD + body.len);
    char line[512];
    size_t len;

    assert_non_null(to);
    weir__amqp_frame_head(to, (uint32_t)(8 + body.len), WEIR__AMQP_FRAME_AMQP, 3);
    if (body.len) memcpy(to + 8, body.at, body.len);
    frame = weir__bytes_of(to, 8 + body.len);
    len = weir__amqp_dump(frame, line, sizeof line);
    assert_string_equal(line, want);
    assert_int_equal(len, strlen(line));
    free(to);
    sample_free(body);
}

static void frames_are_one_line(void **state)
{
    (void)state;
    assert_dump("", "ch=3 empty");
    assert_dump("18: 40", "ch=3 close");
    assert_dump("14: 43 52 05 a0 02 0aff 43 42 42 | 'secret'",
                "ch=3 transfer handle=0 delivery-id=5 delivery-tag=x0aff message-format=0 "
                "settled=false more=false resume=false aborted=false batchable=false payload=6");
    assert_dump("16: 43 41 00 53 1d c0 09 02 a3 02 'ab' a1 02 'c' 0a",
                "ch=3 detach handle=0 closed=true error=error(condition=ab "
                "description=\"c\\x0a\")");
    assert_dump("11: 60 0007 43 43 43",
                "ch=3 begin remote-channel=7 next-outgoing-id=0 incoming-window=0 "
                "outgoing-window=0 handle-max=4294967295");
}

static void secrets_are_not_shown(void **state)
{
    struct weir__bytes frame =
        sample_hex("00000025 02 01 0000 00 53 41 c0 18 02 a3 05 'PLAIN' a0 0e "
                   "00 'user' 00 'password'");
    char line[200];

    (void)state;
    weir__amqp_dump(frame, line, sizeof line);
    assert_string_equal(line, "sasl-init mechanism=PLAIN initial-response=(14 bytes)");
    sample_free(frame);
}

static void nothing_is_too_broken_or_too_long(void **state)
{
    struct weir__bytes b = sample_hex("00000010 02 00 0000 00 53 18 c0 ff 01 40 40");
    char line[40];

    (void)state;
    for (size_t len = 0; len <= b.len; len++) {
        struct weir__bytes part = sample_copy(weir__bytes_of(b.at, len));
        for (size_t room = 1; room <= sizeof line; room++) {
            size_t n = weir__amqp_dump(part, line, room);
            assert_true(n < room && line[n] == '\0');
        }
        sample_free(part);
    }
    weir__amqp_dump(b, line, sizeof line);
    assert_non_null(strstr(line, "broken"));
    sample_free(b);
    b = sample_hex("'AMQP' 03 01 00 00");
    weir__amqp_dump(b, line, sizeof line);
    assert_string_equal(line, "header AMQP 3 1.0.0");
    sample_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_one_line),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(nothing_is_too_broken_or_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
