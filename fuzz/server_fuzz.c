/* server_fuzz.c - two connections of a whole server, from their first bytes to what is on disk.
 *
 * Everything is real but the loop and the sockets (road.h), the disk (support/simfs.h) and the
 * clock. The input is a program: bytes and frames of any content, frames that make sense, and what
 * else happens to a server: time, a slow reader, a lost road, a hub that is deleted.
 *
 * Beyond not crashing: what is said is well-formed to the last string, nobody who is not known
 * costs much memory, whatever was taken in is answered for, and at the end nothing is left. */
#include "speech.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/simfs.h"

#define NOW_MS INT64_C(1699999000000) /* when the token is good */
#define PEERS 2
#define INPUTS_PER_HOUSE 200
#define BEFORE_TRUST_MAX 32768
#define BUDGET 65536 /* so little that it is used up */

/* What a peer has heard of a frame. */
struct listener {
    struct weir__buf heard;
    bool deaf;    /* this is no AMQP any more */
    bool partial; /* a message goes on in the next frame */
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
    struct weir__loops loops;
    struct weir__tcp tcp[PEERS];
    struct listener listener[PEERS];
    struct speaker speaker[PEERS];
    unsigned who; /* speaks now */
};

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
        struct speaker *s = &w->speaker[w->who];
        uint8_t op = take(p);
        if (op < 48)
            say_frame(s, op == 47, op & 1, take_bytes(p, take(p)));
        else if (op < 64)
            say(s, take_bytes(p, take(p)));
        else if (op < 160)
            sayings[op & 7](s, p);
        else
            happen(w, p, op & 7);
        road_turn(&w->loop, w->tcp, PEERS);
        check_memory(w);
    }
}

/* ---- birth and death ---- */

/* There is no memory of a crowd to give back. */
void weir__trim_ask(struct weir__server *s)
{
    (void)s;
}

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
    w->loops.only = &w->loop;
    w->server.loops = &w->loops;
    w->server.at = &w->at;
    weir__turn_queue_init(&w->at.queue);
    w->server.trace = mode & 1;
    w->server.token_ms = WEIR__SERVER_TOKEN_MS;
    w->at.server = &w->server;
    weir__budget_init(&w->server.budget,
                      &(struct weir__budget_limits){.bytes = BUDGET, .stranger_bytes = BUDGET / 4});
    weir__mutex_init(&w->server.lock);
    weir__report_init(&w->server);
    weir__cond_init(&w->server.changed);
    for (unsigned i = 0; i < PEERS; i++) {
        weir__buf_init(&w->listener[i].heard, SIZE_MAX);
        w->tcp[i] = (struct weir__tcp){.loop = &w->loop, .sink = listen, .user = &w->listener[i]};
        w->speaker[i].tcp = &w->tcp[i];
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
    ORACLE(!w->server.budget.used && !w->server.budget.strangers);
    weir__budget_fini(&w->server.budget);
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
