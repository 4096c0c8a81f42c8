/* server_fuzz.c - two connections of a whole server, from their first bytes to what is on disk.
 *
 * Everything is real but the loop and the sockets (road.h), the disk (support/simfs.h) and the
 * clock. The input is a program: bytes and frames of any content, frames that make sense, and what
 * else happens to a server: time, a slow reader, a lost road, a hub that is deleted.
 *
 * Beyond not crashing: what is said is well-formed to the last string, nobody who is not known
 * costs much memory, whatever was taken in is answered for, and at the end nothing is left. */
#include "road.h"

#include <stdio.h>
#include <stdlib.h>

#include "amqp/frame.h"
#include "amqp/message.h"
#include "server/state.h"
#include "support/simfs.h"

#define TOKEN                                                                                      \
    "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                         \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey"
#define SAS "servicebus.windows.net:sastoken"
#define NOW_MS INT64_C(1699999000000) /* when the token is good */
#define PEERS 2
#define INPUTS_PER_HOUSE 200
#define BEFORE_TRUST_MAX 32768
#define FRAME_BYTES 2048 /* of ours */

struct program {
    const uint8_t *at, *end;
};

/* The other side of a connection: what it has heard of a frame, and how far it has counted. */
struct listener {
    struct weir__buf heard;
    bool deaf;    /* this is no AMQP any more */
    bool partial; /* a message goes on in the next frame */
    uint32_t delivery_id;
};

/* What is served. It is slow to make, so it serves for some inputs. */
struct house {
    struct simfs *disk;
    struct simclock time;
    uint64_t chance;
    struct weir__namespace *ns;
    struct weir__hub *hub; /* stays when it is deleted */
    int inputs;
};

struct world {
    struct house *house;
    struct weir__server server;
    struct weir__server_loop at;
    struct weir__loop loop;
    struct weir__tcp tcp[PEERS];
    struct listener listener[PEERS];
    unsigned who; /* speaks now */
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

static struct weir__amqp_value text(enum weir__amqp_type type, const char *s)
{
    return weir__amqp_bytes(type, s, strlen(s));
}

static struct weir__amqp_value number(uint64_t n)
{
    return weir__amqp_unsigned(WEIR__AMQP_UINT, n);
}

static struct weir__amqp_value boolean(bool b)
{
    return weir__amqp_unsigned(WEIR__AMQP_BOOL, b);
}

/* ---- what the server says ---- */

static void check_transfer(struct listener *l, const struct weir__amqp_composite *c,
                           struct weir__bytes payload)
{
    bool more = c->transfer.more.u, first = !l->partial;
    struct weir__amqp_message m;

    l->partial = more;
    if (first && !more) ORACLE(weir__amqp_message_scan(&m, payload, WEIR__AMQP_DEEP, NULL) == 0);
}

/* The words of an error are text, whatever they quote. */
static void check_error(const struct weir__amqp_value *v)
{
    struct weir__amqp_composite c;

    if (v->type != WEIR__AMQP_DESCRIBED ||
        weir__amqp_composite_of(v, WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR), &c, NULL) != 0)
        return;
    ORACLE(weir__amqp_utf8(c.error.description.bytes));
}

static void check_frame(struct listener *l, const struct weir__amqp_frame *f)
{
    struct weir__amqp_cursor in = weir__amqp_cursor_of(f->body);
    struct weir__amqp_composite c;

    if (!f->body.len) return;
    ORACLE(weir__amqp_composite_read(&in, WEIR__AMQP_PERFORMATIVES | WEIR__AMQP_SASL_FRAMES, &c,
                                     NULL) == 0);
    ORACLE(c.kind == WEIR__AMQP_TRANSFER || in.at == in.end);
    if (c.kind == WEIR__AMQP_DETACH) check_error(&c.detach.error);
    if (c.kind == WEIR__AMQP_END || c.kind == WEIR__AMQP_CLOSE) check_error(&c.end.error);
    if (c.kind == WEIR__AMQP_TRANSFER)
        check_transfer(l, &c, weir__bytes_of(in.at, (size_t)(in.end - in.at)));
}

/* How many bytes of what was heard are whole; 0: more is needed. */
static size_t check_one(struct listener *l)
{
    struct weir__bytes b = weir__buf_bytes(&l->heard);
    struct weir__amqp_frame f;
    const char *why = "";

    if (b.len < 8) return 0;
    if (memcmp(b.at, "AMQP", 4) == 0) return 8;
    l->deaf = memcmp(b.at, "HTTP/1.1", 8) == 0;
    if (l->deaf) return b.len;
    if (weir__amqp_frame_read(b, UINT32_MAX, &f, &why) != WEIR__AMQP_FRAME_WHOLE) {
        ORACLE(!why);
        return 0;
    }
    check_frame(l, &f);
    return f.size;
}

static void listen(void *user, struct weir__bytes b)
{
    struct listener *l = user;
    size_t len;

    if (l->deaf) return;
    ORACLE(weir__buf_add(&l->heard, b.at, b.len));
    while (!l->deaf && (len = check_one(l)) > 0) {
        memmove(l->heard.at, l->heard.at + len, l->heard.len - len);
        l->heard.len -= len;
    }
}

/* ---- what its peers say ---- */

static void say(struct world *w, struct weir__bytes b)
{
    road_feed(&w->tcp[w->who], b);
}

static void say_frame(struct world *w, uint8_t type, uint16_t channel, struct weir__bytes body)
{
    uint8_t head[WEIR__AMQP_FRAME_HEAD];

    weir__amqp_frame_head(head, (uint32_t)(sizeof head + body.len),
                          (enum weir__amqp_frame_type)type, channel);
    say(w, weir__bytes_of(head, sizeof head));
    say(w, body);
}

static void say_composite(struct world *w, uint16_t channel, const struct weir__amqp_composite *c,
                          struct weir__bytes payload)
{
    uint8_t bytes[FRAME_BYTES];
    struct weir__amqp_writer writer;
    struct weir__bytes body;

    weir__amqp_writer_init(&writer, bytes, sizeof bytes);
    weir__amqp_composite_write(&writer, c);
    weir__amqp_put_raw(&writer, payload);
    if (weir__amqp_writer_finish(&writer, &body, NULL) == 0)
        say_frame(w, c->kind >= WEIR__AMQP_SASL_MECHANISMS && c->kind <= WEIR__AMQP_SASL_OUTCOME,
                  channel, body);
}

static void say_hello(struct world *w, struct program *p)
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
    if (!(choice & 4)) say(w, weir__bytes_of(layers, 8));
    if (!(choice & 4)) say_composite(w, 0, &init, (struct weir__bytes){0});
    say(w, weir__bytes_of(layers + 8, 8));
    say_composite(w, 0, &open, (struct weir__bytes){0});
}

static void say_begin(struct world *w, struct program *p)
{
    struct weir__amqp_composite c;
    uint8_t choice = take(p);

    weir__amqp_composite_init(&c, WEIR__AMQP_BEGIN);
    c.begin.next_outgoing_id = number(0);
    c.begin.incoming_window = number(choice < 200 ? 2048 : choice - 200u);
    c.begin.outgoing_window = number(2048);
    say_composite(w, choice & 1, &c, (struct weir__bytes){0});
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
static void say_attach(struct world *w, struct program *p)
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
    say_composite(w, modes >> 7, &c, (struct weir__bytes){0});
}

static void say_flow(struct world *w, struct program *p)
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
    say_composite(w, choice >> 7, &c, (struct weir__bytes){0});
}

static void say_transfer(struct world *w, uint8_t choice, uint32_t format,
                         struct weir__bytes payload)
{
    struct listener *l = &w->listener[w->who];
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_TRANSFER);
    c.transfer.handle = number(choice & 3);
    c.transfer.delivery_id = number(l->delivery_id);
    c.transfer.delivery_tag = text(WEIR__AMQP_BINARY, "tag");
    c.transfer.message_format = number(format);
    c.transfer.settled = boolean(choice & 8);
    c.transfer.more = boolean(choice & 16);
    if (!(choice & 16)) l->delivery_id++;
    say_composite(w, choice >> 7, &c, payload);
}

/* An event with a key, one without, a batch of two, or the input's bytes. */
static void say_event(struct world *w, struct program *p)
{
    static const char plain[] = "\x00\x53\x75\xa0\x01x";
    static const char keyed[] = "\x00\x53\x72\xc1\x18\x02\xa3\x13x-opt-partition-key\xa1\x00"
                                "\x00\x53\x77\x56\x01";
    static const char batch[] = "\x00\x53\x75\xa0\x06\x00\x53\x75\xa0\x01x"
                                "\x00\x53\x75\xa0\x05\x00\x53\x77\xa1\x00";
    uint8_t choice = take(p);
    uint32_t format = choice & 4 ? WEIR__AMQP_FORMAT_BATCH : 0;

    if (choice & 32)
        say_transfer(w, choice, format, take_bytes(p, take(p)));
    else if (choice & 4)
        say_transfer(w, choice, format, weir__bytes_of(batch, sizeof batch - 1));
    else if (choice & 64)
        say_transfer(w, choice, format, weir__bytes_of(keyed, sizeof keyed - 1));
    else
        say_transfer(w, choice, format, weir__bytes_of(plain, sizeof plain - 1));
}

/* A request to $cbs or $management: the sections of a message with these application properties. */
static void say_request(struct world *w, struct program *p)
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
        say_transfer(w, choice & 0x8b, 0, message);
}

static void say_end(struct world *w, struct program *p)
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
    say_composite(w, choice >> 7, &c, (struct weir__bytes){0});
}

static void (*const sayings[])(struct world *, struct program *) = {
    say_hello, say_begin, say_attach, say_attach, say_flow, say_event, say_request, say_end,
};

/* ---- what else happens ---- */

static void flush_hub(struct world *w)
{
    weir__hub_flush(w->house->hub, INT64_MAX, NULL);
    weir__hub_step(w->house->hub, NULL);
}

static void pass_time(struct world *w, int64_t ms)
{
    w->loop.now_ms += ms;
    w->house->time.wall_ms += ms;
    w->house->time.mono_ms += ms;
}

static void tear_down(struct world *w, uint8_t choice)
{
    if (choice & 1)
        weir__namespace_group_remove(w->server.ns, "eh1", "cg", NULL);
    else
        weir__namespace_hub_delete(w->server.ns, "eh1", NULL);
    w->house->inputs = INPUTS_PER_HOUSE; /* it is not what it was */
}

static void happen(struct world *w, struct program *p, uint8_t what)
{
    struct weir__tcp *tcp = &w->tcp[w->who];

    switch (what) {
    case 0: w->who = (w->who + 1) % PEERS; break;
    case 1: flush_hub(w); break;
    case 2: pass_time(w, (int64_t)take(p) * 100); break;
    case 3: tcp->slow = !tcp->slow; break;
    case 4: road_write(tcp, take(p)); break;
    case 5:
        if (!tcp->closed) tcp->calls->ended(tcp->owner);
        break;
    case 6: road_close(tcp, WEIR_EUNREACHABLE); break;
    case 7:
        if (take(p) == 7) tear_down(w, take(p));
        break;
    }
}

static void check_memory(const struct world *w)
{
    const struct weir__connection *c = w->at.connections;

    for (; c; c = c->next)
        if (!c->trusted) ORACLE(weir__amqp_memory(c->engine) <= BEFORE_TRUST_MAX);
}

static void run(struct world *w, struct program *p)
{
    while (p->at < p->end) {
        uint8_t op = take(p);
        if (op < 48)
            say_frame(w, op == 47, op & 1, take_bytes(p, take(p)));
        else if (op < 64)
            say(w, take_bytes(p, take(p)));
        else if (op < 160)
            sayings[op & 7](w, p);
        else
            happen(w, p, op & 7);
        road_turn(&w->loop, w->tcp, PEERS);
        check_memory(w);
    }
}

/* ---- birth and death ---- */

/* There are no ports to send somebody to. */
const char *weir__server_amqp(const struct weir__server *s)
{
    (void)s;
    return NULL;
}

const char *weir__server_amqps(const struct weir__server *s)
{
    (void)s;
    return "127.0.0.1:5671";
}

const char *weir__server_http(const struct weir__server *s)
{
    (void)s;
    return NULL;
}

const char *weir__server_https(const struct weir__server *s)
{
    (void)s;
    return NULL;
}

static int roll_dice(void *self, void *out, size_t len, struct weir_error *err)
{
    uint64_t *n = self;

    (void)err;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)((*n = *n * 6364136223846793005u + 1) >> 56);
    return 0;
}

/* A folder with a hub and a key. */
static void furnish(struct weir__namespace *ns)
{
    static const char *const groups[] = {"cg"};
    struct weir__rule rule = {"RootManageSharedAccessKey", WEIR__RIGHTS_ALL, {"SAS_KEY_VALUE", ""}};
    struct weir__hub_config hub = {.name = "eh1",
                                   .partitions = 2,
                                   .groups = groups,
                                   .group_count = 1};

    ORACLE(weir__namespace_rule_add(ns, NULL, &rule, NULL) == 0);
    ORACLE(weir__namespace_hub_create(ns, &hub, NULL) == 0);
}

static void enter(struct house *h)
{
    struct weir__namespace_options o;

    h->time.wall_ms = NOW_MS;
    if (h->inputs++) return;
    h->disk = simfs_new();
    o = (struct weir__namespace_options){.fs = simfs_fs(h->disk),
                                         .clock = simclock(&h->time),
                                         .rand = {roll_dice, &h->chance},
                                         .no_threads = true,
                                         .segment_bytes_max = 1 << 20,
                                         .batch_bytes_max = 16384};
    ORACLE(weir__namespace_open(&h->ns, "data", &o, NULL) == 0);
    furnish(h->ns);
    ORACLE(weir__namespace_use(h->ns, "eh1", &h->hub, NULL) == 0);
}

static void leave(struct house *h)
{
    if (h->inputs < INPUTS_PER_HOUSE) return;
    weir__hub_release(h->hub);
    ORACLE(weir__namespace_close(h->ns, NULL) == 0);
    simfs_free(h->disk);
    *h = (struct house){0};
}

static void hush(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)level;
    (void)room;
    (void)user;
    ORACLE(*line && !strchr(line, '\n'));
}

static void begin(struct world *w, uint8_t mode)
{
    w->loop.now_ms = 1000;
    w->server.ns = w->house->ns;
    w->server.logger = (struct weir__logger){hush, NULL};
    w->server.clock = simclock(&w->house->time);
    w->server.at = &w->at;
    w->server.trace = mode & 1;
    w->server.token_ms = WEIR__SERVER_TOKEN_MS;
    w->at.server = &w->server;
    weir__mutex_init(&w->server.lock);
    weir__cond_init(&w->server.changed);
    for (unsigned i = 0; i < PEERS; i++) {
        weir__buf_init(&w->listener[i].heard, SIZE_MAX);
        w->tcp[i] = (struct weir__tcp){.loop = &w->loop, .sink = listen, .user = &w->listener[i]};
        if (mode & 2) w->tcp[i].certified = "RootManageSharedAccessKey";
        ORACLE(weir__connection_accept(&w->server, &w->tcp[i]));
    }
}

static void end(struct world *w)
{
    for (unsigned i = 0; i < PEERS; i++) road_close(&w->tcp[i], WEIR_EUNREACHABLE);
    flush_hub(w);
    road_turn(&w->loop, w->tcp, PEERS);
    ORACLE(!w->server.connections && !w->at.connections && !w->server.unflushed);
    for (unsigned i = 0; i < PEERS; i++) weir__buf_fini(&w->listener[i].heard);
    weir__cond_fini(&w->server.changed);
    weir__mutex_fini(&w->server.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    static struct house house;
    struct program p = {at, at + len};
    struct world w = {.house = &house};

    enter(&house);
    begin(&w, take(&p));
    run(&w, &p);
    end(&w);
    leave(&house);
    return 0;
}
