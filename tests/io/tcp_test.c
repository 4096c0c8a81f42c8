#include "io/tcp.h"

#include "echo.h"

#define MESSAGE 64
#define MUCH (8 << 20)

static void check_echo(int fd, const uint8_t *at, size_t len, size_t split)
{
    uint8_t back[MESSAGE];

    client_send(fd, at, split);
    client_send(fd, at + split, len - split);
    assert_int_equal(client_receive(fd, back, len), len);
    assert_memory_equal(back, at, len);
}

/* Every cut on the way in, and every small room to read into. */
static void echoes_with_every_split(void **state)
{
    uint8_t message[MESSAGE];

    (void)state;
    fill_pattern(message, sizeof message, 1);
    for (size_t room = 0; room < 5; room++) {
        struct echo e = {.room_max = room};
        int fd;
        echo_start(&e, (struct weir__listener_options){0});
        fd = echo_client(&e);
        for (size_t split = 0; split <= MESSAGE; split++) check_echo(fd, message, MESSAGE, split);
        close(fd);
        echo_wait(&e, 1, 1);
        assert_int_equal(e.why.code, 0);
        assert_non_null(strstr(e.peer, "127.0.0.1:"));
        echo_stop(&e);
    }
}

struct pump {
    int fd;
    const uint8_t *at;
    size_t len;
    struct weir__thread thread;
};

static void *pump_out(void *arg)
{
    struct pump *p = arg;

    client_send(p->fd, p->at, p->len);
    shutdown(p->fd, SHUT_WR);
    return NULL;
}

static void start_pump(struct pump *p)
{
    assert_int_equal(weir__thread_start(&p->thread, "pump", pump_out, p, NULL), 0);
}

static int make_pair(int family, const struct sockaddr *at, socklen_t len, int *far)
{
    int listener = socket(family, SOCK_STREAM, 0), near = socket(family, SOCK_STREAM, 0);
    struct sockaddr_storage bound;
    socklen_t bound_len = sizeof bound;

    if (bind(listener, at, len) != 0) {
        close(listener);
        close(near);
        return -1;
    }
    assert_int_equal(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&bound, &bound_len);
    assert_int_equal(connect(near, (struct sockaddr *)&bound, bound_len), 0);
    *far = accept(listener, NULL, NULL);
    close(listener);
    return near;
}

/* Two ends on this machine know that they are, by either family; one that has no other end is not
 * asked for more. */
static void ends_on_one_machine(void **state)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in in = {.sin_family = AF_INET};
    int near, far, alone = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    near = make_pair(AF_INET, (struct sockaddr *)&in, sizeof in, &far);
    assert_true(weir__address_shared(near) && weir__address_shared(far));
    close(near);
    close(far);
    near = make_pair(AF_INET6, (struct sockaddr *)&in6, sizeof in6, &far);
    assert_true(near < 0 || (weir__address_shared(near) && weir__address_shared(far)));
    if (near >= 0) close(near), close(far);
    assert_false(weir__address_shared(alone));
    close(alone);
    assert_false(weir__address_shared(-1));
}

/* Between them nothing is paced. */
static void no_pacing_within_a_machine(void **state)
{
    struct echo e = {.room_max = 0};
    uint8_t message[MESSAGE];
    int fd;

    (void)state;
    fill_pattern(message, MESSAGE, 1);
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    check_echo(fd, message, MESSAGE, 0);
    assert_string_equal(e.congestion, "reno");
    close(fd);
    echo_wait(&e, 1, 1);
    echo_stop(&e);
}

/* More than any turn and any buffer takes; the client's half-close comes back at the end. */
static void echoes_much_and_its_end(void **state)
{
    uint8_t *out = malloc(MUCH), *in = malloc(MUCH + 1);
    struct echo e = {.room_max = 0};
    struct pump p;

    (void)state;
    assert_true(out && in);
    fill_pattern(out, MUCH, 2);
    echo_start(&e, (struct weir__listener_options){0});
    p = (struct pump){.fd = echo_client(&e), .at = out, .len = MUCH};
    start_pump(&p);
    assert_int_equal(client_receive(p.fd, in, MUCH + 1), MUCH);
    assert_memory_equal(out, in, MUCH);
    weir__thread_join(&p.thread);
    close(p.fd);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, 0);
    assert_true(e.held_max <= ECHO_BUFFER);
    echo_stop(&e);
    free(out);
    free(in);
}

/* Somebody who does not read holds back only himself: the server reads no more than it may hold,
 * and serves others; when he reads at last, nothing is missing. */
static void a_slow_reader_is_held_back(void **state)
{
    uint8_t *out = malloc(MUCH), *in = malloc(MUCH);
    uint64_t before, after = 0;
    struct echo e = {.room_max = 0};
    uint8_t message[MESSAGE];
    struct pump p;
    int other;

    (void)state;
    assert_true(out && in);
    fill_pattern(out, MUCH, 3);
    fill_pattern(message, MESSAGE, 4);
    echo_start(&e, (struct weir__listener_options){0});
    p = (struct pump){.fd = echo_client(&e), .at = out, .len = MUCH};
    other = echo_client(&e);
    start_pump(&p);
    do { /* until the first moves no more */
        before = after;
        for (int i = 0; i < 50; i++) check_echo(other, message, MESSAGE, (size_t)i);
        weir__mutex_lock(&e.lock);
        after = e.received;
        weir__mutex_unlock(&e.lock);
    } while (after - before != 50 * (uint64_t)MESSAGE);
    assert_true(after < MUCH);
    assert_int_equal(client_receive(p.fd, in, MUCH), MUCH);
    assert_memory_equal(out, in, MUCH);
    weir__thread_join(&p.thread);
    close(p.fd);
    close(other);
    echo_wait(&e, 2, 2);
    echo_stop(&e);
    free(out);
    free(in);
}

static void *pump_until_closed(void *arg)
{
    struct pump *p = arg;

    while (send(p->fd, p->at, p->len, MSG_NOSIGNAL) > 0) continue;
    return NULL;
}

static void a_reader_that_stalls_is_closed(void **state)
{
    struct echo e = {.room_max = 0};
    uint8_t *out = calloc(1, MUCH);
    struct pump p;

    (void)state;
    assert_non_null(out);
    echo_start(&e, (struct weir__listener_options){.limits = {.stall_ms = 100}});
    p = (struct pump){.fd = echo_client(&e), .at = out, .len = MUCH};
    assert_int_equal(weir__thread_start(&p.thread, "pump", pump_until_closed, &p, NULL), 0);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_ETIMEDOUT);
    assert_string_equal(e.why.text, "the peer does not read");
    weir__thread_join(&p.thread);
    close(p.fd);
    echo_stop(&e);
    free(out);
}

static void who_says_nothing_is_closed_when_asked_for(void **state)
{
    struct echo e = {.room_max = 0};
    char byte;
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.limits = {.idle_ms = 50}});
    fd = echo_client(&e);
    assert_int_equal(client_receive(fd, &byte, 1), 0);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_ETIMEDOUT);
    assert_string_equal(e.why.text, "nothing came and nothing went");
    close(fd);
    echo_stop(&e);
}

/* One byte at a time is no reason to close, and costs nobody else anything. */
static void a_slow_sender_is_served(void **state)
{
    struct echo e = {.room_max = 0};
    uint8_t message[MESSAGE], back;
    int fd;

    (void)state;
    fill_pattern(message, MESSAGE, 5);
    echo_start(&e, (struct weir__listener_options){.limits = {.idle_ms = 5000}});
    fd = echo_client(&e);
    for (size_t i = 0; i < MESSAGE; i++) {
        client_send(fd, message + i, 1);
        assert_int_equal(client_receive(fd, &back, 1), 1);
        assert_int_equal(back, message[i]);
    }
    close(fd);
    echo_wait(&e, 1, 1);
    echo_stop(&e);
}

/* A client without TCP_NODELAY sends its second word when the first is acknowledged, for which the
 * kernel alone would take 40 ms, once it has seen questions and answers. */
static void small_words_are_acknowledged_at_once(void **state)
{
    struct echo e = {.mute_below = MESSAGE};
    uint8_t question[MESSAGE] = {0};
    int fd, off = 0, slow = 0;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
    for (unsigned i = 1; i <= 40; i++) {
        int64_t began;
        check_echo(fd, question, MESSAGE, MESSAGE);
        began = weir__mono_ns();
        client_send(fd, "one", 3);
        client_send(fd, "two", 3);
        echo_wait_received(&e, (uint64_t)i * (MESSAGE + 6));
        slow += weir__mono_ns() - began > 30000000;
    }
    assert_in_range(slow, 0, 10);
    close(fd);
    echo_wait(&e, 1, 1);
    echo_stop(&e);
}

/* The peer's machine has lost its power: nothing comes any more, not even an end. */
static void who_vanished_is_noticed(void **state)
{
    struct echo e = {.room_max = 0};
    int fd, on = 1;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.limits = {.dead_ms = 1000}});
    fd = echo_client(&e);
    echo_wait(&e, 1, 0);
    if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0) {
        print_message("only root can make a socket vanish\n");
        client_reset(fd);
    } else {
        close(fd);
    }
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_EUNREACHABLE);
    echo_stop(&e);
}

static void a_reset_is_told(void **state)
{
    struct echo e = {.room_max = 0};
    uint8_t message[MESSAGE] = {0};
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    check_echo(fd, message, MESSAGE, 0);
    client_reset(fd);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_EUNREACHABLE);
    assert_non_null(strstr(e.why.text, "Connection reset by peer"));
    echo_stop(&e);
}

/* Also to a connection that does not read. */
static void a_reset_is_told_while_paused(void **state)
{
    struct echo e = {.pause_after = MESSAGE};
    uint8_t message[MESSAGE] = {0};
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    check_echo(fd, message, MESSAGE, 0);
    client_send(fd, message, MESSAGE); /* stays unread */
    client_reset(fd);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_EUNREACHABLE);
    assert_int_equal(e.received, MESSAGE);
    echo_stop(&e);
}

/* A loop that waits here until it is let go. */
struct hold {
    struct weir__post post;
    atomic_bool held, let_go;
};

static void hold_loop(void *arg)
{
    struct hold *h = arg;

    atomic_store(&h->held, true);
    while (!atomic_load(&h->let_go)) sched_yield();
}

/* Whoever was called drops what came before a reset, when it sees both at once: the peer has begun again. */
static void words_before_a_reset_are_dropped(void **state)
{
    struct hold h = {.held = false};
    struct echo e = {.room_max = 0};
    uint8_t message[MESSAGE] = {0};
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    check_echo(fd, message, MESSAGE, 0);
    weir__post_init(&h.post, hold_loop, &h);
    assert_int_equal(weir__loop_post(weir__loops_at(e.loops, 0), &h.post), 0);
    while (!atomic_load(&h.held)) sched_yield();
    client_send(fd, message, MESSAGE);
    client_reset(fd);
    atomic_store(&h.let_go, true);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_EUNREACHABLE);
    assert_int_equal(e.received, MESSAGE);
    echo_stop(&e);
}

static uint64_t count_turns(struct echo *e)
{
    struct weir__loop_turns turns = {0};
    uint64_t sum = 0;

    weir__loops_turns(e->loops, &turns);
    for (unsigned b = 0; b < WEIR__LOOP_TURN_BUCKETS; b++) sum += turns.buckets[b];
    return sum;
}

/* The end of a peer that we do not read now is no reason to be awake all the time. */
static void an_unread_end_costs_nothing(void **state)
{
    struct echo e = {.pause_after = MESSAGE};
    uint8_t message[MESSAGE] = {0};
    uint64_t before;
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.limits = {.idle_ms = 300}});
    fd = echo_client(&e);
    check_echo(fd, message, MESSAGE, 0);
    before = count_turns(&e);
    client_send(fd, message, MESSAGE);
    shutdown(fd, SHUT_WR);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_ETIMEDOUT);
    assert_in_range(count_turns(&e) - before, 1, 50);
    close(fd);
    echo_stop(&e);
}

/* The last words arrive although the client is still talking: no reset overtakes them. */
static void last_words_are_heard(void **state)
{
    static const char words[] = "that is enough";
    uint8_t flood[100000] = {0};

    (void)state;
    for (int i = 0; i < 50; i++) {
        struct echo e = {.end_after = 1, .farewell = words};
        char heard[sizeof words] = "";
        int fd;
        echo_start(&e, (struct weir__listener_options){0});
        fd = echo_client(&e);
        client_send(fd, flood, sizeof flood);
        assert_int_equal(client_receive(fd, heard, sizeof heard), sizeof words - 1);
        assert_string_equal(heard, words);
        close(fd);
        echo_wait(&e, 1, 1);
        assert_int_equal(e.why.code, 0);
        echo_stop(&e);
    }
}

static void aborts_and_stops(void **state)
{
    struct echo e = {.abort_after = 1};
    char byte = 'x';
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 0);
    close(fd);
    echo_wait(&e, 1, 1);
    assert_int_equal(e.why.code, WEIR_ECANCELED);
    assert_string_equal(e.why.text, "aborted");
    fd = echo_client(&e);
    echo_wait(&e, 2, 1);
    echo_stop(&e);
    assert_string_equal(e.why.text, "the loop stops");
    assert_int_equal(client_receive(fd, &byte, 1), 0);
    close(fd);
}

static void an_end_that_nobody_answers_has_a_limit(void **state)
{
    struct echo e = {.end_after = 1};
    char bytes[2] = "x";
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.limits = {.end_ms = 50}});
    fd = echo_client(&e);
    client_send(fd, bytes, 1);
    assert_int_equal(client_receive(fd, bytes, 2), 1);
    echo_wait(&e, 1, 1); /* although the client is still there */
    assert_int_equal(e.why.code, 0);
    close(fd);
    echo_stop(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echoes_with_every_split),
        cmocka_unit_test(ends_on_one_machine),
        cmocka_unit_test(no_pacing_within_a_machine),
        cmocka_unit_test(echoes_much_and_its_end),
        cmocka_unit_test(a_slow_reader_is_held_back),
        cmocka_unit_test(a_reader_that_stalls_is_closed),
        cmocka_unit_test(who_says_nothing_is_closed_when_asked_for),
        cmocka_unit_test(a_slow_sender_is_served),
        cmocka_unit_test(small_words_are_acknowledged_at_once),
        cmocka_unit_test(who_vanished_is_noticed),
        cmocka_unit_test(a_reset_is_told),
        cmocka_unit_test(a_reset_is_told_while_paused),
        cmocka_unit_test(words_before_a_reset_are_dropped),
        cmocka_unit_test(an_unread_end_costs_nothing),
        cmocka_unit_test(last_words_are_heard),
        cmocka_unit_test(aborts_and_stops),
        cmocka_unit_test(an_end_that_nobody_answers_has_a_limit),
        cmocka_unit_test(no_descriptor_is_left),
    };

    note_descriptors();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
