/* settings_test.c - what a listener's options make of its connections: the kernel's settings, who is
 * sent away for whom, and the limit of an end that is not read. */
#include "io/listener.h"

#include <fcntl.h>

#include "echo.h"

#define MUCH (64 << 20)

/* Sees the connections of a listener, and keeps the last. */
struct watch {
    struct weir__loops *loops;
    struct weir__listener *listener;
    bool ends;       /* with much to say */
    bool makes_room; /* when it is asked */
    unsigned asked;  /* on the loop */
    size_t said;

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    unsigned opened, closed, failures;
    int no_delay, alive, idle_s, probe_s, timeout_ms;
    int status_flags, descriptor_flags;
    struct weir_error why;
};

static int option_of(const struct weir__tcp *tcp, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    assert_int_equal(getsockopt(tcp->fd, level, name, &value, &len), 0);
    return value;
}

static uint8_t *give_room(void *owner, size_t *room)
{
    (void)owner;
    *room = 0;
    return NULL;
}

static void ignore_bytes(void *owner, size_t bytes)
{
    (void)owner, (void)bytes;
}

static void ignore_end(void *owner)
{
    (void)owner;
}

static struct weir__bytes output(void *owner)
{
    static uint8_t zeros[65536];
    struct watch *w = owner;

    return weir__bytes_of(zeros, w->ends && w->said < MUCH ? sizeof zeros : 0);
}

static void sent(void *owner, size_t bytes)
{
    ((struct watch *)owner)->said += bytes;
}

static void closed(void *owner, const struct weir_error *why)
{
    struct watch *w = owner;

    weir__mutex_lock(&w->lock);
    w->closed++;
    w->why = *why;
    weir__cond_broadcast(&w->changed);
    weir__mutex_unlock(&w->lock);
}

static const struct weir__tcp_calls watch_calls = {NULL,   give_room, ignore_bytes, ignore_end,
                                                   output, sent,      closed};

static bool accepted(void *user, struct weir__tcp *tcp)
{
    struct watch *w = user;

    weir__tcp_adopt(tcp, &watch_calls, w);
    weir__mutex_lock(&w->lock);
    w->opened++;
    w->status_flags = fcntl(tcp->fd, F_GETFL);
    w->descriptor_flags = fcntl(tcp->fd, F_GETFD);
    w->no_delay = option_of(tcp, IPPROTO_TCP, TCP_NODELAY);
    w->alive = option_of(tcp, SOL_SOCKET, SO_KEEPALIVE);
    w->idle_s = option_of(tcp, IPPROTO_TCP, TCP_KEEPIDLE);
    w->probe_s = option_of(tcp, IPPROTO_TCP, TCP_KEEPINTVL);
    w->timeout_ms = option_of(tcp, IPPROTO_TCP, TCP_USER_TIMEOUT);
    weir__cond_broadcast(&w->changed);
    weir__mutex_unlock(&w->lock);
    if (w->ends) weir__tcp_end(tcp);
    return true;
}

static bool make_room(void *user)
{
    struct watch *w = user;

    w->asked++;
    return w->makes_room;
}

static void failed(void *user, const char *peer, const struct weir_error *why)
{
    struct watch *w = user;

    (void)peer;
    weir__mutex_lock(&w->lock);
    w->failures++;
    w->why = *why;
    weir__mutex_unlock(&w->lock);
}

static void start(struct watch *w, struct weir__listener_options o)
{
    weir__mutex_init(&w->lock);
    weir__cond_init(&w->changed);
    assert_int_equal(weir__loops_start(&w->loops, &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    o.address = "127.0.0.1:0";
    o.accepted = accepted;
    o.make_room = make_room;
    o.failed = failed;
    o.user = w;
    assert_int_equal(weir__listener_open(&w->listener, w->loops, &o, NULL), 0);
    assert_int_equal(weir__listener_begin(w->listener, NULL), 0);
}

static void wait_for(struct watch *w, const unsigned *count, unsigned wanted)
{
    weir__mutex_lock(&w->lock);
    while (*count < wanted)
        assert_true(weir__cond_wait(&w->changed, &w->lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&w->lock);
}

static void stop(struct watch *w)
{
    weir__loops_stop(w->loops);
    weir__listener_free(w->listener);
    weir__loops_free(w->loops);
    weir__cond_fini(&w->changed);
    weir__mutex_fini(&w->lock);
}

static int connect_to(struct watch *w)
{
    return client_connect(weir__listener_port(w->listener));
}

/* A peer that is silent is probed; one that is alive and does not read has stall_ms. */
static void the_kernel_is_told_of_the_limits(void **state)
{
    static const struct {
        uint32_t dead_ms, stall_ms;
        int idle_s, probe_s, timeout_ms;
    } rows[] = {
        {0, 0, 30, 10, 60000},    {9000, 5000, 9, 3, 9000},
        {9000, 9001, 9, 3, 9001}, {9000, WEIR__TCP_NEVER, 9, 3, 9000},
        {900, 800, 1, 1, 900},    {5000, 1, 5, 1, 5000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct watch w = {.asked = 0};
        int fd;
        start(&w, (struct weir__listener_options){
                      .limits = {.dead_ms = rows[i].dead_ms, .stall_ms = rows[i].stall_ms}});
        fd = connect_to(&w);
        wait_for(&w, &w.opened, 1);
        assert_true(w.no_delay && w.alive);
        assert_int_equal(w.idle_s, rows[i].idle_s);
        assert_int_equal(w.probe_s, rows[i].probe_s);
        assert_int_equal(w.timeout_ms, rows[i].timeout_ms);
        stop(&w);
        close(fd);
    }
}

static void who_may_never_be_dead_is_not_probed(void **state)
{
    struct watch w = {.asked = 0};
    int fd;

    (void)state;
    start(&w, (struct weir__listener_options){.limits = {.dead_ms = WEIR__TCP_NEVER}});
    fd = connect_to(&w);
    wait_for(&w, &w.opened, 1);
    assert_true(w.status_flags & O_NONBLOCK);
    assert_int_equal(w.descriptor_flags, FD_CLOEXEC);
    assert_true(w.no_delay);
    assert_false(w.alive);
    assert_int_equal(w.timeout_ms, 0);
    stop(&w);
    close(fd);
}

/* It is asked for when all places are taken, and only then. */
static void room_is_made_for_the_next(void **state)
{
    (void)state;
    for (int makes = 0; makes < 2; makes++) {
        struct watch w = {.makes_room = makes};
        int fd[3];
        char byte;
        start(&w, (struct weir__listener_options){.connections_max = 1});
        fd[0] = connect_to(&w);
        wait_for(&w, &w.opened, 1);
        for (int i = 1; i < 3; i++) {
            fd[i] = connect_to(&w);
            if (makes)
                wait_for(&w, &w.opened, 1 + (unsigned)i);
            else
                assert_true(client_receive(fd[i], &byte, 1) <= 0);
        }
        assert_int_equal(weir__listener_counts(w.listener).accepted, makes ? 3 : 1);
        assert_int_equal(weir__listener_counts(w.listener).refused, makes ? 0 : 2);
        weir__loops_stop(w.loops);
        assert_int_equal(w.asked, 2);
        assert_int_equal(w.failures, makes ? 0 : 1); /* not a line for each */
        stop(&w);
        for (int i = 0; i < 3; i++) close(fd[i]);
    }
}

/* A place may be free, but not the number of a descriptor. */
static void room_does_not_help_without_descriptors(void **state)
{
    struct watch w = {.makes_room = true};
    char byte;
    int fd;

    (void)state;
    start(&w, (struct weir__listener_options){.descriptor_max = 1});
    fd = connect_to(&w);
    assert_true(client_receive(fd, &byte, 1) <= 0);
    weir__loops_stop(w.loops);
    assert_int_equal(w.asked, 1);
    assert_int_equal(w.opened, 0);
    assert_string_equal(w.why.text, "turned away: no file descriptor is left: raise the limit "
                                    "(ulimit -n, LimitNOFILE=) (0 connections are open, 1 were "
                                    "turned away)");
    stop(&w);
    close(fd);
}

static void an_end_that_is_not_read_has_a_limit(void **state)
{
    struct watch w = {.ends = true};
    int fd;

    (void)state;
    start(&w, (struct weir__listener_options){.limits = {.end_ms = 50}});
    fd = connect_to(&w);
    wait_for(&w, &w.closed, 1);
    assert_int_equal(w.why.code, WEIR_ETIMEDOUT);
    assert_string_equal(w.why.text, "the last bytes took too long");
    assert_true(w.said < MUCH);
    stop(&w);
    close(fd);
}

static void nobody_listens_where_no_loop_runs(void **state)
{
    struct weir__listener_options o = {.address = "127.0.0.1:0", .accepted = accepted};
    struct watch w = {.asked = 0};
    struct weir__listener *late;
    struct weir_error err;

    (void)state;
    start(&w, (struct weir__listener_options){0});
    assert_int_equal(weir__listener_open(&late, w.loops, &o, &err), 0);
    weir__loops_stop(w.loops);
    assert_int_equal(weir__listener_begin(late, &err), WEIR_ECLOSED);
    assert_string_equal(err.text, "the loops have stopped");
    weir__listener_free(late);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_is_told_of_the_limits),
        cmocka_unit_test(who_may_never_be_dead_is_not_probed),
        cmocka_unit_test(room_is_made_for_the_next),
        cmocka_unit_test(room_does_not_help_without_descriptors),
        cmocka_unit_test(an_end_that_is_not_read_has_a_limit),
        cmocka_unit_test(nobody_listens_where_no_loop_runs),
        cmocka_unit_test(no_descriptor_is_left),
    };

    (void)echo_accepted, (void)echo_failed;
    note_descriptors();
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
