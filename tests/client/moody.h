/* moody.h - a server of one partition that does with batches what its script says, to see what a
 * client makes of it. It speaks AMQP by the engine, on a thread of its own, to one connection at a
 * time; tokens are good unless a test says otherwise.
 *
 * Of idempotent producers it stores what is next in sequence, accepts the last batch once more, and
 * rejects everything else as out of sequence, as the service does. */
#ifndef WEIR_TESTS_CLIENT_MOODY_H
#define WEIR_TESTS_CLIENT_MOODY_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/engine.h"
#include "base/thread.h"

#define MOODY_STEPS_MAX 4096
#define MOODY_STORED_MAX 4096
#define MOODY_TURN_MS 5

enum moody_mood {
    MOODY_STORE,      /* and accept: what happens behind the end of the script, too */
    MOODY_STORE_CUT,  /* and cut the road before a word about it */
    MOODY_STORE_FAIL, /* and say amqp:internal-error */
    MOODY_STORES = MOODY_STORE_FAIL,
    MOODY_FAIL,     /* say so without storing it */
    MOODY_CUT,      /* cut without storing it */
    MOODY_RELEASE,  /* give it back untouched */
    MOODY_LINGER,   /* cut the road, and store this and what had come behind it when a batch comes
                          by the next one, as when an old connection is read last */
    MOODY_BUSY,     /* server-busy */
    MOODY_REFUSE,   /* say it is too large, which is meant */
    MOODY_KEEP,     /* say nothing */
    MOODY_DISORDER, /* say that it is out of sequence */
    MOODY_THIRD     /* accept the two before, which were kept, in one word, and refuse this */
};

struct moody_batch {
    uint32_t sequence, count;
};

struct moody {
    pthread_t thread;
    atomic_bool stop;
    int listener, fd;
    char address[32];
    struct weir__amqp *engine;
    struct weir__amqp_link *replies;

    enum moody_mood script[MOODY_STEPS_MAX];
    unsigned steps, at;
    bool cut, lingering;
    struct moody_batch late[MOODY_STORED_MAX];
    unsigned late_count;
    uint32_t next, last_count;         /* of the idempotent producer: as a hub knows them */
    uint32_t stored[MOODY_STORED_MAX]; /* sequence number of each batch, or 0 */
    unsigned count, connections, attaches;

    /* A test's own: links that receive from us, as they are attached, and as they give credit; and a
     * capability that they are offered, or NULL; or several. */
    const char *offers;
    struct weir__amqp_value offers_all;
    struct weir__amqp_value told; /* what it tells of itself to who attaches $cbs; null: nothing */
    void (*attached)(struct moody *, const struct weir__amqp_event *);
    void (*flowed)(struct moody *, struct weir__amqp_link *);
    void (*echoed)(struct moody *, struct weir__amqp_session *); /* a flow that is of no link */
    /* Any link but those of $cbs, right behind the answer to its attach. */
    void (*taken)(struct moody *, struct weir__amqp_link *);
    void (*opened)(struct moody *); /* a connection, right behind the answer to its open */
    const int *statuses;            /* what $cbs says to the first tokens; to the others, 202 */
    unsigned status_count;
    unsigned silent;    /* the first connections, on which it says nothing */
    unsigned mute;      /* the connection on which nothing is said, or heard, from here on */
    atomic_uint tokens; /* that came */
};

/* ---- writing ---- */

static inline void moody_put(struct weir__amqp_writer *w, enum weir__amqp_type type,
                             const char *text)
{
    weir__amqp_put(w, weir__amqp_bytes(type, text, strlen(text)));
}

static inline struct weir__amqp_value moody_written(struct weir__amqp_writer *w)
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__bytes bytes;

    if (weir__amqp_writer_finish(w, &bytes, NULL) != 0) abort();
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

/* Where the producer stands. */
static inline struct weir__amqp_value moody_mark(const struct moody *m, uint8_t *space, size_t room)
{
    struct weir__amqp_writer w;
    size_t mark;

    weir__amqp_writer_init(&w, space, room);
    mark = weir__amqp_put_open(&w);
    moody_put(&w, WEIR__AMQP_SYMBOL, "com.microsoft:producer-id");
    weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_LONG, 7));
    moody_put(&w, WEIR__AMQP_SYMBOL, "com.microsoft:producer-epoch");
    weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_SHORT, 0));
    moody_put(&w, WEIR__AMQP_SYMBOL, "com.microsoft:producer-sequence-number");
    weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_INT, m->next ? (int64_t)m->next - 1 : 0));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 6);
    return moody_written(&w);
}

/* ---- events ---- */

static inline void moody_on_attach(struct moody *m, const struct weir__amqp_event *ev)
{
    bool ours = weir__amqp_link_role(ev->link);
    struct weir__bytes name = weir__amqp_link_name(ev->link);
    bool desk = name.len > 4 && memcmp(name.at, "$cbs", 4) == 0;
    struct weir__amqp_terms terms = {.max_message_size = 1048576, .credit = 100};
    uint8_t space[256];

    terms.properties = desk ? m->told : moody_mark(m, space, sizeof space);
    if (!desk) m->attaches++;
    if (ours == WEIR__AMQP_SENDER && desk) m->replies = ev->link;
    if (ours == WEIR__AMQP_SENDER && !desk && m->attached) m->attached(m, ev);
    weir__amqp_link_set_user(ev->link, desk ? NULL : m);
    if (m->offers && !desk)
        terms.offered_capabilities =
            weir__amqp_bytes(WEIR__AMQP_SYMBOL, m->offers, strlen(m->offers));
    if (m->offers_all.count && !desk) terms.offered_capabilities = m->offers_all;
    if (weir__amqp_accept(ev->link, &terms, NULL) != 0) abort();
    if (!desk && m->taken) m->taken(m, ev->link);
}

/* The answer of $cbs: "accepted", unless the test has another. */
static inline void moody_welcome(struct moody *m, const struct weir__amqp_delivery *d)
{
    struct weir__amqp_value null = {0};
    struct weir__amqp_properties p;
    struct weir__amqp_message request;
    struct weir__amqp_writer w;
    unsigned number = atomic_fetch_add(&m->tokens, 1);
    int status = number < m->status_count ? m->statuses[number] : 202;
    struct weir__bytes reply;
    uint8_t space[512];
    size_t mark;

    if (m->connections <= m->silent) return;
    if (weir__amqp_message_scan(&request, d->payload, WEIR__AMQP_DEEP, NULL) != 0 ||
        weir__amqp_message_properties(&request, &p, NULL) != 0)
        abort();
    weir__amqp_writer_init(&w, space, sizeof space);
    weir__amqp_put_descriptor(&w, 0x73);
    mark = weir__amqp_put_open(&w);
    for (int i = 0; i < 5; i++) weir__amqp_put(&w, null);
    weir__amqp_put(&w, p.message_id);
    weir__amqp_put_close(&w, mark, WEIR__AMQP_LIST, 6);
    weir__amqp_put_descriptor(&w, 0x74);
    mark = weir__amqp_put_open(&w);
    moody_put(&w, WEIR__AMQP_STRING, "status-code");
    weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_INT, status));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2);
    weir__amqp_put_descriptor(&w, 0x77);
    weir__amqp_put(&w, null);
    if (weir__amqp_writer_finish(&w, &reply, NULL) != 0) abort();
    if (weir__amqp_send(m->replies, reply, 0, true, NULL) != 0) abort();
}

/* The sequence number of a batch's first event, 0 when it has none, and how many they are. */
static inline struct moody_batch moody_read(const struct weir__amqp_delivery *d)
{
    struct weir__amqp_value map, v = {0};
    struct weir__amqp_batch_walk walk;
    struct weir__amqp_message message;
    struct weir__amqp_cursor rest;
    struct moody_batch out = {0, 0};
    struct weir__bytes event;

    if (weir__amqp_batch_start(&walk, d->payload, NULL) != 0) abort();
    for (; weir__amqp_batch_next(&walk, &event, NULL) == 0 && event.at; out.count++) {
        if (out.count > 0) continue;
        if (weir__amqp_message_scan_until(&message, event, WEIR__AMQP_PROPERTIES, &rest, NULL) != 0)
            abort();
        map = weir__amqp_message_map(&message, WEIR__AMQP_MESSAGE_ANNOTATIONS);
        if (weir__amqp_map_find(&map, "com.microsoft:producer-sequence-number", &v))
            out.sequence = (uint32_t)v.i;
    }
    return out;
}

/* false: it is out of sequence. */
static inline bool moody_store(struct moody *m, struct moody_batch b)
{
    bool known = b.sequence && m->next;

    if (known && b.sequence == m->next - m->last_count && b.count == m->last_count) return true;
    if (known && b.sequence != m->next) return false;
    if (m->count == MOODY_STORED_MAX) abort();
    m->stored[m->count++] = b.sequence;
    m->next = b.sequence + b.count;
    m->last_count = b.count;
    return true;
}

static inline void moody_say(struct weir__amqp_link *l, uint32_t id, const char *condition)
{
    struct weir__amqp_error error = weir__amqp_error_of(condition, "in no mood");

    weir__amqp_settle(l, id, id, WEIR__AMQP_REJECTED, &error);
}

/* What an old connection had brought comes in now. */
static inline void moody_store_late(struct moody *m)
{
    for (unsigned i = 0; i < m->late_count; i++) moody_store(m, m->late[i]);
    m->late_count = 0;
    m->lingering = false;
}

static inline void moody_linger(struct moody *m, struct moody_batch b)
{
    if (m->late_count == MOODY_STORED_MAX) abort();
    m->late[m->late_count++] = b;
    m->lingering = m->cut = true;
}

static inline void moody_on_batch(struct moody *m, struct weir__amqp_link *l,
                                  const struct weir__amqp_delivery *d)
{
    struct moody_batch b = moody_read(d);
    enum moody_mood mood;

    if (m->cut && m->lingering) moody_linger(m, b);
    if (m->cut) return;
    if (m->lingering) moody_store_late(m);
    mood = m->at < m->steps ? m->script[m->at++] : MOODY_STORE;
    if (mood <= MOODY_STORES && !moody_store(m, b)) {
        moody_say(l, d->id, "com.microsoft:out-of-order-sequence");
        return;
    }
    switch (mood) {
    case MOODY_STORE: weir__amqp_settle(l, d->id, d->id, WEIR__AMQP_ACCEPTED, NULL); break;
    case MOODY_STORE_CUT:
    case MOODY_CUT: m->cut = true; break;
    case MOODY_STORE_FAIL:
    case MOODY_FAIL: moody_say(l, d->id, "amqp:internal-error"); break;
    case MOODY_DISORDER: moody_say(l, d->id, "com.microsoft:out-of-order-sequence"); break;
    case MOODY_BUSY: moody_say(l, d->id, "com.microsoft:server-busy"); break;
    case MOODY_RELEASE: weir__amqp_settle(l, d->id, d->id, WEIR__AMQP_RELEASED, NULL); break;
    case MOODY_LINGER: moody_linger(m, b); break;
    case MOODY_KEEP: break;
    case MOODY_THIRD:
        weir__amqp_settle(l, d->id - 2, d->id - 1, WEIR__AMQP_ACCEPTED, NULL);
        moody_say(l, d->id, "amqp:link:message-size-exceeded");
        break;
    default: moody_say(l, d->id, "amqp:link:message-size-exceeded"); break;
    }
}

static inline void moody_on_event(struct moody *m, const struct weir__amqp_event *ev)
{
    switch (ev->type) {
    case WEIR__AMQP_EVENT_SASL: weir__amqp_sasl_answer(m->engine, true); break;
    case WEIR__AMQP_EVENT_OPEN:
        weir__amqp_trust(m->engine);
        if (m->opened) m->opened(m);
        break;
    case WEIR__AMQP_EVENT_ATTACH:
        if (ev->incoming) moody_on_attach(m, ev);
        break;
    case WEIR__AMQP_EVENT_FLOW:
        if (ev->link && weir__amqp_link_user(ev->link) && m->flowed) m->flowed(m, ev->link);
        if (!ev->link && m->echoed) m->echoed(m, ev->session);
        break;
    case WEIR__AMQP_EVENT_TRANSFER:
        if (weir__amqp_link_user(ev->link))
            moody_on_batch(m, ev->link, &ev->delivery);
        else
            moody_welcome(m, &ev->delivery);
        break;
    default: break;
    }
}

/* ---- the road ---- */

static inline void moody_hang_up(struct moody *m)
{
    struct linger hard = {.l_onoff = 1};

    if (m->fd < 0) return;
    setsockopt(m->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(m->fd);
    weir__amqp_free(m->engine);
    m->fd = -1;
    m->engine = NULL;
    m->cut = false;
}

static inline void moody_take_in(struct moody *m)
{
    struct weir__amqp_options o = {.idle_ms = 5000};

    m->fd = accept(m->listener, NULL, NULL);
    if (m->fd < 0 || weir__amqp_new(&m->engine, &o, NULL) != 0) abort();
    m->connections++;
}

/* false: the road has ended. */
static inline bool moody_read_some(struct moody *m)
{
    size_t room;
    uint8_t *to = weir__amqp_input(m->engine, &room);
    ssize_t n = recv(m->fd, to, room, 0);

    if (n <= 0) return false;
    weir__amqp_received(m->engine, (size_t)n);
    return true;
}

static inline bool moody_serve(struct moody *m)
{
    struct weir__amqp_event ev;
    struct weir__bytes out;

    if (m->mute == m->connections) return true;
    while (weir__amqp_next(m->engine, &ev)) moody_on_event(m, &ev);
    weir__amqp_tick(m->engine, weir__mono_ns() / 1000000);
    while (weir__amqp_next(m->engine, &ev)) moody_on_event(m, &ev);
    out = weir__amqp_output(m->engine);
    while (out.len > 0) {
        ssize_t n = send(m->fd, out.at, out.len, MSG_NOSIGNAL);
        if (n <= 0) return false;
        weir__amqp_sent(m->engine, (size_t)n);
        out = weir__amqp_output(m->engine);
    }
    return !m->cut && !weir__amqp_closed(m->engine);
}

static inline void *moody_run(void *arg)
{
    struct moody *m = arg;
    bool alive;

    while (!atomic_load(&m->stop)) {
        struct pollfd p = {m->fd < 0 ? m->listener : m->fd, POLLIN, 0};
        int n = poll(&p, 1, MOODY_TURN_MS);
        if (n > 0 && m->fd < 0) {
            moody_take_in(m);
            continue;
        }
        if (m->fd < 0) continue;
        alive = n == 0 || moody_read_some(m);
        if (!alive || !moody_serve(m)) moody_hang_up(m);
    }
    moody_hang_up(m);
    return NULL;
}

/* Everything but the script is empty. */
static inline void moody_start(struct moody *m)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof own;

    m->fd = -1;
    m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(m->listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(m->listener, 8) != 0 || getsockname(m->listener, (struct sockaddr *)&own, &len) != 0)
        abort();
    snprintf(m->address, sizeof m->address, "127.0.0.1:%u", ntohs(own.sin_port));
    if (pthread_create(&m->thread, NULL, moody_run, m) != 0) abort();
}

static inline void moody_stop(struct moody *m)
{
    atomic_store(&m->stop, true);
    pthread_join(m->thread, NULL);
    close(m->listener);
}

#endif
