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

/* The opening of a peer with a map of these pairs as its properties. */
static void assert_properties(const char *pairs, unsigned count, const char *want)
{
    struct weir__bytes b = sample_hex(pairs);
    char text[512], line[512];

    snprintf(text, sizeof text, "10: a1 01 'p' 40 40 40 40 40 40 40 40 c1 %02x %02x %s",
             (unsigned)b.len + 1, 2 * count, pairs);
    snprintf(
        line, sizeof line,
        "ch=3 open container-id=\"p\" max-frame-size=4294967295 channel-max=65535 idle-time-out=0 "
        "properties={%s}",
        want);
    assert_dump(text, line);
    sample_free(b);
}

/* Every type, and eight pairs of a map but not nine. */
static void values_are_shown_by_their_type(void **state)
{
    (void)state;
    assert_properties("a3 01 'a' 40 a3 01 'b' 41 a3 01 'c' 51 80 a3 01 'd' 61 fffe a3 01 'e' 54 fd "
                      "a3 01 'f' 55 fc a3 01 'g' 83 ffffffff ffffffff a3 01 'h' 72 3fc00000 "
                      "a3 01 'i' 82 c0040000 00000000",
                      9, "a=null,b=true,c=-128,d=-2,e=-3,f=-4,g=-1,h=1.5..+1");
    assert_properties("a3 01 'a' 42 a3 01 'b' 82 c0040000 00000000 "
                      "a3 01 'c' 98 00112233 44556677 8899aabb ccddeeff a3 01 'd' 74 01020304 "
                      "a3 01 'e' 50 ff a3 01 'f' 60 ffff a3 01 'g' 73 00000041 a3 01 'h' a0 01 0f",
                      8,
                      "a=false,b=-2.5,c=x00112233445566778899aabbccddeeff,d=x01020304,e=255,"
                      "f=65535,g=65,h=x0f");
    assert_properties("a3 01 'a' 84 01020304 05060708 "
                      "a3 01 'b' 94 00112233 44556677 8899aabb ccddeeff",
                      2, "a=x0102030405060708,b=x00112233445566778899aabbccddeeff");
}

#define ERROR " 00 53 1d c0 05 01 a3 02 'ab'"

/* Eight items but not nine, and four levels but not five. */
static void items_and_levels_are_bounded(void **state)
{
    (void)state;
    assert_properties("a3 01 'v' c0 09 08 43 43 43 43 43 43 43 43", 1, "v=[0,0,0,0,0,0,0,0]");
    assert_properties("a3 01 'v' c0 0b 0a 43 43 43 43 43 43 43 43 43 43", 1,
                      "v=[0,0,0,0,0,0,0,0..+2]");
    assert_properties("a3 01 'v' e0 06 02 a3 01 'x' 01 'y'", 1, "v=[x,y]");
    assert_properties("a3 01 'v' c0 08 01 c0 05 01 c0 02 01 43", 1, "v=[[[0]]]");
    assert_properties("a3 01 'v' c0 0b 01 c0 08 01 c0 05 01 c0 02 01 43", 1, "v=[[[[..]]]]");
    assert_properties("a3 01 'v' 00 a3 01 'd' a1 01 't'", 1, "v=@d:\"t\"");
    assert_properties("a3 01 'v' c0 0e 01 c0 0b 01" ERROR, 1, "v=[[error(condition=ab)]]");
    assert_properties("a3 01 'v' c0 11 01 c0 0e 01 c0 0b 01" ERROR, 1,
                      "v=[[[error(condition=..)]]]");
    assert_properties("a3 01 'v' c0 0b 01 c0 08 01 00 a3 01 'd' a1 01 't'", 1, "v=[[@d:\"t\"]]");
    assert_properties("a3 01 'v' c0 0e 01 c0 0b 01 c0 08 01 00 a3 01 'd' a1 01 't'", 1,
                      "v=[[[@..:..]]]");
}

/* What does not print is escaped; 96 bytes of text and 48 of others are shown, and how many more. */
static void text_and_bytes_are_bounded(void **state)
{
    char text[97 + 1] = "", hex[98 + 1] = "", pairs[400], want[400];

    (void)state;
    assert_properties("a3 03 '\" \\' a1 0a 'a\" ~\\' 1f7f80 00 'z'", 1,
                      "\" \\x5c=\"a\\x22 ~\\x5c\\x1f\\x7f\\x80\\x00z\"");
    memset(text, 't', sizeof text - 1);
    memset(hex, '1', sizeof hex - 1);
    assert_properties("a3 01 'v' a0 21 111111111111111111111111111111111111111111111111111111111111"
                      "111122",
                      1, "v=x111111111111111111111111111111111111111111111111111111111111111122");
    for (int more = 0; more < 2; more++) {
        snprintf(pairs, sizeof pairs, "a3 01 'v' a1 %02x '%.*s'", 96 + more, 96 + more, text);
        snprintf(want, sizeof want, "v=\"%.96s%s\"", text, more ? "..+1" : "");
        assert_properties(pairs, 1, want);
        snprintf(pairs, sizeof pairs, "a3 01 'v' a0 %02x %.*s", 48 + more, 96 + 2 * more, hex);
        snprintf(want, sizeof want, "v=x%.96s%s", hex, more ? "..+1" : "");
        assert_properties(pairs, 1, want);
    }
}

static void assert_raw(const char *hex, const char *want)
{
    struct weir__bytes frame = sample_hex(hex);
    char line[200];

    size_t len = weir__amqp_dump(frame, line, sizeof line);
    assert_string_equal(line, want);
    assert_int_equal(len, strlen(want));
    sample_free(frame);
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    assert_raw("00000029 02 01 0000 00 53 41 c0 1c 03 a3 05 'PLAIN' a0 0e "
               "00 'user' 00 'password' a1 02 'eh'",
               "sasl-init mechanism=PLAIN initial-response=(14 bytes) hostname=\"eh\"");
    assert_raw("00000014 02 01 0000 00 53 43 c0 07 01 a0 04 'word'",
               "sasl-response response=(4 bytes)");
}

static void the_broken_is_shown_as_it_is(void **state)
{
    (void)state;
    assert_raw("00000009 02 00 0001", "broken (part of a frame) x0000000902000001");
    assert_raw("", "broken (part of a frame) x");
    assert_raw("'AMQP' 00", "broken (part of a frame) x414d515000");
    assert_raw("0000000c 02 00 0001 00 53 18 c1", "ch=1 broken (byte 4: ends too early) x005318c1");
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
        cmocka_unit_test(values_are_shown_by_their_type),
        cmocka_unit_test(items_and_levels_are_bounded),
        cmocka_unit_test(text_and_bytes_are_bounded),
        cmocka_unit_test(the_broken_is_shown_as_it_is),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(nothing_is_too_broken_or_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
