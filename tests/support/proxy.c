/* proxy.c - see proxy.h. One poll over a listener, a pipe to wake it and up to ROADS_MAX pairs of
 * sockets. Bytes are passed on at once, with writes that block for a moment: a test's amounts fit
 * into the sockets' buffers, and what does not is the slow reader that it is meant to be. */
#define _GNU_SOURCE
#include "support/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/dice.h"

#define ROADS_MAX 16
#define PIECE_BYTES 65536
#define TRICKLE_BYTES 7
#define CORRUPT_ONE_IN 4 /* pieces */
#define RECORD_HEAD_BYTES 5
#define RECORD_SECRET 23 /* the type of what TLS has encrypted */

enum { CLIENT, SERVER, SIDES };

/* Where one direction is in its records of TLS. */
struct records {
    uint8_t head[RECORD_HEAD_BYTES];
    size_t head_len, left;
};

struct road {
    int fd[SIDES]; /* -1: closed */
    bool ended[SIDES];
    uint64_t cut_in;               /* bytes from now; 0: not to be cut */
    struct records records[SIDES]; /* of what comes from there */
    bool lied;                     /* and nobody has shown that they noticed */
};

struct proxy {
    pthread_t thread;
    int listener;
    int wake[2];
    struct sockaddr_in target;
    char address[PROXY_ADDRESS_BYTES];
    uint64_t dice;
    struct road roads[ROADS_MAX];
    atomic_int fault;
    atomic_uint_fast64_t cut_bytes;
    atomic_uint cuts, found;
    atomic_bool cut_now, stop;
};

const char *proxy_address(const struct proxy *p)
{
    return p->address;
}

unsigned proxy_cuts(struct proxy *p)
{
    return atomic_load(&p->cuts);
}

unsigned proxy_found(struct proxy *p)
{
    return atomic_load(&p->found);
}

static void wake(struct proxy *p)
{
    if (write(p->wake[1], "", 1) != 1) abort();
}

void proxy_set(struct proxy *p, enum proxy_fault fault, uint64_t cut_bytes)
{
    atomic_store(&p->cut_bytes, cut_bytes);
    atomic_store(&p->fault, (int)fault);
    wake(p);
}

void proxy_cut_now(struct proxy *p)
{
    atomic_store(&p->cut_now, true);
    wake(p);
}

/* ---- roads ---- */

static void close_road(struct road *r, bool reset)
{
    struct linger hard = {.l_onoff = 1};

    for (int side = 0; side < SIDES; side++) {
        if (r->fd[side] < 0) continue;
        if (reset) setsockopt(r->fd[side], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(r->fd[side]);
        r->fd[side] = -1;
    }
}

static void cut(struct proxy *p, struct road *r)
{
    close_road(r, true);
    atomic_fetch_add(&p->cuts, 1);
}

static struct road *free_road(struct proxy *p)
{
    for (int i = 0; i < ROADS_MAX; i++)
        if (p->roads[i].fd[CLIENT] < 0 && p->roads[i].fd[SERVER] < 0) return &p->roads[i];
    return NULL;
}

static uint64_t next_cut(struct proxy *p)
{
    uint64_t bytes = atomic_load(&p->cut_bytes);

    if (atomic_load(&p->fault) != PROXY_CUT || bytes == 0) return 0;
    return 1 + dice_roll(&p->dice, bytes);
}

static void accept_road(struct proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    struct road *r = free_road(p);
    int server;

    if (client < 0) return;
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!r || connect(server, (struct sockaddr *)&p->target, sizeof p->target) != 0) {
        close(client);
        close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *r = (struct road){.fd = {client, server}, .cut_in = next_cut(p)};
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000};

    nanosleep(&t, NULL);
}

/* Goes over a piece; whether the byte at `wanted` of it is inside an encrypted record. */
static bool walk(struct records *k, const char *at, size_t len, size_t wanted)
{
    bool inside = false;

    for (size_t i = 0, n; i < len; i += n) {
        n = 1;
        if (k->left > 0) {
            n = k->left < len - i ? k->left : len - i;
            k->left -= n;
            inside |= k->head[0] == RECORD_SECRET && wanted >= i && wanted < i + n;
            continue;
        }
        k->head[k->head_len++] = (uint8_t)at[i];
        if (k->head_len < RECORD_HEAD_BYTES) continue;
        k->head_len = 0;
        k->left = (size_t)k->head[3] << 8 | k->head[4];
    }
    return inside;
}

/* Not where a record says how long it is: whoever believes that waits for bytes that do not come, and
 * notices when patience ends. */
static void lie(struct proxy *p, struct road *r, int from, char *at, size_t len)
{
    bool wants =
        atomic_load(&p->fault) == PROXY_CORRUPT && dice_roll(&p->dice, CORRUPT_ONE_IN) == 0;
    size_t place = wants ? dice_roll(&p->dice, len) : 0;

    if (!walk(&r->records[from], at, len, place) || !wants) return;
    at[place] ^= (char)(1 + dice_roll(&p->dice, 255));
    r->lied = true;
}

/* One of its ends has closed it. */
static void note_end(struct proxy *p, struct road *r)
{
    if (r->lied) atomic_fetch_add(&p->found, 1);
    r->lied = false;
}

/* What became of a piece: false, the road is closed. */
static bool pass(struct proxy *p, struct road *r, int to, char *at, size_t len)
{
    int fault = atomic_load(&p->fault);

    if (fault == PROXY_BLACK_HOLE) return true;
    if (fault == PROXY_DELAY) pause_ms(PROXY_DELAY_MS);
    if (fault == PROXY_CUT && r->cut_in == 0) r->cut_in = next_cut(p);
    if (fault == PROXY_CUT && r->cut_in <= len) {
        write_all(r->fd[to], at, r->cut_in);
        cut(p, r);
        return false;
    }
    if (r->cut_in > len) r->cut_in -= len;
    if (write_all(r->fd[to], at, len)) return true;
    close_road(r, false);
    return false;
}

static void end_side(struct road *r, int from)
{
    r->ended[from] = true;
    shutdown(r->fd[!from], SHUT_WR);
    if (r->ended[CLIENT] && r->ended[SERVER]) close_road(r, false);
}

static void move_piece(struct proxy *p, struct road *r, int from)
{
    static _Thread_local char piece[PIECE_BYTES];
    size_t most = atomic_load(&p->fault) == PROXY_TRICKLE ? TRICKLE_BYTES : sizeof piece;
    ssize_t n = recv(r->fd[from], piece, most, 0);

    if (n > 0)
        lie(p, r, from, piece, (size_t)n);
    else
        note_end(p, r);
    if (n > 0)
        pass(p, r, !from, piece, (size_t)n);
    else if (n == 0)
        end_side(r, from);
    else
        close_road(r, true);
}

/* ---- the thread ---- */

static void obey(struct proxy *p)
{
    char bytes[64];

    while (read(p->wake[0], bytes, sizeof bytes) > 0) continue;
    if (atomic_exchange(&p->cut_now, false))
        for (int i = 0; i < ROADS_MAX; i++)
            if (p->roads[i].fd[CLIENT] >= 0) cut(p, &p->roads[i]);
    if (atomic_load(&p->fault) == PROXY_HALF_CLOSE)
        for (int i = 0; i < ROADS_MAX; i++)
            if (p->roads[i].fd[CLIENT] >= 0 && !p->roads[i].ended[SERVER])
                end_side(&p->roads[i], SERVER);
}

static void turn(struct proxy *p)
{
    struct pollfd polls[2 + ROADS_MAX * SIDES] = {{p->listener, POLLIN, 0},
                                                  {p->wake[0], POLLIN, 0}};

    for (int i = 0; i < ROADS_MAX * SIDES; i++) {
        struct road *r = &p->roads[i / SIDES];
        int side = i % SIDES;
        polls[2 + i] = (struct pollfd){r->ended[side] ? -1 : r->fd[side], POLLIN, 0};
    }
    if (poll(polls, 2 + ROADS_MAX * SIDES, -1) < 0) return;
    if (polls[1].revents) obey(p);
    for (int i = 0; i < ROADS_MAX * SIDES; i++) {
        struct road *r = &p->roads[i / SIDES];
        if (polls[2 + i].revents && r->fd[i % SIDES] == polls[2 + i].fd)
            move_piece(p, r, i % SIDES);
    }
    if (polls[0].revents) accept_road(p);
}

static void *run(void *arg)
{
    struct proxy *p = arg;

    while (!atomic_load(&p->stop)) turn(p);
    return NULL;
}

static int listen_somewhere(struct proxy *p)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof own;

    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(p->listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(p->listener, ROADS_MAX) != 0 ||
        getsockname(p->listener, (struct sockaddr *)&own, &len) != 0)
        return -1;
    snprintf(p->address, sizeof p->address, "127.0.0.1:%u", ntohs(own.sin_port));
    return pipe2(p->wake, O_CLOEXEC | O_NONBLOCK);
}

struct proxy *proxy_start(const char *target, uint64_t seed)
{
    struct proxy *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    p->dice = seed;
    p->target = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)atoi(strrchr(target, ':') + 1)),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < ROADS_MAX; i++) p->roads[i].fd[CLIENT] = p->roads[i].fd[SERVER] = -1;
    if (listen_somewhere(p) != 0 || pthread_create(&p->thread, NULL, run, p) != 0) {
        perror("proxy");
        abort();
    }
    return p;
}

void proxy_stop(struct proxy *p)
{
    if (!p) return;
    atomic_store(&p->stop, true);
    wake(p);
    pthread_join(p->thread, NULL);
    for (int i = 0; i < ROADS_MAX; i++) close_road(&p->roads[i], true);
    close(p->listener);
    close(p->wake[0]);
    close(p->wake[1]);
    free(p);
}
