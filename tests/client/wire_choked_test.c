/* The last words of a server that does not read. The client's output is full, so it takes no frames: what
 * had come by the time the server left counts all the same, and nothing new is sent to nobody. */
#define _GNU_SOURCE /* memmem */
#include "client/contract/place.h"

#include "client/blunt.h"

#define WIDE 255                        /* handles of a session */
#define HANG_S 60                       /* a test that takes longer is stuck */
#define LARGE_BYTES ((size_t)8 << 20)   /* more than kernels and the client's output take */
#define CROWD_BYTES ((size_t)272 << 10) /* more than the client's input */
#define REASON "The house is closed."

enum leaving {
    BY_END, /* and reads on */
    BY_RESET,
    BY_CROWD /* by a reset, behind more than the client takes in: it never reads so far */
};

/* Between the test and the server's thread. */
static struct {
    enum leaving how;
    atomic_bool small_came, large_came; /* the first batch as a whole; and a byte behind it */
    atomic_bool speak;                  /* the server's last words may come */
    atomic_bool read;                   /* the client has noticed the end */
    atomic_uint closes;                 /* that were written into the middle of the large batch */
    atomic_uint reasons;                /* lines of the log that tell it */
} scene;

static void await(const atomic_bool *what)
{
    while (!atomic_load(what)) poll(NULL, 0, 1);
}

/* ---- the server ---- */

static void say_close(struct blunt *b)
{
    struct weir__amqp_composite c, why;
    uint8_t space[128];

    weir__amqp_composite_init(&why, WEIR__AMQP_ERROR);
    why.error.condition = weir__amqp_bytes(WEIR__AMQP_SYMBOL, "amqp:connection:forced", 22);
    why.error.description = weir__amqp_bytes(WEIR__AMQP_STRING, REASON, strlen(REASON));
    weir__amqp_composite_init(&c, WEIR__AMQP_CLOSE);
    c.close.error = weir__amqp_composite_value(&why, space, sizeof space);
    blunt_say_amqp(b, 0, &c);
}

/* Ends, and reads what still comes: a part of the large batch, which has nothing but its own frames. */
static void end_and_read(struct blunt *b)
{
    static const uint8_t close_begins[] = {0x00, 0x53, 0x18};
    uint8_t *all = malloc(LARGE_BYTES);
    size_t len = 0;
    ssize_t n;

    if (!all) abort();
    shutdown(b->fd, SHUT_WR);
    await(&scene.read);
    while ((n = recv(b->fd, all + len, LARGE_BYTES - len, 0)) > 0) len += (size_t)n;
    if (memmem(all, len, close_begins, sizeof close_begins)) atomic_fetch_add(&scene.closes, 1);
    free(all);
}

/* Frames that say nothing. */
static void crowd(struct blunt *b)
{
    static const uint8_t empty[WEIR__AMQP_FRAME_HEAD] = {0, 0, 0, sizeof empty, 2, 0, 0, 0};

    for (size_t i = 0; i < CROWD_BYTES / sizeof empty; i++) blunt_write(b, empty, sizeof empty);
}

/* On the first connection the first batch is taken and nothing is read any more. When the large one is
 * behind it, it is accepted, more is asked for, and the server leaves. */
static bool leave(struct blunt *b, uint16_t channel, const struct weir__amqp_composite *c)
{
    struct pollfd p = {b->fd, POLLIN, 0};

    if (atomic_load(&b->connections) > 1) return false;
    atomic_store(&scene.small_came, true);
    while (poll(&p, 1, -1) <= 0) continue;
    atomic_store(&scene.large_came, true);
    await(&scene.speak);
    blunt_accept(b, channel, c);
    blunt_flow(b, channel, (int64_t)c->transfer.handle.u);
    say_close(b);
    if (scene.how == BY_END) end_and_read(b);
    if (scene.how == BY_CROWD) crowd(b);
    close(b->fd); /* a reset, where something was not read */
    b->fd = -1;
    return true;
}

/* ---- the client ---- */

static void note(enum weir_level level, const char *room, const char *line, void *user)
{
    (void)room, (void)user;
    if (level == WEIR_WARN && strstr(line, REASON)) atomic_fetch_add(&scene.reasons, 1);
}

static struct weir *open_noted(const struct blunt *b)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS, .log = note};
    struct weir *w;
    char text[256];

    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             b->address);
    assert_ok(weir_open(&w, text, &o, &err));
    return w;
}

struct outcome {
    atomic_bool there;
    int code;
};

static void landed(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    struct outcome *o = user;

    (void)at, (void)why;
    o->code = rc;
    atomic_store(&o->there, true);
}

static void send_one(struct weir_producer *p, size_t bytes, struct outcome *o)
{
    char *body = malloc(bytes);
    struct weir_event e = {.body = weir_bytes(body, bytes)};

    assert_non_null(body);
    memset(body, 'b', bytes);
    assert_ok(weir_producer_send_async(p, &e, 1, PATIENCE_MS, landed, o, &err));
    free(body);
}

static void assert_landed(struct outcome *o, int code)
{
    await(&o->there);
    assert_int_equal(o->code, code);
}

/* The first batch is on the server, the second under way, and the third was never sent: it comes by the
 * next connection. */
static void play(void)
{
    struct blunt *b = blunt_start(
        &(struct blunt_manners){.handle_max = WIDE, .message_max = 2 * LARGE_BYTES, .took = leave});
    struct weir *w = open_noted(b);
    struct weir_producer *p = open_pinned(w, 0), *q = open_pinned(w, 0);
    struct outcome first = {0}, large = {0}, later = {0};

    send_one(p, 1, &first);
    await(&scene.small_came);
    send_one(q, LARGE_BYTES, &large);
    await(&scene.large_came);
    send_one(p, 1, &later);
    atomic_store(&scene.speak, true);
    await(&first.there);
    atomic_store(&scene.read, true);
    assert_landed(&first, 0);
    assert_landed(&large, WEIR_EUNKNOWN);
    assert_landed(&later, 0);
    close_producer(p);
    close_producer(q);
    assert_ok(weir_close(w, &err));
    assert_int_equal(atomic_load(&scene.reasons), 1);
    assert_int_equal(atomic_load(&scene.closes), 0);
    assert_int_equal(atomic_load(&b->batches), 2);
    blunt_stop(b);
}

static void last_words_count_at_an_end(void **state)
{
    (void)state;
    scene.how = BY_END;
    play();
}

static void last_words_count_at_a_reset(void **state)
{
    (void)state;
    scene.how = BY_RESET;
    play();
}

static void last_words_count_when_there_are_too_many(void **state)
{
    (void)state;
    scene.how = BY_CROWD;
    play();
}

static int start(void **state)
{
    (void)state;
    alarm(HANG_S);
    memset(&scene, 0, sizeof scene);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(last_words_count_at_an_end, start),
        cmocka_unit_test_setup(last_words_count_at_a_reset, start),
        cmocka_unit_test_setup(last_words_count_when_there_are_too_many, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
