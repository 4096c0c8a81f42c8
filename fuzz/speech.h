/* speech.h - what a peer of the server says when it makes sense: each function is one frame, or a
 * few, of a kind that clients send, with the details from a program of any bytes. */
#ifndef WEIR_FUZZ_SPEECH_H
#define WEIR_FUZZ_SPEECH_H

#include "amqp/frame.h"
#include "amqp/message.h"
#include "road.h"
#include "server/state.h"

#define TOKEN                                                                                      \
    ("SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                        \
     "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                         \
     "skn=RootManageSharedAccessKey")
#define SAS "servicebus.windows.net:sastoken"
#define FRAME_BYTES 2048 /* of ours */

struct program {
    const uint8_t *at, *end;
};

struct speaker {
    struct weir__tcp *tcp;
    uint32_t delivery_id; /* the next */
};

static uint8_t take(struct program *p)
{
    return p->at < p->end ? *p->at++ : 0;
}

static struct weir__bytes take_bytes(struct program *p, size_t len)
{
    struct weir__bytes b = {p->at, len < (size_t)(p->end - p->at) ? len : (size_t)(p->end - p->at)};

    p->at += b.len;
    return b;
}

static struct weir__amqp_value text(enum weir__amqp_type type, const char *t)
{
    return weir__amqp_bytes(type, t, strlen(t));
}

static struct weir__amqp_value number(uint64_t n)
{
    return weir__amqp_unsigned(WEIR__AMQP_UINT, n);
}

static struct weir__amqp_value boolean(bool b)
{
    return weir__amqp_unsigned(WEIR__AMQP_BOOL, b);
}

static void say(struct speaker *s, struct weir__bytes b)
{
    road_feed(s->tcp, b);
}

static void say_frame(struct speaker *s, uint8_t type, uint16_t channel, struct weir__bytes body)
{
    uint8_t head[WEIR__AMQP_FRAME_HEAD];

    weir__amqp_frame_head(head, (uint32_t)(sizeof head + body.len),
                          (enum weir__amqp_frame_type)type, channel);
    say(s, weir__bytes_of(head, sizeof head));
    say(s, body);
}

static void say_composite(struct speaker *s, uint16_t channel, const struct weir__amqp_composite *c,
                          struct weir__bytes payload)
{
    uint8_t bytes[FRAME_BYTES];
    struct weir__amqp_writer writer;
    struct weir__bytes body;

    weir__amqp_writer_init(&writer, bytes, sizeof bytes);
    weir__amqp_composite_write(&writer, c);
    weir__amqp_put_raw(&writer, payload);
    if (weir__amqp_writer_finish(&writer, &body, NULL) == 0)
        say_frame(s, c->kind >= WEIR__AMQP_SASL_MECHANISMS && c->kind <= WEIR__AMQP_SASL_OUTCOME,
                  channel, body);
}

static void say_hello(struct speaker *s, struct program *p)
{
    static const char layers[] = "AMQP\x03\x01\x00\x00"
                                 "AMQP\x00\x01\x00\x00";
    static const char *const mechanisms[] = {"PLAIN", "ANONYMOUS", "MSSBCBS", "EXTERNAL"};
    static const char login[] = "\0RootManageSharedAccessKey\0SAS_KEY_VALUE";
    struct weir__amqp_composite init, open;
    uint8_t choice = take(p);

    weir__amqp_composite_init(&init, WEIR__AMQP_SASL_INIT);
    init.sasl_init.mechanism = text(WEIR__AMQP_SYMBOL, mechanisms[choice & 3]);
    init.sasl_init.initial_response = weir__amqp_bytes(WEIR__AMQP_BINARY, login, sizeof login - 1);
    weir__amqp_composite_init(&open, WEIR__AMQP_OPEN);
    open.open.container_id = text(WEIR__AMQP_STRING, "me");
    open.open.hostname = text(WEIR__AMQP_STRING, "localhost");
    if (choice & 8) open.open.max_frame_size = number(512);
    if (choice & 16) open.open.idle_time_out = number(1000);
    if (!(choice & 4)) say(s, weir__bytes_of(layers, 8));
    if (!(choice & 4)) say_composite(s, 0, &init, (struct weir__bytes){0});
    say(s, weir__bytes_of(layers + 8, 8));
    say_composite(s, 0, &open, (struct weir__bytes){0});
}

static void say_begin(struct speaker *s, struct program *p)
{
    struct weir__amqp_composite c;
    uint8_t choice = take(p);

    weir__amqp_composite_init(&c, WEIR__AMQP_BEGIN);
    c.begin.next_outgoing_id = number(0);
    c.begin.incoming_window = number(choice < 200 ? 2048 : choice - 200u);
    c.begin.outgoing_window = number(2048);
    say_composite(s, choice & 1, &c, (struct weir__bytes){0});
}

/* A map of one selector, the input's or a good one. */
static struct weir__amqp_value make_filter(struct program *p, uint8_t to[FRAME_BYTES])
{
    static const char *const good[] = {
        "amqp.annotation.x-opt-offset > '-1'",
        "amqp.annotation.x-opt-offset > '@latest'",
        "amqp.annotation.x-opt-sequence-number >= '1'",
        "amqp.annotation.x-opt-enqueued-time > 5",
    };
    struct weir__amqp_value out = {0};
    struct weir__amqp_writer writer;
    struct weir__amqp_cursor in;
    struct weir__bytes bytes;
    uint8_t choice = take(p);
    size_t mark;

    weir__amqp_writer_init(&writer, to, FRAME_BYTES);
    mark = weir__amqp_put_open(&writer);
    weir__amqp_put(&writer, text(WEIR__AMQP_SYMBOL, "apache.org:selector-filter:string"));
    if (choice < 200) {
        weir__amqp_put(&writer, text(WEIR__AMQP_STRING, good[choice & 3]));
    } else {
        bytes = take_bytes(p, choice - 200u);
        weir__amqp_put(&writer, weir__amqp_bytes(WEIR__AMQP_STRING, bytes.at, bytes.len));
    }
    weir__amqp_put_close(&writer, mark, WEIR__AMQP_MAP, 2);
    if (weir__amqp_writer_finish(&writer, &bytes, NULL) != 0) return out;
    in = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&in, &out);
    return out;
}

/* Properties of an attach: an epoch, or the state of an idempotent producer. */
static struct weir__amqp_value make_properties(const char *name, enum weir__amqp_type type,
                                               int64_t n, uint8_t to[FRAME_BYTES])
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_writer writer;
    struct weir__amqp_cursor in;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&writer, to, FRAME_BYTES);
    mark = weir__amqp_put_open(&writer);
    weir__amqp_put(&writer, text(WEIR__AMQP_SYMBOL, name));
    weir__amqp_put(&writer, weir__amqp_signed(type, n));
    weir__amqp_put_close(&writer, mark, WEIR__AMQP_MAP, 2);
    if (weir__amqp_writer_finish(&writer, &bytes, NULL) != 0) return out;
    in = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&in, &out);
    return out;
}

/* A link to one of the server's places, or to a place that the input names. */
static void say_attach(struct speaker *s, struct program *p)
{
    static const char *const places[] = {"$cbs",
                                         "$management",
                                         "eh1",
                                         "eh1/Partitions/1",
                                         "eh1/ConsumerGroups/$default/Partitions/0",
                                         "eh1/ConsumerGroups/cg/Partitions/1"};
    uint8_t filter[FRAME_BYTES], properties[FRAME_BYTES], terminus[FRAME_BYTES];
    uint8_t choice = take(p), modes = take(p);
    struct weir__amqp_composite c, end;
    bool receives = choice & 1;
    struct weir__bytes name = {0};

    weir__amqp_composite_init(&c, WEIR__AMQP_ATTACH);
    weir__amqp_composite_init(&end, receives ? WEIR__AMQP_SOURCE : WEIR__AMQP_TARGET);
    end.source.address = text(WEIR__AMQP_STRING, places[(choice >> 1) % 6]);
    if (choice >= 240) name = take_bytes(p, 80);
    if (name.len) end.source.address = weir__amqp_bytes(WEIR__AMQP_STRING, name.at, name.len);
    if (receives) end.source.filter = make_filter(p, filter);
    c.attach.name = text(WEIR__AMQP_STRING, "link");
    c.attach.handle = number(modes & 3);
    c.attach.role = boolean(receives);
    c.attach.snd_settle_mode = weir__amqp_unsigned(WEIR__AMQP_UBYTE, (modes >> 2) % 3u);
    c.attach.rcv_settle_mode = weir__amqp_unsigned(WEIR__AMQP_UBYTE, modes >> 4 & 1u);
    *(receives ? &c.attach.source : &c.attach.target) =
        weir__amqp_composite_value(&end, terminus, sizeof terminus);
    if (!receives) c.attach.initial_delivery_count = number(0);
    if (receives && modes & 32)
        c.attach.properties =
            make_properties("com.microsoft:epoch", WEIR__AMQP_LONG, modes >> 6, properties);
    if (!receives && modes & 32)
        c.attach.properties = make_properties("com.microsoft:producer-epoch", WEIR__AMQP_SHORT,
                                              (int8_t)modes, properties);
    if (modes & 64)
        c.attach.desired_capabilities =
            text(WEIR__AMQP_SYMBOL, receives ? "com.microsoft:enable-receiver-runtime-metric"
                                             : "com.microsoft:idempotent-producer");
    say_composite(s, modes >> 7, &c, (struct weir__bytes){0});
}

static void say_flow(struct speaker *s, struct program *p)
{
    struct weir__amqp_composite c;
    uint8_t choice = take(p), credit = take(p);

    weir__amqp_composite_init(&c, WEIR__AMQP_FLOW);
    c.flow.next_incoming_id = number(0);
    c.flow.incoming_window = number(choice & 64 ? 3 : 2048);
    c.flow.next_outgoing_id = number(0);
    c.flow.outgoing_window = number(2048);
    if (!(choice & 32)) {
        c.flow.handle = number(choice & 3);
        c.flow.delivery_count = number(choice & 16 ? credit : 0);
        c.flow.link_credit = number(credit);
        c.flow.drain = boolean(choice & 4);
    }
    c.flow.echo = boolean(choice & 8);
    say_composite(s, choice >> 7, &c, (struct weir__bytes){0});
}

static void say_transfer(struct speaker *s, uint8_t choice, uint32_t format,
                         struct weir__bytes payload)
{
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_TRANSFER);
    c.transfer.handle = number(choice & 3);
    c.transfer.delivery_id = number(s->delivery_id);
    c.transfer.delivery_tag = text(WEIR__AMQP_BINARY, "tag");
    c.transfer.message_format = number(format);
    c.transfer.settled = boolean(choice & 8);
    c.transfer.more = boolean(choice & 16);
    if (!(choice & 16)) s->delivery_id++;
    say_composite(s, choice >> 7, &c, payload);
}

/* An event with a key, one without, a batch of two, or the input's bytes. */
static void say_event(struct speaker *s, struct program *p)
{
    static const char plain[] = "\x00\x53\x75\xa0\x01x";
    static const char keyed[] = "\x00\x53\x72\xc1\x18\x02\xa3\x13x-opt-partition-key\xa1\x00"
                                "\x00\x53\x77\x56\x01";
    static const char batch[] = "\x00\x53\x75\xa0\x06\x00\x53\x75\xa0\x01x"
                                "\x00\x53\x75\xa0\x05\x00\x53\x77\xa1\x00";
    uint8_t choice = take(p);
    uint32_t format = choice & 4 ? WEIR__AMQP_FORMAT_BATCH : 0;

    if (choice & 32)
        say_transfer(s, choice, format, take_bytes(p, take(p)));
    else if (choice & 4)
        say_transfer(s, choice, format, weir__bytes_of(batch, sizeof batch - 1));
    else if (choice & 64)
        say_transfer(s, choice, format, weir__bytes_of(keyed, sizeof keyed - 1));
    else
        say_transfer(s, choice, format, weir__bytes_of(plain, sizeof plain - 1));
}

/* A request to $cbs or $management: the sections of a message with these application properties. */
static void say_request(struct speaker *s, struct program *p)
{
    static const char *const rows[][8] = {
        {"operation", "put-token", "type", SAS, "name", "sb://localhost/eh1", TOKEN},
        {"operation", "put-token", "type", "jwt", "name", "sb://localhost/eh1", "a.b.c"},
        {"operation", "READ", "type", "com.microsoft:eventhub", "name", "eh1"},
        {"operation", "READ", "type", "com.microsoft:partition", "name", "eh1", "partition", "1"},
        {"operation", "READ", "type", "com.microsoft:eventhub", "name", "eh1", "security_token",
         TOKEN},
    };
    uint8_t bytes[FRAME_BYTES], choice = take(p), spoil = take(p);
    const char *const *row = rows[(choice >> 5) % 5];
    bool asks = row[0][0] && row[1][0] == 'R';
    struct weir__amqp_writer writer;
    struct weir__bytes own, message;
    size_t mark;

    weir__amqp_writer_init(&writer, bytes, sizeof bytes);
    weir__amqp_put_descriptor(&writer, 0x74);
    mark = weir__amqp_put_open(&writer);
    for (unsigned i = 0; i < (asks ? 8u : 6u); i++) {
        own = i + 1u == spoil % 16 ? take_bytes(p, spoil) : (struct weir__bytes){0};
        if (own.at)
            weir__amqp_put(&writer, weir__amqp_bytes(WEIR__AMQP_STRING, own.at, own.len));
        else
            weir__amqp_put(&writer, text(WEIR__AMQP_STRING, row[i] ? row[i] : ""));
    }
    weir__amqp_put_close(&writer, mark, WEIR__AMQP_MAP, asks ? 8 : 6);
    weir__amqp_put_descriptor(&writer, 0x77);
    weir__amqp_put(&writer, text(WEIR__AMQP_STRING, asks ? "" : row[6]));
    if (weir__amqp_writer_finish(&writer, &message, NULL) == 0)
        say_transfer(s, choice & 0x8b, 0, message);
}

static void say_end(struct speaker *s, struct program *p)
{
    static const enum weir__amqp_kind kinds[] = {WEIR__AMQP_DETACH, WEIR__AMQP_DETACH,
                                                 WEIR__AMQP_END, WEIR__AMQP_CLOSE};
    struct weir__amqp_composite c;
    uint8_t choice = take(p);

    weir__amqp_composite_init(&c, kinds[choice & 3]);
    if (c.kind == WEIR__AMQP_DETACH) {
        c.detach.handle = number(choice >> 2 & 3);
        c.detach.closed = boolean(choice & 16);
    }
    say_composite(s, choice >> 7, &c, (struct weir__bytes){0});
}

static void (*const sayings[])(struct speaker *, struct program *) = {
    say_hello, say_begin, say_attach, say_attach, say_flow, say_event, say_request, say_end,
};

#endif
