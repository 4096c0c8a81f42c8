/* Every allocation of two engines in conversation fails once: each time somebody is told, or nothing
 * is missing. All that they hold is counted at any time, and what they held is given back. */
#include "amqp/state.h"
#include "pair.h"

#define ALLOCATIONS_MAX 2000
#define HELD_MAX 1024
#define SESSIONS 18 /* more than a page of slots */
#define SMALL 3     /* messages of one frame */
#define LARGE 40000 /* of more frames than a window lets through */
#define BACK 3000   /* the server's, of a few frames */
#define WINDOW 64
#define TEXTS                                                                                      \
    (sizeof "u" + sizeof "pw" + sizeof "here" + 2 * sizeof "weir") /* which do not count */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t each);
void *__real_realloc(void *at, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t each);
void *__wrap_realloc(void *at, size_t bytes);
void __wrap_free(void *at);

/* ---- memory that is counted, and runs out ---- */

static struct {
    void *at;
    size_t bytes;
} held[HELD_MAX];
static size_t held_count, held_bytes;
static uint64_t asked, fails_at;

static bool strikes(void)
{
    return ++asked == fails_at;
}

static void *keep(void *at, size_t bytes)
{
    assert_non_null(at);
    assert_true(held_count < HELD_MAX);
    held[held_count].at = at;
    held[held_count++].bytes = bytes;
    held_bytes += bytes;
    return at;
}

static void leave(const void *at)
{
    size_t i = 0;

    while (i < held_count && held[i].at != at) i++;
    if (!at || i == held_count) return; /* from elsewhere */
    held_bytes -= held[i].bytes;
    held[i] = held[--held_count];
}

void *__wrap_malloc(size_t bytes)
{
    return strikes() ? NULL : keep(__real_malloc(bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t each)
{
    return strikes() ? NULL : keep(__real_calloc(count, each), count * each);
}

void *__wrap_realloc(void *at, size_t bytes)
{
    if (strikes()) return NULL;
    leave(at);
    return keep(__real_realloc(at, bytes), bytes);
}

void __wrap_free(void *at)
{
    leave(at);
    __real_free(at);
}

/* ---- the conversation ---- */

static struct pair p;
static int first_error;      /* of a command */
static unsigned links_made;  /* which must end, each once */
static unsigned began, came; /* sessions; messages */
static unsigned refused;     /* links */
static struct weir__amqp_link *back;
static bool traces;
static uint64_t seen[2][2]; /* by the client and the server, of what came and of what went */

static void see(void *user, bool outgoing, struct weir__bytes frame)
{
    ((uint64_t *)user)[outgoing] += sum_of(frame);
}

static void note(int rc)
{
    if (first_error == 0) first_error = rc;
}

static void answer_attach(struct weir__amqp_link *l)
{
    struct weir__amqp_error no = error_text(WEIR__AMQP_COND_NOT_FOUND, "not here");
    struct weir__amqp_terms t = {.credit = 10};
    struct weir__bytes name = weir__amqp_link_name(l);
    int rc;

    links_made++;
    if (name.len == 2) {
        refused++;
        note(weir__amqp_refuse(l, &no, WEIR__AMQP_ECHO_NONE, NULL));
        return;
    }
    rc = weir__amqp_accept(l, &t, NULL);
    note(rc);
    if (rc != 0) weir__amqp_detach(l, &no);
    if (rc == 0 && *name.at == 'r') back = l;
}

static void serve(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_error no = error_text(WEIR__AMQP_COND_DECODE, "not this one");
    uint32_t id = ev->delivery.id;

    if (ev->type == WEIR__AMQP_EVENT_SASL) {
        weir__amqp_trust(s->e);
        weir__amqp_sasl_answer(s->e, true);
    }
    if (ev->type == WEIR__AMQP_EVENT_BEGIN) began++;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH) answer_attach(ev->link);
    if (ev->type == WEIR__AMQP_EVENT_DETACH && ev->link == back) back = NULL;
    if (ev->type == WEIR__AMQP_EVENT_TRANSFER) {
        came++;
        weir__amqp_settle(ev->link, id, id, id ? WEIR__AMQP_ACCEPTED : WEIR__AMQP_REJECTED,
                          id ? NULL : &no);
    }
}

static void receive(struct side *s, const struct weir__amqp_event *ev)
{
    uint32_t id = ev->delivery.id;

    (void)s;
    if (ev->type != WEIR__AMQP_EVENT_TRANSFER) return;
    came++;
    weir__amqp_settle(ev->link, id, id, WEIR__AMQP_RELEASED, NULL);
}

/* The road ends with one of them. */
static void lose(struct side *s, const struct side *other)
{
    if (!weir__amqp_closed(other->e)) return;
    weir__amqp_lost(s->e);
    take_events(s);
}

/* What it counts, of which some is there anyway. */
static size_t counted(const struct weir__amqp *e)
{
    size_t slots = e->ours.bytes + e->theirs.bytes;

    for (const struct weir__amqp_session *s = e->sessions; s; s = s->next)
        slots += s->ours.bytes + s->theirs.bytes;
    assert_int_equal(weir__amqp_buffered(e) + sizeof *e + slots, weir__amqp_memory(e));
    return weir__amqp_memory(e);
}

/* Twice, for what had no memory the first time. */
static void talk(void)
{
    settle_down(&p);
    settle_down(&p);
    lose(&p.client, &p.server);
    lose(&p.server, &p.client);
    assert_int_equal(counted(p.client.e) + counted(p.server.e) + TEXTS, held_bytes);
}

static void pass(int64_t now_ms)
{
    weir__amqp_tick(p.client.e, now_ms);
    weir__amqp_tick(p.server.e, now_ms);
    talk();
}

static int start(void)
{
    struct weir__amqp_options o = {.mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                   .after = {.frame_bytes = 512, .unsettled = WINDOW}};
    struct weir_error err = {0};
    int rc;

    if (traces) o.trace = see;
    o.trace_data = seen[1];
    rc = weir__amqp_new(&p.server.e, &o, &err);
    o.client = true;
    o.trace_data = seen[0];
    o.user = "u";
    o.password = "pw";
    o.hostname = "here";
    if (rc == 0) rc = weir__amqp_new(&p.client.e, &o, &err);
    if (rc != 0) {
        assert_true(*err.text != '\0');
        return rc;
    }
    p.client.on = receive;
    p.server.on = serve;
    weir__amqp_trust(p.client.e);
    pass(0);
    return 0;
}

static struct weir__amqp_link *attach(struct weir__amqp_session *s, const char *name, bool role)
{
    struct weir__amqp_terms t = {.name = weir__bytes_of(name, strlen(name)),
                                 .role = role,
                                 .credit = 10};
    struct weir__amqp_link *l = NULL;
    int rc = weir__amqp_attach(s, &t, &l, NULL);

    note(rc);
    links_made += rc == 0;
    return rc == 0 ? l : NULL;
}

static unsigned told(const struct side *s, enum weir__amqp_event_type type, bool error)
{
    unsigned count = 0;

    for (size_t i = 0; i < s->count; i++)
        count += s->told[i].type == type && (!error || *s->told[i].condition);
    return count;
}

static unsigned told_both(enum weir__amqp_event_type type, bool error)
{
    return told(&p.client, type, error) + told(&p.server, type, error);
}

/* Whether somebody has learned that not all went well. */
static bool somebody_knows(void)
{
    return first_error != 0 || told_both(WEIR__AMQP_EVENT_CLOSE, true) ||
           told_both(WEIR__AMQP_EVENT_END, true) ||
           told_both(WEIR__AMQP_EVENT_DETACH, true) > refused;
}

static bool is_well(void)
{
    return !somebody_knows() && !weir__amqp_closed(p.client.e);
}

static void send_message(struct weir__amqp_link *l, size_t bytes)
{
    static const uint8_t payload[LARGE];
    struct weir__bytes b = weir__bytes_of(payload, bytes);
    int rc = weir__amqp_send(l, b, 0, false, NULL);

    if (rc == WEIR_EBUSY) {
        talk();
        if (is_well()) rc = weir__amqp_send(l, b, 0, false, NULL);
    }
    note(rc);
}

/* What the server has to say, on the link that it sends on. */
static void send_back(void)
{
    if (back && is_well()) send_message(back, BACK);
    talk();
}

static void use_session(struct weir__amqp_session *s)
{
    struct weir__amqp_link *to = attach(s, "s", WEIR__AMQP_SENDER), *from = NULL;

    if (to) from = attach(s, "r", WEIR__AMQP_RECEIVER);
    talk();
    for (unsigned i = 0; i < SMALL && is_well(); i++) send_message(to, 10);
    talk();
    if (is_well()) send_message(to, LARGE);
    talk();
    send_back();
    pass(1000); /* silence, in which they give back what they do not need */
    pass(2000);
    pass(15000); /* they say that they are alive */
    if (is_well()) send_message(to, 1);
    send_back();
    if (is_well()) attach(s, "no", WEIR__AMQP_SENDER);
    talk();
    if (is_well()) weir__amqp_detach(from, NULL);
    talk();
    if (is_well()) weir__amqp_end(s, NULL);
    talk();
}

static void use_connection(void)
{
    struct weir__amqp_session *s[SESSIONS];
    unsigned made = 0;

    while (made < SESSIONS && is_well()) {
        int rc = weir__amqp_begin(p.client.e, &s[made], NULL);
        made += rc == 0;
        note(rc);
    }
    talk();
    if (is_well()) use_session(s[SESSIONS - 1]);
    if (is_well()) weir__amqp_close(p.client.e, NULL);
    talk();
}

/* ---- what is found afterwards ---- */

static void expect_all(void)
{
    assert_int_equal(came, SMALL + 4);
    assert_int_equal(told(&p.client, WEIR__AMQP_EVENT_SETTLE, true), 1);
    assert_int_equal(told(&p.client, WEIR__AMQP_EVENT_SETTLE, false), SMALL + 1);
    assert_int_equal(told(&p.server, WEIR__AMQP_EVENT_SETTLE, false), 2);
    assert_int_equal(began, SESSIONS);
    assert_int_equal(links_made, 6);
    assert_true(weir__amqp_closed(p.client.e) && weir__amqp_closed(p.server.e));
}

/* Everything ends, each once. */
static void end_all(void)
{
    unsigned sessions = told(&p.server, WEIR__AMQP_EVENT_BEGIN, false);

    weir__amqp_lost(p.client.e);
    weir__amqp_lost(p.server.e);
    take_events(&p.client);
    take_events(&p.server);
    assert_int_equal(told_both(WEIR__AMQP_EVENT_DETACH, false), links_made);
    assert_int_equal(told(&p.server, WEIR__AMQP_EVENT_END, false), sessions);
    assert_in_range(told(&p.client, WEIR__AMQP_EVENT_END, false), sessions, SESSIONS);
    assert_int_equal(told_both(WEIR__AMQP_EVENT_CLOSE, false), 2);
}

static void converse(void)
{
    memset(&p, 0, sizeof p);
    first_error = 0;
    links_made = began = came = refused = 0;
    back = NULL;
    if (start() == 0) {
        use_connection();
        if (!somebody_knows()) expect_all();
        end_all();
    } else {
        first_error = WEIR_ENOMEM;
        assert_null(p.client.e);
    }
    pair_fini(&p);
    assert_int_equal(held_count, 0);
}

static void memory_may_run_out_anywhere(void **state)
{
    unsigned knew = 0;

    (void)state;
    fails_at = 0;
    converse();
    assert_false(somebody_knows());
    do {
        assert_true(++fails_at < ALLOCATIONS_MAX);
        asked = 0;
        converse();
        knew += somebody_knows();
    } while (asked >= fails_at);
    print_message("%llu allocations failed, one at a time; %u were told\n",
                  (unsigned long long)fails_at - 1, knew);
    assert_true(fails_at > 50);
}

/* Each frame of one is a frame that the other sees. */
static void all_frames_are_seen_by_both(void **state)
{
    (void)state;
    fails_at = 0;
    traces = true;
    converse();
    traces = false;
    assert_false(somebody_knows());
    assert_true(seen[0][0] && seen[0][1]);
    assert_int_equal(seen[0][0], seen[1][1]);
    assert_int_equal(seen[0][1], seen[1][0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(all_frames_are_seen_by_both),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
