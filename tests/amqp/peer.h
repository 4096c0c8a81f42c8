/* peer.h - one engine, and a peer that is a script of bytes. */
#ifndef WEIR_TESTS_AMQP_PEER_H
#define WEIR_TESTS_AMQP_PEER_H

#include "amqp/frame.h"
#include "pair.h"

#define PEER_OUTPUT_MAX 300000

struct peer {
    struct side side;
    uint8_t heard[PEER_OUTPUT_MAX]; /* all that the engine said and nobody looked at */
    size_t heard_len, heard_at;
};

static inline void peer_init(struct peer *p, const struct weir__amqp_options *o, struct manners *m)
{
    memset(p, 0, sizeof *p);
    assert_int_equal(weir__amqp_new(&p->side.e, o, NULL), 0);
    p->side.on = be_kind;
    p->side.user = m;
}

static inline void peer_fini(struct peer *p)
{
    weir__amqp_free(p->side.e);
}

static inline void peer_listen(struct peer *p)
{
    struct weir__bytes out = weir__amqp_output(p->side.e);

    assert_true(out.len <= PEER_OUTPUT_MAX - p->heard_len);
    if (out.len) memcpy(p->heard + p->heard_len, out.at, out.len);
    p->heard_len += out.len;
    weir__amqp_sent(p->side.e, out.len);
}

static inline void peer_say_bytes(struct peer *p, struct weir__bytes b)
{
    while (b.len && !weir__amqp_closed(p->side.e)) {
        size_t room, n;
        uint8_t *to = weir__amqp_input(p->side.e, &room);
        n = b.len < room ? b.len : room;
        assert_true(n > 0);
        memcpy(to, b.at, n);
        weir__amqp_received(p->side.e, n);
        b.at += n;
        b.len -= n;
        take_events(&p->side);
        peer_listen(p);
    }
}

/* Bytes as they are, in the form of sample_hex. */
static inline void peer_say_raw(struct peer *p, const char *hex)
{
    struct weir__bytes b = sample_hex(hex);

    peer_say_bytes(p, b);
    sample_free(b);
}

/* "14: 43 43 | 'payload'": descriptor, fields in the form of sample_hex, and what follows them. The
 * list around the fields is made here, a list8 after ':', a list32 after ';'. A text without either
 * is a body as it is. */
static inline struct weir__bytes peer_body(const char *text)
{
    const char *mark = strpbrk(text, ":;"); /* behind a descriptor of two digits, or not there */
    bool list = mark && mark - text == 2, wide = list && *mark == ';';
    const char *bar = list ? strchr(text, '|') : NULL;
    char fields[512] = "";
    struct weir__bytes items, tail, all;
    struct weir__amqp_cursor c;
    uint8_t *to;
    size_t head = wide ? 12 : 6;
    uint32_t count = 0;

    if (!list) return sample_hex(text);
    snprintf(fields, sizeof fields, "%.*s", bar ? (int)(bar - text - 3) : 510, text + 3);
    items = sample_hex(fields);
    tail = sample_hex(bar ? bar + 1 : "");
    for (c = weir__amqp_cursor_of(items); c.at < c.end; count++) assert_true(weir__amqp_skip(&c));
    to = malloc(head + items.len + tail.len);
    assert_non_null(to);
    memcpy(to, ((uint8_t[]){0, 0x53, 0, 0xc0, (uint8_t)(items.len + 1), (uint8_t)count}), 6);
    to[2] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
    if (wide) {
        to[3] = 0xd0;
        weir__store_be32(to + 4, (uint32_t)items.len + 4);
        weir__store_be32(to + 8, count);
    }
    if (items.len) memcpy(to + head, items.at, items.len);
    if (tail.len) memcpy(to + head + items.len, tail.at, tail.len);
    all = weir__bytes_of(to, head + items.len + tail.len);
    sample_free(items);
    sample_free(tail);
    return all;
}

/* One frame with this body. */
static inline void peer_say_typed(struct peer *p, enum weir__amqp_frame_type type, uint16_t channel,
                                  const char *text)
{
    struct weir__bytes body = peer_body(text);
    uint8_t head[WEIR__AMQP_FRAME_HEAD];

    weir__amqp_frame_head(head, (uint32_t)(sizeof head + body.len), type, channel);
    peer_say_bytes(p, weir__bytes_of(head, sizeof head));
    peer_say_bytes(p, body);
    sample_free(body);
}

static inline void peer_say(struct peer *p, uint16_t channel, const char *text)
{
    peer_say_typed(p, WEIR__AMQP_FRAME_AMQP, channel, text);
}

/* The next header must be this one. */
static inline void peer_hear_header(struct peer *p, uint8_t layer)
{
    const uint8_t want[] = {'A', 'M', 'Q', 'P', layer, 1, 0, 0};

    assert_true(p->heard_len - p->heard_at >= sizeof want);
    assert_memory_equal(p->heard + p->heard_at, want, sizeof want);
    p->heard_at += sizeof want;
}

/* The next frame must be of this kind. */
static inline struct weir__amqp_composite peer_hear(struct peer *p, enum weir__amqp_kind kind)
{
    struct weir__amqp_composite c;
    struct weir__amqp_cursor in;
    struct weir__amqp_frame f = {0};
    const char *why;

    assert_int_equal(weir__amqp_frame_read(weir__bytes_of(p->heard + p->heard_at,
                                                          p->heard_len - p->heard_at),
                                           UINT32_MAX, &f, &why),
                     WEIR__AMQP_FRAME_WHOLE);
    if (f.type == WEIR__AMQP_FRAME_SASL) assert_int_equal(f.channel, 0); /* which it has not */
    p->heard_at += f.size;
    in = weir__amqp_cursor_of(f.body);
    assert_int_equal(weir__amqp_composite_read(&in, UINT32_MAX, &c, NULL), 0);
    assert_string_equal(weir__amqp_kind_name(c.kind), weir__amqp_kind_name(kind));
    return c;
}

static inline void peer_hear_nothing(const struct peer *p)
{
    assert_int_equal(p->heard_at, p->heard_len);
}

/* The condition of the error in a field; "" when it is null. */
static inline void assert_condition(const struct weir__amqp_value *field, const char *want)
{
    struct weir__amqp_composite c;
    char text[64] = "";

    if (field->type != WEIR__AMQP_NULL) {
        assert_int_equal(weir__amqp_composite_of(field, WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR), &c,
                                                 NULL),
                         0);
        copy_text_of(text, sizeof text, c.error.condition.bytes);
        assert_true(c.error.description.bytes.len > 0);
    }
    assert_string_equal(text, want);
}

#define SAY_OPEN "10: a1 01 'p'"
#define SAY_BEGIN "11: 40 43 70 00000800 70 00000800"
/* Handle 0, a sender of the peer's; handle 1, a receiver of the peer's. */
#define SAY_SENDER "12: a1 01 's' 43 42 40 40 00 53 28 45 00 53 29 45 40 40 43"
#define SAY_RECEIVER "12: a1 01 'r' 52 01 41 40 40 00 53 28 45 00 53 29 45"
#define SAY_END "17: 40"
#define SAY_CLOSE "18: 40"

/* A server that is open, with a session on channel 0. */
static inline void peer_open(struct peer *p, const struct weir__amqp_options *o, struct manners *m)
{
    peer_init(p, o, m);
    if (m->trusted) weir__amqp_trust(p->side.e);
    peer_say_raw(p, "'AMQP' 00 01 00 00");
    peer_say(p, 0, SAY_OPEN);
    peer_say(p, 0, SAY_BEGIN);
    peer_hear_header(p, 0);
    peer_hear(p, WEIR__AMQP_OPEN);
    peer_hear(p, WEIR__AMQP_BEGIN);
    expect(&p->side, WEIR__AMQP_EVENT_OPEN);
    expect(&p->side, WEIR__AMQP_EVENT_BEGIN);
}

#endif
