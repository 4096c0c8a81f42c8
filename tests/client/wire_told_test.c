/* What a server tells of itself when it is met: whether it is administered, and where. */
#include "client/hasty.h"

#include "client/http_server.h"

#define OK "HTTP/1.1 200 OK\r\n\r\n"
#define AWAY 1u /* a port where nobody is */

/* A port as the server says it; no name: it says nothing. */
struct said {
    const char *name;
    enum weir__amqp_type type;
    uint64_t port;
};

static uint8_t space[256];

static struct weir__amqp_value write_told(const struct said said[2])
{
    struct weir__amqp_writer writer;
    uint32_t count = 0;
    size_t mark;

    weir__amqp_writer_init(&writer, space, sizeof space);
    mark = weir__amqp_put_open(&writer);
    for (int i = 0; i < 2 && said[i].name; i++, count += 2) {
        moody_put(&writer, WEIR__AMQP_SYMBOL, said[i].name);
        if (said[i].type == WEIR__AMQP_INT)
            weir__amqp_put(&writer, weir__amqp_signed(said[i].type, (int64_t)said[i].port));
        else
            weir__amqp_put(&writer, weir__amqp_unsigned(said[i].type, said[i].port));
    }
    weir__amqp_put_close(&writer, mark, WEIR__AMQP_MAP, count);
    return moody_written(&writer);
}

/* The server tells this. */
static void set_told(const struct said said[2])
{
    hasty_set_up(NULL);
    m.told = write_told(said);
}

static void open_told(const struct said said[2])
{
    set_told(said);
    hasty_open();
}

#define HTTP "weir:http"
#define HTTPS "weir:https"

/* Both ports, each a ushort: anything else is said by nobody that we know. */
static void who_does_not_tell_both_is_a_stranger(void **state)
{
    static const struct said cases[][2] = {
        {{NULL, WEIR__AMQP_NULL, 0}},
        {{HTTP, WEIR__AMQP_USHORT, AWAY}},
        {{HTTPS, WEIR__AMQP_USHORT, AWAY}},
        {{HTTP, WEIR__AMQP_UINT, AWAY}, {HTTPS, WEIR__AMQP_USHORT, AWAY}},
        {{HTTP, WEIR__AMQP_USHORT, AWAY}, {HTTPS, WEIR__AMQP_INT, AWAY}},
        {{HTTP, WEIR__AMQP_USHORT, AWAY}, {"weir:ftp", WEIR__AMQP_USHORT, AWAY}},
    };
    char text[WEIR_ERROR_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_told(cases[i]);
        assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_ENOTSUP);
        snprintf(text, sizeof text, "%s does not tell where it is administered", m.address);
        assert_memory_equal(err.text, text, strlen(text));
        hasty_close();
    }
}

/* Over AMQP without TLS, HTTP with TLS is no help. */
static void who_is_not_administered_says_so(void **state)
{
    static const struct said said[2] = {{HTTP, WEIR__AMQP_USHORT, 0},
                                        {HTTPS, WEIR__AMQP_USHORT, AWAY}};
    char text[WEIR_ERROR_TEXT_BYTES];

    (void)state;
    open_told(said);
    assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_ENOTSUP);
    snprintf(text, sizeof text, "weir serve at %s has no HTTP: start it with --http", m.address);
    assert_string_equal(err.text, text);
    hasty_close();
}

/* The host is that of the connection string. A port where nobody is may be the wrong one. */
static void the_port_that_was_told_is_asked(void **state)
{
    struct said said[2] = {{HTTP, WEIR__AMQP_USHORT, 0}, {HTTPS, WEIR__AMQP_USHORT, 0}};
    static const char where[] = "administration by HTTP, at the port that the server told (the "
                                "option admin names another): http://127.0.0.1:1: ";

    (void)state;
    assert_int_equal(server_start(), 0);
    said[0].port = server.port;
    open_told(said);
    for (int i = 0; i < 2; i++) {
        server_begin(OK, NULL);
        err = (struct weir_error){0};
        assert_ok(weir_hub_delete(w, "h", &err));
        server_end();
        assert_string_equal(err.text, "");
        assert_memory_equal(server.heard, "DELETE /$weir/hubs/h HTTP/1.0\r\n", 31);
    }
    hasty_close();
    assert_int_equal(m.connections, 1);
    server_stop();
    said[0].port = AWAY;
    open_told(said);
    assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_EUNREACHABLE);
    assert_memory_equal(err.text, where, sizeof where - 1);
    hasty_close();
}

/* The first link ends the connection. */
static void tell_no_more(struct moody *by, struct weir__amqp_link *l)
{
    struct weir__amqp_error why = weir__amqp_error_of("amqp:connection:forced", "bye");

    (void)l;
    by->told = (struct weir__amqp_value){0};
    if (by->connections == 1) weir__amqp_close(by->engine, &why);
}

/* What one connection told does not hold for the next, which may lead to somebody else. */
static void each_connection_tells_anew(void **state)
{
    static const struct said said[2] = {{HTTP, WEIR__AMQP_USHORT, AWAY},
                                        {HTTPS, WEIR__AMQP_USHORT, 0}};

    (void)state;
    set_told(said);
    m.taken = tell_no_more;
    hasty_expect(50, 100);
    hasty_open();
    assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_EUNREACHABLE);
    close_producer(open_pinned(w, 0));
    hasty_assert_passed(1);
    assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_ENOTSUP);
    hasty_close();
    assert_int_equal(m.connections, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_tell_both_is_a_stranger),
        cmocka_unit_test(who_is_not_administered_says_so),
        cmocka_unit_test(the_port_that_was_told_is_asked),
        cmocka_unit_test(each_connection_tells_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
