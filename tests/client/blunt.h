/* blunt.h - a server that is legal and unlike ours: it speaks AMQP frame by frame and keeps to what
 * its manners say, because the engine would never be so narrow, so slow to answer, or so short. It
 * has one connection at a time, on a thread of its own; every token is good, every link is taken,
 * every batch is accepted, and what a client may not do is counted. */
#ifndef WEIR_TESTS_CLIENT_BLUNT_H
#define WEIR_TESTS_CLIENT_BLUNT_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/frame.h"
#include "amqp/message.h"
#include "amqp/performative.h"

#define BLUNT_CHANNELS 64
#define BLUNT_HANDLES 256
#define BLUNT_INPUT_BYTES ((size_t)1 << 20)
#define BLUNT_FRAME_BYTES 65536
#define BLUNT_CREDIT 1000
#define BLUNT_TURN_MS 5

struct blunt;

/* Of sessions, but for the first of a connection, which is that of $cbs. */
struct blunt_manners {
    uint32_t handle_max; /* 0: one link */
    uint32_t window;     /* transfers at a time; 0: as many as there is credit for */
    size_t message_max;  /* bytes that a link takes; 0: 1 MiB */
    bool deaf;           /* to detach: it is never answered */
    bool no_marks;       /* knows no idempotent producers */
    unsigned drop_desk;  /* so many times a link of $management is detached instead of a reply: */
    bool drop_reply;     /* the one that brings replies, else the one that takes requests */
    bool narrow;         /* $cbs has one handle, too */
    bool ours;           /* it says that it is weir serve, without HTTP */
    bool unsettled;      /* replies want an answer: */

    /* A test's own: every frame as it comes, and how $management answers, from the application
     * properties on, with replies before it that nobody waits for. */
    void (*heard)(struct weir__bytes frame);
    void (*tell)(struct weir__amqp_writer *);
    /* Instead of the outcome of a batch, unless it says no. */
    bool (*took)(struct blunt *, uint16_t channel, const struct weir__amqp_composite *);
};

struct blunt_link {
    bool there, receives; /* ours */
    char name[96];
};

struct blunt_session {
    bool there;
    uint32_t seen, room, said; /* transfers that came, that may come, and that went */
    struct blunt_link links[BLUNT_HANDLES];
};

struct blunt {
    struct blunt_manners manners;
    pthread_t thread;
    atomic_bool stop;
    int listener, fd;
    char address[32];
    uint8_t *input;
    size_t len;
    struct blunt_session sessions[BLUNT_CHANNELS];

    atomic_uint connections, begun, alive;            /* sessions; alive: not ended */
    atomic_uint attaches, detaches, batches, largest; /* of events; batches by transfers */
    atomic_uint tokens;                               /* that were shown */
    atomic_uint replies, accepted; /* of the $ links; accepted, and settled with it */
    atomic_uint broken;            /* what a client may not do: beyond a window or a handle */
};

/* ---- saying ---- */

static inline void blunt_write(struct blunt *b, const void *at, size_t len)
{
    const uint8_t *from = at;

    while (len > 0) {
        ssize_t n = send(b->fd, from, len, MSG_NOSIGNAL);
        if (n <= 0) return; /* the next read finds out */
        from += n;
        len -= (size_t)n;
    }
}

static inline void blunt_say(struct blunt *b, enum weir__amqp_frame_type type, uint16_t channel,
                             const struct weir__amqp_composite *c, struct weir__bytes payload)
{
    uint8_t frame[4096];
    struct weir__amqp_writer w;
    struct weir__bytes body;

    weir__amqp_writer_init(&w, frame + WEIR__AMQP_FRAME_HEAD, sizeof frame - WEIR__AMQP_FRAME_HEAD);
    weir__amqp_composite_write(&w, c);
    if (payload.len) weir__amqp_put_raw(&w, payload);
    if (weir__amqp_writer_finish(&w, &body, NULL) != 0) abort();
    weir__amqp_frame_head(frame, (uint32_t)(WEIR__AMQP_FRAME_HEAD + body.len), type, channel);
    blunt_write(b, frame, WEIR__AMQP_FRAME_HEAD + body.len);
}

static inline void blunt_say_amqp(struct blunt *b, uint16_t channel,
                                  const struct weir__amqp_composite *c)
{
    blunt_say(b, WEIR__AMQP_FRAME_AMQP, channel, c, (struct weir__bytes){0});
}

static inline struct weir__amqp_value blunt_uint(uint64_t n)
{
    return weir__amqp_unsigned(WEIR__AMQP_UINT, n);
}

/* Of a session, without a handle, or with one and credit for it. */
static inline void blunt_flow(struct blunt *b, uint16_t channel, int64_t handle)
{
    struct blunt_session *s = &b->sessions[channel];
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_FLOW);
    c.flow.next_incoming_id = blunt_uint(s->seen);
    c.flow.incoming_window = blunt_uint(s->room);
    c.flow.next_outgoing_id = blunt_uint(s->said);
    c.flow.outgoing_window = blunt_uint(INT32_MAX);
    if (handle >= 0) {
        c.flow.handle = blunt_uint((uint64_t)handle);
        c.flow.delivery_count = blunt_uint(0);
        c.flow.link_credit = blunt_uint(BLUNT_CREDIT);
    }
    blunt_say_amqp(b, channel, &c);
}

static inline void blunt_detach(struct blunt *b, uint16_t channel, uint32_t handle)
{
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_DETACH);
    c.detach.handle = blunt_uint(handle);
    c.detach.closed = weir__amqp_unsigned(WEIR__AMQP_BOOL, 1);
    blunt_say_amqp(b, channel, &c);
}

/* ---- $cbs and $management ---- */

static inline void blunt_put(struct weir__amqp_writer *w, const char *name,
                             struct weir__amqp_value value)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, name, strlen(name)));
    weir__amqp_put(w, value);
}

/* A good answer to every question: to put-token, and what a hub of one partition is. */
static inline void blunt_tell(struct weir__amqp_writer *w)
{
    size_t mark;

    weir__amqp_put_descriptor(w, 0x74);
    mark = weir__amqp_put_open(w);
    blunt_put(w, "status-code", weir__amqp_signed(WEIR__AMQP_INT, 200));
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, 2);
    weir__amqp_put_descriptor(w, 0x77);
    mark = weir__amqp_put_open(w);
    blunt_put(w, "name", weir__amqp_bytes(WEIR__AMQP_STRING, "h", 1));
    blunt_put(w, "partition_count", weir__amqp_signed(WEIR__AMQP_INT, 1));
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, 4);
}

static inline struct weir__bytes blunt_answer(struct weir__amqp_value id,
                                              void (*tell)(struct weir__amqp_writer *),
                                              uint8_t *space, size_t room)
{
    struct weir__amqp_value null = {0};
    struct weir__amqp_writer w;
    struct weir__bytes out;
    size_t mark;

    weir__amqp_writer_init(&w, space, room);
    weir__amqp_put_descriptor(&w, 0x73);
    mark = weir__amqp_put_open(&w);
    for (int i = 0; i < 5; i++) weir__amqp_put(&w, null);
    weir__amqp_put(&w, id);
    weir__amqp_put_close(&w, mark, WEIR__AMQP_LIST, 6);
    tell(&w);
    if (weir__amqp_writer_finish(&w, &out, NULL) != 0) abort();
    return out;
}

/* The link of a session whose name begins so; BLUNT_HANDLES: there is none. */
static inline uint32_t blunt_find(const struct blunt_session *s, const char *name)
{
    uint32_t i = 0;

    while (i < BLUNT_HANDLES &&
           (!s->links[i].there || strncmp(s->links[i].name, name, strlen(name)) != 0))
        i++;
    return i;
}

static inline void blunt_send(struct blunt *b, uint16_t channel, const char *to,
                              struct weir__bytes message)
{
    struct blunt_session *s = &b->sessions[channel];
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_TRANSFER);
    c.transfer.handle = blunt_uint(blunt_find(s, to));
    c.transfer.delivery_id = blunt_uint(s->said);
    c.transfer.delivery_tag = weir__amqp_bytes(WEIR__AMQP_BINARY, "t", 1);
    c.transfer.settled = weir__amqp_unsigned(WEIR__AMQP_BOOL, !b->manners.unsettled);
    atomic_fetch_add(&b->replies, 1);
    s->said++;
    blunt_say(b, WEIR__AMQP_FRAME_AMQP, channel, &c, message);
}

/* Replies that nobody waits for: to a question that was never asked, and to one of another kind. */
static inline void blunt_stray(struct blunt *b, uint16_t channel, uint64_t asked, const char *to)
{
    const struct weir__amqp_value ids[] = {
        weir__amqp_unsigned(WEIR__AMQP_ULONG, asked + 1),
        weir__amqp_bytes(WEIR__AMQP_STRING, "t", 1),
    };
    uint8_t space[512];

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        blunt_send(b, channel, to, blunt_answer(ids[i], blunt_tell, space, sizeof space));
}

static inline void blunt_reply(struct blunt *b, uint16_t channel, struct weir__bytes request,
                               const char *to)
{
    void (*tell)(struct weir__amqp_writer *) = to[1] == 'm' ? b->manners.tell : NULL;
    struct weir__amqp_message m;
    struct weir__amqp_properties p;
    uint8_t space[1024];

    if (weir__amqp_message_scan(&m, request, WEIR__AMQP_DEEP, NULL) != 0 ||
        weir__amqp_message_properties(&m, &p, NULL) != 0)
        abort();
    if (tell) blunt_stray(b, channel, p.message_id.u, to);
    blunt_send(b, channel, to,
               blunt_answer(p.message_id, tell ? tell : blunt_tell, space, sizeof space));
}

static inline void blunt_on_request(struct blunt *b, uint16_t channel, const char *name,
                                    struct weir__bytes request)
{
    struct blunt_session *s = &b->sessions[channel];
    const char *gone = b->manners.drop_reply ? "$management-reply" : "$management-request";

    if (name[1] == 'c') {
        atomic_fetch_add(&b->tokens, 1);
        blunt_reply(b, channel, request, "$cbs-reply");
    } else if (b->manners.drop_desk > 0) {
        uint32_t handle = blunt_find(s, gone);
        b->manners.drop_desk--;
        s->links[handle].there = false;
        blunt_detach(b, channel, handle);
    } else {
        blunt_reply(b, channel, request, "$management-reply");
    }
}

/* ---- frames ---- */

static inline void blunt_on_open(struct blunt *b)
{
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_OPEN);
    c.open.container_id = weir__amqp_bytes(WEIR__AMQP_STRING, "blunt", 5);
    c.open.max_frame_size = blunt_uint(BLUNT_FRAME_BYTES);
    c.open.channel_max = weir__amqp_unsigned(WEIR__AMQP_USHORT, BLUNT_CHANNELS - 1);
    blunt_say_amqp(b, 0, &c);
}

/* Where nobody is narrow: $cbs. */
static inline bool blunt_is_first(const struct blunt *b)
{
    return atomic_load(&b->begun) == 1;
}

static inline void blunt_on_begin(struct blunt *b, uint16_t channel)
{
    struct blunt_session *s = &b->sessions[channel];
    struct weir__amqp_composite c;
    bool first;

    memset(s, 0, sizeof *s);
    s->there = true;
    atomic_fetch_add(&b->begun, 1);
    atomic_fetch_add(&b->alive, 1);
    first = blunt_is_first(b);
    s->room = first || !b->manners.window ? BLUNT_CREDIT : b->manners.window;
    weir__amqp_composite_init(&c, WEIR__AMQP_BEGIN);
    c.begin.remote_channel = weir__amqp_unsigned(WEIR__AMQP_USHORT, channel);
    c.begin.next_outgoing_id = blunt_uint(0);
    c.begin.incoming_window = blunt_uint(s->room);
    c.begin.outgoing_window = blunt_uint(INT32_MAX);
    c.begin.handle_max = blunt_uint(first ? !b->manners.narrow : b->manners.handle_max);
    blunt_say_amqp(b, channel, &c);
}

/* A map of these, each with this value. */
static inline struct weir__amqp_value blunt_map(const char *const names[], uint32_t count,
                                                struct weir__amqp_value value, uint8_t *space,
                                                size_t room)
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_writer w;
    struct weir__amqp_cursor at;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&w, space, room);
    mark = weir__amqp_put_open(&w);
    for (uint32_t i = 0; i < count; i++) {
        weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, names[i], strlen(names[i])));
        weir__amqp_put(&w, value);
    }
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2 * count);
    if (weir__amqp_writer_finish(&w, &bytes, NULL) != 0) abort();
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

/* What an idempotent producer asks for, and what weir serve tells at $cbs. */
static inline struct weir__amqp_value blunt_properties(const struct blunt *b, char first,
                                                       uint8_t *space, size_t room)
{
    static const char *const id[] = {"com.microsoft:producer-id"};
    static const char *const ports[] = {"weir:http", "weir:https"};

    if (first != '$' && !b->manners.no_marks)
        return blunt_map(id, 1, weir__amqp_signed(WEIR__AMQP_LONG, 7), space, room);
    if (first == '$' && b->manners.ours)
        return blunt_map(ports, 2, weir__amqp_unsigned(WEIR__AMQP_USHORT, 0), space, room);
    return (struct weir__amqp_value){0};
}

static inline void blunt_on_attach(struct blunt *b, uint16_t channel,
                                   struct weir__amqp_composite *c)
{
    struct blunt_session *s = &b->sessions[channel];
    uint32_t handle = (uint32_t)c->attach.handle.u;
    struct blunt_link *l = &s->links[handle % BLUNT_HANDLES];
    struct weir__bytes name = c->attach.name.bytes;
    uint8_t space[128];

    if (handle > (channel == 0 ? 1 : b->manners.handle_max)) atomic_fetch_add(&b->broken, 1);
    l->there = true;
    l->receives = !c->attach.role.u;
    snprintf(l->name, sizeof l->name, "%.*s", (int)name.len, (const char *)name.at);
    c->attach.role = weir__amqp_unsigned(WEIR__AMQP_BOOL, l->receives);
    c->attach.max_message_size =
        weir__amqp_unsigned(WEIR__AMQP_ULONG,
                            b->manners.message_max ? b->manners.message_max : 1 << 20);
    if (*l->name != '$') atomic_fetch_add(&b->attaches, 1);
    c->attach.properties = blunt_properties(b, *l->name, space, sizeof space);
    if (!l->receives) c->attach.initial_delivery_count = blunt_uint(0);
    blunt_say_amqp(b, channel, c);
    if (l->receives) blunt_flow(b, channel, handle);
}

static inline void blunt_accept(struct blunt *b, uint16_t channel,
                                const struct weir__amqp_composite *c)
{
    struct weir__amqp_composite d, accepted;
    uint8_t space[32];

    weir__amqp_composite_init(&accepted, WEIR__AMQP_ACCEPTED);
    weir__amqp_composite_init(&d, WEIR__AMQP_DISPOSITION);
    d.disposition.role = weir__amqp_unsigned(WEIR__AMQP_BOOL, WEIR__AMQP_RECEIVER);
    d.disposition.first = d.disposition.last = blunt_uint(b->sessions[channel].seen - 1);
    if (c->transfer.delivery_id.type != WEIR__AMQP_NULL)
        d.disposition.first = d.disposition.last = c->transfer.delivery_id;
    d.disposition.settled = weir__amqp_unsigned(WEIR__AMQP_BOOL, 1);
    d.disposition.state = weir__amqp_composite_value(&accepted, space, sizeof space);
    blunt_say_amqp(b, channel, &d);
}

/* The outcome comes first, and the window behind it, for the session and for no link. */
static inline void blunt_take_batch(struct blunt *b, uint16_t channel,
                                    const struct weir__amqp_composite *c)
{
    struct blunt_session *s = &b->sessions[channel];

    if (!c->transfer.more.u) {
        atomic_fetch_add(&b->batches, 1);
        if (!b->manners.took || !b->manners.took(b, channel, c)) blunt_accept(b, channel, c);
    }
    if (b->fd < 0 || s->room > 0) return;
    s->room = b->manners.window ? b->manners.window : BLUNT_CREDIT;
    blunt_flow(b, channel, -1);
}

static inline void blunt_on_transfer(struct blunt *b, uint16_t channel,
                                     const struct weir__amqp_composite *c,
                                     struct weir__bytes payload)
{
    struct blunt_session *s = &b->sessions[channel];
    const struct blunt_link *l = &s->links[c->transfer.handle.u % BLUNT_HANDLES];

    if (s->room == 0 || !l->there) atomic_fetch_add(&b->broken, 1);
    s->seen++;
    s->room--;
    if (payload.len > atomic_load(&b->largest)) atomic_store(&b->largest, (unsigned)payload.len);
    if (*l->name == '$')
        blunt_on_request(b, channel, l->name, payload);
    else
        blunt_take_batch(b, channel, c);
}

/* Of replies, the only ones that we send. */
static inline void blunt_on_disposition(struct blunt *b, const struct weir__amqp_composite *c)
{
    uint32_t first = (uint32_t)c->disposition.first.u, last = first;
    struct weir__amqp_composite outcome;

    if (c->disposition.last.type != WEIR__AMQP_NULL) last = (uint32_t)c->disposition.last.u;
    if (!c->disposition.role.u || !c->disposition.settled.u ||
        weir__amqp_composite_of(&c->disposition.state, WEIR__AMQP_KIND_SET(WEIR__AMQP_ACCEPTED),
                                &outcome, NULL) != 0)
        return;
    atomic_fetch_add(&b->accepted, last - first + 1);
}

static inline void blunt_on_detach(struct blunt *b, uint16_t channel, uint32_t handle)
{
    struct blunt_link *l = &b->sessions[channel].links[handle % BLUNT_HANDLES];

    if (*l->name != '$') atomic_fetch_add(&b->detaches, 1);
    if (b->manners.deaf || !l->there) return;
    l->there = false;
    blunt_detach(b, channel, handle);
}

static inline void blunt_on_frame(struct blunt *b, const struct weir__amqp_frame *f)
{
    struct weir__amqp_cursor in = weir__amqp_cursor_of(f->body);
    struct weir__amqp_composite c;

    if (f->body.len == 0) return;
    if (weir__amqp_composite_read(&in, UINT32_MAX, &c, NULL) != 0 || f->channel >= BLUNT_CHANNELS)
        abort();
    switch (c.kind) {
    case WEIR__AMQP_SASL_INIT:
        weir__amqp_composite_init(&c, WEIR__AMQP_SASL_OUTCOME);
        c.sasl_outcome.code = weir__amqp_unsigned(WEIR__AMQP_UBYTE, 0);
        blunt_say(b, WEIR__AMQP_FRAME_SASL, 0, &c, (struct weir__bytes){0});
        break;
    case WEIR__AMQP_OPEN: blunt_on_open(b); break;
    case WEIR__AMQP_BEGIN: blunt_on_begin(b, f->channel); break;
    case WEIR__AMQP_ATTACH: blunt_on_attach(b, f->channel, &c); break;
    case WEIR__AMQP_TRANSFER:
        blunt_on_transfer(b, f->channel, &c, weir__bytes_of(in.at, (size_t)(in.end - in.at)));
        break;
    case WEIR__AMQP_DISPOSITION: blunt_on_disposition(b, &c); break;
    case WEIR__AMQP_DETACH: blunt_on_detach(b, f->channel, (uint32_t)c.detach.handle.u); break;
    case WEIR__AMQP_END:
        b->sessions[f->channel].there = false;
        atomic_fetch_sub(&b->alive, 1);
        blunt_say_amqp(b, f->channel, &c);
        break;
    case WEIR__AMQP_CLOSE: blunt_say_amqp(b, 0, &c); break;
    default: break;
    }
}

/* ---- the road ---- */

static inline void blunt_greet(struct blunt *b, uint8_t layer)
{
    const uint8_t header[] = {'A', 'M', 'Q', 'P', layer, 1, 0, 0};
    struct weir__amqp_composite c;

    blunt_write(b, header, sizeof header);
    if (layer != 3) return;
    weir__amqp_composite_init(&c, WEIR__AMQP_SASL_MECHANISMS);
    c.sasl_mechanisms.mechanisms = weir__amqp_bytes(WEIR__AMQP_SYMBOL, "ANONYMOUS", 9);
    blunt_say(b, WEIR__AMQP_FRAME_SASL, 0, &c, (struct weir__bytes){0});
}

/* How many bytes of the input were used. */
static inline size_t blunt_take(struct blunt *b, size_t at)
{
    struct weir__bytes rest = weir__bytes_of(b->input + at, b->len - at);
    struct weir__amqp_frame f;
    const char *why;

    if (rest.len >= 8 && memcmp(rest.at, "AMQP", 4) == 0) {
        blunt_greet(b, rest.at[4]);
        return 8;
    }
    if (weir__amqp_frame_read(rest, BLUNT_FRAME_BYTES, &f, &why) != WEIR__AMQP_FRAME_WHOLE)
        return 0;
    if (b->manners.heard) b->manners.heard(weir__bytes_of(rest.at, f.size));
    blunt_on_frame(b, &f);
    return f.size;
}

static inline bool blunt_read(struct blunt *b)
{
    ssize_t n = recv(b->fd, b->input + b->len, BLUNT_INPUT_BYTES - b->len, 0);
    size_t at = 0, used;

    if (n <= 0) return false;
    b->len += (size_t)n;
    while ((used = blunt_take(b, at)) > 0) at += used;
    memmove(b->input, b->input + at, b->len - at);
    b->len -= at;
    return true;
}

static inline void blunt_take_in(struct blunt *b)
{
    b->fd = accept(b->listener, NULL, NULL);
    if (b->fd < 0 || setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) != 0)
        abort();
    b->len = 0;
    atomic_store(&b->begun, 0);
    atomic_store(&b->alive, 0);
    atomic_fetch_add(&b->connections, 1);
}

static inline void *blunt_run(void *arg)
{
    struct blunt *b = arg;

    while (!atomic_load(&b->stop)) {
        struct pollfd p = {b->fd < 0 ? b->listener : b->fd, POLLIN, 0};
        if (poll(&p, 1, BLUNT_TURN_MS) <= 0) continue;
        if (b->fd < 0) {
            blunt_take_in(b);
        } else if (!blunt_read(b)) {
            close(b->fd);
            b->fd = -1;
        }
    }
    if (b->fd >= 0) close(b->fd);
    return NULL;
}

static inline struct blunt *blunt_start(const struct blunt_manners *manners)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct blunt *b = calloc(1, sizeof *b);
    socklen_t len = sizeof own;

    if (!b || !(b->input = malloc(BLUNT_INPUT_BYTES))) abort();
    b->manners = *manners;
    b->fd = -1;
    b->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(b->listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(b->listener, 8) != 0 || getsockname(b->listener, (struct sockaddr *)&own, &len) != 0)
        abort();
    snprintf(b->address, sizeof b->address, "127.0.0.1:%u", ntohs(own.sin_port));
    if (pthread_create(&b->thread, NULL, blunt_run, b) != 0) abort();
    return b;
}

static inline void blunt_stop(struct blunt *b)
{
    atomic_store(&b->stop, true);
    pthread_join(b->thread, NULL);
    close(b->listener);
    free(b->input);
    free(b);
}

#endif
