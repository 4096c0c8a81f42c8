#define _GNU_SOURCE
#include "io/listener.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "io/state.h"

struct ear {
    struct weir__listener *listener;
    uv_poll_t poll;
    int fd;      /* -1: closed */
    bool polled; /* poll was initialised and not closed */
};

/* It lives on the first loop. What connections on other loops tell it is atomic. */
struct weir__listener {
    struct weir__listener_options options;
    struct weir__loops *loops;
    struct weir__loop *home;
    unsigned next; /* loop for the next connection */
    struct weir__bound bound;
    struct ear ears[WEIR__LISTENER_SOCKETS_MAX]; /* one for each socket */
    unsigned open_ears;                          /* polls that libuv still holds */
    int spare;                                   /* descriptor in reserve */
    bool listening;                              /* polls wait for connections */
    bool closing;
    int64_t told_ms; /* when a limit was last told; 0: never */
    struct weir__timer pause;
    struct weir__post beginning, closing_post, again;
    struct weir__resident resident;
    atomic_uint open, handshakes;
    atomic_uint descriptor_max;
    atomic_ullong accepted, refused;
    atomic_bool waiting; /* for a handshake to be over */

    /* weir__listener_begin waits for the loop; the lock guards these. */
    struct weir__mutex lock;
    struct weir__cond begun;
    bool answered;
    int answer;
    int failure; /* on the loop: answered when the polls are closed */
};

/* Accepting. */

static void on_knock(uv_poll_t *p, int status, int events);

static int listen_on(struct weir__listener *l, bool on)
{
    int rc = 0;

    if (l->listening == on || l->closing) return 0;
    l->listening = on;
    for (unsigned i = 0; i < l->bound.count && rc == 0; i++) {
        if (on)
            rc = uv_poll_start(&l->ears[i].poll, UV_READABLE, on_knock);
        else
            uv_poll_stop(&l->ears[i].poll);
    }
    return rc;
}

static void on_pause_over(void *arg)
{
    listen_on(arg, true);
}

static void pause_a_while(struct weir__listener *l)
{
    listen_on(l, false);
    weir__loop_timer_start(l->home, &l->pause,
                           weir__loop_now_ms(l->home) + WEIR__LISTENER_PAUSE_MS);
}

static void on_again(void *arg)
{
    struct weir__listener *l = arg;

    if (!l->pause.running) listen_on(l, true);
}

/* Too many handshakes: the last that is over wakes us. Looked at twice, because it may just have
 * been before we said that we wait. */
static bool handshakes_full(struct weir__listener *l)
{
    if (!l->options.tls || atomic_load(&l->handshakes) < l->options.handshakes_max) return false;
    atomic_store(&l->waiting, true);
    if (atomic_load(&l->handshakes) < l->options.handshakes_max) {
        atomic_store(&l->waiting, false);
        return false;
    }
    listen_on(l, false);
    return true;
}

void weir__listener_handshake_over(struct weir__listener *l)
{
    atomic_fetch_sub(&l->handshakes, 1);
    if (atomic_exchange(&l->waiting, false)) weir__loop_post(l->home, &l->again);
}

void weir__listener_gone(struct weir__listener *l)
{
    atomic_fetch_sub(&l->open, 1);
}

bool weir__listener_welcome(struct weir__listener *l, struct weir__tcp *c)
{
    return l->options.accepted(l->options.user, c);
}

struct weir__bytes weir__listener_mistaken(struct weir__listener *l, const char *peer,
                                           enum weir__sniff kind)
{
    if (!l->options.mistaken) return weir__bytes_of(NULL, 0);
    return l->options.mistaken(l->options.user, peer, kind);
}

void weir__listener_failed(struct weir__listener *l, const char *peer, const struct weir_error *why)
{
    if (l->options.failed) l->options.failed(l->options.user, peer, why);
}

/* An accept storm must not become a storm of words. */
static void tell_limit(struct weir__listener *l, const char *peer, const char *why)
{
    int64_t now_ms = weir__loop_now_ms(l->home);
    struct weir_error err;

    if (l->told_ms && now_ms - l->told_ms < WEIR__LISTENER_TELL_MS) return;
    l->told_ms = now_ms;
    weir__fail(&err, WEIR_ELIMIT,
               "turned away: %s (%u connections are open, %llu were turned away)", why,
               atomic_load(&l->open), (unsigned long long)atomic_load(&l->refused));
    weir__listener_failed(l, peer, &err);
}

static void refuse(struct weir__listener *l, int fd, const struct sockaddr *from, const char *why)
{
    char peer[WEIR__TCP_ADDRESS_MAX];

    weir__address_format(from, peer);
    atomic_fetch_add(&l->refused, 1);
    tell_limit(l, peer, why);
    close(fd);
}

static void on_arrival(void *arg)
{
    weir__tcp_start(arg);
}

#define NO_DESCRIPTOR "no file descriptor is left: raise the limit (ulimit -n, LimitNOFILE=)"

/* Why one cannot be let in; NULL: it can. */
static const char *find_limit(const struct weir__listener *l, int fd)
{
    const struct weir__listener_options *o = &l->options;
    bool full = atomic_load(&l->open) >= o->connections_max;
    bool high = (unsigned)fd >= atomic_load(&l->descriptor_max);
    bool made = (full || high) && o->make_room && o->make_room(o->user);

    if (full && !made) return "there are as many connections as may be";
    return high ? NO_DESCRIPTOR : NULL; /* whoever tries again finds the one that becomes free */
}

static void let_in(struct weir__listener *l, int fd, const struct sockaddr *from)
{
    struct weir__loop *to = weir__loops_at(l->loops, l->next++ % weir__loops_count(l->loops));
    const char *why = find_limit(l, fd);
    struct weir__tcp *c = NULL;

    if (!why) c = weir__tcp_new(to, fd, WEIR__TCP_HANDSHAKE, &l->options.limits);
    if (!c) {
        refuse(l, fd, from, why ? why : "out of memory");
        return;
    }
    c->listener = l;
    c->tls_context = l->options.tls;
    c->handshaking = l->options.tls != NULL;
    weir__address_format(from, c->peer);
    atomic_fetch_add(&l->open, 1);
    atomic_fetch_add(&l->accepted, 1);
    if (c->handshaking) atomic_fetch_add(&l->handshakes, 1);
    weir__post_init(&c->arrival, on_arrival, c);
    if (weir__loop_here(to)) {
        weir__tcp_start(c);
    } else if (weir__loop_post(to, &c->arrival) != 0) {
        weir__tcp_greeted(c);
        weir__listener_gone(l);
        weir__tcp_free(c);
    }
}

/* There is no descriptor for those who knock: the one in reserve lets us send one of them away, so
 * that they do not wait for nothing. Then a pause, or we would be called again at once. */
static void turn_away(struct weir__listener *l, int ear)
{
    struct sockaddr_storage from = {.ss_family = AF_INET};
    socklen_t len = sizeof from;
    int fd;

    if (l->spare >= 0) close(l->spare);
    fd = accept4(ear, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
    if (fd >= 0) refuse(l, fd, (struct sockaddr *)&from, NO_DESCRIPTOR);
    l->spare = weir__descriptor_move(open("/dev/null", O_RDONLY | O_CLOEXEC));
    pause_a_while(l);
}

/* Takes one in; false when there is no more to take for now. */
static bool accept_one(struct weir__listener *l, int ear)
{
    struct sockaddr_storage from = {.ss_family = AF_INET};
    socklen_t len = sizeof from;
    int fd = weir__descriptor_move(
        accept4(ear, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));

    if (fd >= 0) {
        let_in(l, fd, (struct sockaddr *)&from);
        return true;
    }
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) return true;
    if (errno == EMFILE || errno == ENFILE)
        turn_away(l, ear);
    else if (errno != EAGAIN && errno != EWOULDBLOCK)
        pause_a_while(l);
    return false;
}

static void on_knock(uv_poll_t *p, int status, int events)
{
    struct ear *e = p->data;
    struct weir__listener *l = e->listener;

    (void)events;
    l->home->active = true;
    weir__loop_begin_turn(l->home);
    if (status < 0) { /* libuv has stopped watching this one */
        l->listening = false;
        pause_a_while(l);
        return;
    }
    for (int i = 0; i < WEIR__LISTENER_ACCEPTS_PER_TURN; i++)
        if (handshakes_full(l) || !accept_one(l, e->fd)) return;
}

/* Beginning and closing, on the loop. */

static void answer(struct weir__listener *l, int rc)
{
    weir__mutex_lock(&l->lock);
    l->answered = true;
    l->answer = rc;
    weir__cond_signal(&l->begun);
    weir__mutex_unlock(&l->lock);
}

/* Nothing of it is on the loop any more. */
static void leave_home(struct weir__listener *l)
{
    weir__loop_leave(l->home, &l->resident);
    if (l->failure) answer(l, l->failure);
}

static void on_ear_closed(uv_handle_t *h)
{
    struct weir__listener *l = ((struct ear *)h->data)->listener;

    if (--l->open_ears == 0) leave_home(l);
}

static void close_ears(void *arg)
{
    struct weir__listener *l = arg;

    l->closing = true;
    weir__loop_timer_stop(l->home, &l->pause);
    for (unsigned i = 0; i < l->bound.count; i++) {
        struct ear *e = &l->ears[i];
        if (e->polled) uv_close((uv_handle_t *)&e->poll, on_ear_closed);
        if (e->fd >= 0) close(e->fd);
        e->polled = false;
        e->fd = -1;
    }
    if (l->open_ears == 0) leave_home(l);
}

static void watch_ears(void *arg)
{
    struct weir__listener *l = arg;
    int rc = 0;

    weir__loop_enter(l->home, &l->resident);
    for (unsigned i = 0; i < l->bound.count && rc == 0; i++) {
        rc = uv_poll_init(&l->home->uv, &l->ears[i].poll, l->ears[i].fd);
        if (rc != 0) break;
        l->ears[i].poll.data = &l->ears[i];
        l->ears[i].polled = true;
        l->open_ears++;
    }
    if (rc == 0) rc = listen_on(l, true);
    l->failure = rc;
    if (rc != 0)
        close_ears(l);
    else
        answer(l, 0);
}

static int wait_for_answer(struct weir__listener *l, struct weir_error *err)
{
    int rc;

    weir__mutex_lock(&l->lock);
    while (!l->answered) weir__cond_wait(&l->begun, &l->lock, INT64_MAX);
    rc = l->answer;
    weir__mutex_unlock(&l->lock);
    return rc == 0 ? 0 : weir__fail(err, WEIR_EIO, "listening: %s", uv_strerror(rc));
}

void weir__listener_keep(struct weir__listener *l, unsigned descriptor_max)
{
    atomic_store(&l->descriptor_max, descriptor_max ? descriptor_max : UINT_MAX);
}

static struct weir__listener *new_listener(struct weir__loops *loops,
                                           const struct weir__listener_options *o)
{
    struct weir__listener *l = calloc(1, sizeof *l);

    if (!l) return NULL;
    l->options = *o;
    if (!o->connections_max) l->options.connections_max = 16384;
    if (!o->handshakes_max) l->options.handshakes_max = 256;
    if (!o->backlog) l->options.backlog = 1024;
    weir__listener_keep(l, o->descriptor_max);
    l->loops = loops;
    l->home = weir__loops_at(loops, 0);
    l->spare = weir__descriptor_move(open("/dev/null", O_RDONLY | O_CLOEXEC));
    weir__timer_init(&l->pause, on_pause_over, l);
    weir__post_init(&l->beginning, watch_ears, l);
    weir__post_init(&l->closing_post, close_ears, l);
    weir__post_init(&l->again, on_again, l);
    l->resident = (struct weir__resident){.evict = close_ears, .arg = l};
    weir__mutex_init(&l->lock);
    weir__cond_init(&l->begun);
    return l;
}

int weir__listener_open(struct weir__listener **out, struct weir__loops *loops,
                        const struct weir__listener_options *o, struct weir_error *err)
{
    struct weir__listener *l = new_listener(loops, o);
    int rc;

    *out = NULL;
    assert(o->accepted);
    if (!l) return weir__fail(err, WEIR_ENOMEM, "listening on %s: out of memory", o->address);
    rc = weir__bind(o->address, l->options.backlog, &l->bound, err);
    l->options.address = NULL; /* was borrowed */
    for (unsigned i = 0; i < l->bound.count; i++)
        l->ears[i] = (struct ear){.listener = l, .fd = l->bound.fd[i]};
    if (rc == 0)
        *out = l;
    else
        weir__listener_free(l);
    return rc;
}

int weir__listener_begin(struct weir__listener *l, struct weir_error *err)
{
    if (weir__loop_post(l->home, &l->beginning) != 0)
        return weir__fail(err, WEIR_ECLOSED, "the loops have stopped");
    return wait_for_answer(l, err);
}

void weir__listener_close(struct weir__listener *l)
{
    weir__loop_post(l->home, &l->closing_post);
}

void weir__listener_free(struct weir__listener *l)
{
    if (!l) return;
    assert(!l->resident.in);
    for (unsigned i = 0; i < l->bound.count; i++)
        if (l->ears[i].fd >= 0) close(l->ears[i].fd);
    if (l->spare >= 0) close(l->spare);
    weir__cond_fini(&l->begun);
    weir__mutex_fini(&l->lock);
    free(l);
}

const char *weir__listener_address(const struct weir__listener *l)
{
    return l->bound.address;
}

unsigned weir__listener_port(const struct weir__listener *l)
{
    return l->bound.port;
}

struct weir__listener_counts weir__listener_counts(const struct weir__listener *l)
{
    return (struct weir__listener_counts){
        .accepted = atomic_load(&l->accepted),
        .refused = atomic_load(&l->refused),
        .open = atomic_load(&l->open),
        .handshakes = atomic_load(&l->handshakes),
    };
}
