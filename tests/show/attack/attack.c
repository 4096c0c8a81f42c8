/* attack - a peer of weir serve that means no good, or measures how others fare meanwhile.
 *
 *     attack stranger PORT SECONDS BYTES_PER_SECOND [HTTP_PORT]
 *     attack sender   PORT SECONDS BYTES_PER_SECOND AUDIENCE TOKEN HUB
 *         says the most expensive things that it knows, one kind after the other; comes back when it
 *         is thrown out. Prints how much it said, and how often it had to come back
 *     attack hold     PORT COUNT BYTES AUDIENCE TOKEN HUB
 *         COUNT connections, each with a message of which BYTES came and the last frame never does.
 *         Prints "ready", waits for the end of its input, prints how many the server closes
 *     attack crowd    PORT COUNT
 *         COUNT connections that say open and nothing more, all of one address; as hold
 *     attack measure  PORT SECONDS 0 AUDIENCE TOKEN HUB
 *         connects, shows a token, publishes an event and waits until it is stored, again and again.
 *         Prints how long that took, in microseconds */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAX ((size_t)4 << 20)
#define BODY_MAX 70000
#define PER_ADDRESS 250
#define COUNT_MAX 20000
#define SAMPLES_MAX 200000
#define PATIENCE_MS 20000
#define KIND_NS INT64_C(3000000000) /* each kind of words has its time */
#define STRANGER_FRAME 7000
#define FRAME 60000
#define MESSAGE ((size_t)1000000)
#define SETTLED 8000

enum { OPEN = 0x10, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END };

struct bytes {
    uint8_t *at;
    size_t len;
};

static const char *audience, *token, *hub;
static unsigned port, http_port;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- bytes ---- */

static void add(struct bytes *b, const void *at, size_t len)
{
    if (!b->at) b->at = malloc(BYTES_MAX);
    if (!b->at || b->len + len > BYTES_MAX) die("too long");
    memcpy(b->at + b->len, at, len);
    b->len += len;
}

#define ADD(b, text) add(b, text, sizeof text - 1)

static void add32(struct bytes *b, uint32_t v)
{
    add(b, (uint8_t[]){(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}, 4);
}

static void add_text(struct bytes *b, const char *text)
{
    ADD(b, "\xb1");
    add32(b, (uint32_t)strlen(text));
    add(b, text, strlen(text));
}

static void add_number(struct bytes *b, uint32_t n)
{
    ADD(b, "\x70");
    add32(b, n);
}

/* The frame of a performative with these fields, which are emptied, and what follows it. */
static void add_frame(struct bytes *b, uint8_t type, uint8_t code, uint32_t fields,
                      struct bytes *list, const void *payload, size_t payload_len)
{
    add32(b, (uint32_t)(20 + list->len + payload_len));
    add(b, (uint8_t[]){2, type, 0, 0, 0, 0x53, code, 0xd0}, 8);
    add32(b, (uint32_t)(4 + list->len));
    add32(b, fields);
    add(b, list->at, list->len);
    if (payload_len) add(b, payload, payload_len);
    list->len = 0;
}

static void add_hello(struct bytes *b)
{
    struct bytes f = {0};

    ADD(b, "AMQP\3\1\0\0");
    ADD(&f, "\xa3\x09"
            "ANONYMOUS");
    add_frame(b, 1, 0x41, 1, &f, NULL, 0);
    ADD(b, "AMQP\0\1\0\0");
    ADD(&f, "\xa1\x06"
            "attack\xa1\x09localhost");
    add_frame(b, 0, OPEN, 2, &f, NULL, 0);
    free(f.at);
}

static void add_terminus(struct bytes *b, uint8_t code, const char *address)
{
    size_t len = strlen(address);

    add(b, (uint8_t[]){0x00, 0x53, code, 0xc0, (uint8_t)(len + 3), 1, 0xa1, (uint8_t)len}, 8);
    add(b, address, len);
}

/* A link of ours: one that sends to an address, or receives from it. */
static void add_attach(struct bytes *b, uint32_t handle, bool receives, const char *name,
                       const char *address)
{
    struct bytes f = {0};

    add_text(&f, name);
    add_number(&f, handle);
    add(&f, receives ? "\x41\x40\x40" : "\x42\x40\x40", 3);
    if (receives) add_terminus(&f, 0x28, address);
    ADD(&f, "\x00\x53");
    add(&f, receives ? "\x29\x45" : "\x28\x45", 2);
    if (!receives) add_terminus(&f, 0x29, address);
    if (!receives) ADD(&f, "\x40\x40\x43");
    add_frame(b, 0, ATTACH, receives ? 7 : 10, &f, NULL, 0);
    free(f.at);
}

/* A session, both links of $cbs, and credit for replies. */
static void add_cbs(struct bytes *b)
{
    struct bytes f = {0};

    ADD(&f, "\x40\x43\x70\x7f\xff\xff\xff\x70\x7f\xff\xff\xff");
    add_frame(b, 0, BEGIN, 4, &f, NULL, 0);
    add_attach(b, 0, false, "s", "$cbs");
    add_attach(b, 1, true, "r", "$cbs");
    ADD(&f, "\x43\x70\x7f\xff\xff\xff\x43\x52\x64\x52\x01\x43\x52\x64");
    add_frame(b, 0, FLOW, 7, &f, NULL, 0);
    free(f.at);
}

static void add_transfer(struct bytes *b, uint32_t handle, uint32_t id, uint32_t format,
                         bool settled, bool more, const void *payload, size_t len)
{
    struct bytes f = {0};

    add_number(&f, handle);
    add_number(&f, id);
    ADD(&f, "\xa0\x01t");
    add_number(&f, format);
    add(&f, (uint8_t[]){settled ? 0x41 : 0x42, more ? 0x41 : 0x42}, 2);
    add_frame(b, 0, TRANSFER, 6, &f, payload, len);
    free(f.at);
}

static void add_token(struct bytes *b)
{
    struct bytes m = {0}, map = {0};

    add_text(&map, "operation");
    add_text(&map, "put-token");
    add_text(&map, "type");
    add_text(&map, "servicebus.windows.net:sastoken");
    add_text(&map, "name");
    add_text(&map, audience);
    ADD(&m, "\x00\x53\x73\xc0\x04\x01\xa1\x01m\x00\x53\x74\xd1");
    add32(&m, (uint32_t)(4 + map.len));
    add32(&m, 6);
    add(&m, map.at, map.len);
    ADD(&m, "\x00\x53\x77");
    add_text(&m, token);
    add_transfer(b, 0, 0, 0, true, false, m.at, m.len);
    free(m.at);
    free(map.at);
}

/* ---- what is expensive to read ---- */

/* A message whose value is a list of as many of these items as there is room for, and a bad end. */
static void add_items(struct bytes *b, const void *item, size_t item_len, size_t room, bool bad)
{
    uint32_t count = (uint32_t)((room - 32) / item_len);

    ADD(b, "\x00\x53\x77\xd0");
    add32(b, (uint32_t)(4 + count * item_len));
    add32(b, count + bad);
    for (uint32_t i = 0; i < count; i++) add(b, item, item_len);
}

/* A batch of the smallest events. */
static void add_batch(struct bytes *b, size_t room)
{
    while (b->len + 10 < room) ADD(b, "\x00\x53\x75\xa0\x04\x00\x53\x75\x40");
}

static const struct {
    const char *at;
    size_t len;
} items[] = {
    {"\xf0\x00\x00\x00\x05\x00\x00\x10\x00\x40", 10}, /* an array of 4,096 nulls */
    {"\xe0\x02\xff\x45", 4},                          /* one of 255 empty lists */
    {"\xc0\x01\x00", 3},                              /* an empty list with a size */
    {"\x40", 1},
    {"\x00\x53\x01\x45", 4}, /* described */
    {"\xa0\x00", 2},
    {"\x00\x44\x40", 3},                                      /* the smallest that is described */
    {"\x00\x00\x00\x00\x40\x40\x40\x40\x40", 9},              /* descriptors that are described */
    {"\xd0\x00\x00\x00\x04\x00\x00\x00\x00", 9},              /* an empty list with a large size */
    {"\xc0\x0a\x03\xc0\x01\x00\xc0\x01\x00\xc0\x01\x00", 12}, /* a list of lists */
    {"\xe0\x03\x01\x56\x00", 5},                              /* an array of one boolean */
    {"\xe0\x01\x00", 3},                                      /* one without a constructor */
    {"\xe0\x06\x00\x00\xe0\x01\x00\x40", 8},                  /* one that is described by another */
};

#define ITEMS (sizeof items / sizeof items[0])

/* ---- a connection ---- */

struct peer {
    int fd; /* -1: none */
    uint32_t next_id;
    uint32_t pinned; /* the id of a message that never ends; 0: none */
    uint64_t said, returns;
};

static int dial(unsigned to_port, unsigned number)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)to_port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (fd < 0) die("socket");
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number / PER_ADDRESS);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0) die("bind");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Reads and drops what is there. false: the peer has closed it. */
static bool drain(int fd)
{
    static uint8_t scratch[1 << 18];
    ssize_t n;

    while ((n = recv(fd, scratch, sizeof scratch, MSG_DONTWAIT)) > 0) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Says all of it and listens meanwhile, or the server would stop to read. */
static bool say(int fd, const uint8_t *at, size_t len)
{
    while (len > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
        ssize_t n;
        if (poll(&p, 1, PATIENCE_MS) <= 0) return false;
        if ((p.revents & POLLIN) && !drain(fd)) return false;
        if (p.revents & (POLLERR | POLLHUP)) return false;
        if (!(p.revents & POLLOUT)) continue;
        n = send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool hear(int fd, uint8_t *to, size_t len)
{
    while (len > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;
        if (poll(&p, 1, PATIENCE_MS) <= 0) return false;
        n = recv(fd, to, len, 0);
        if (n <= 0) return false;
        to += n;
        len -= (size_t)n;
    }
    return true;
}

/* Frames, and headers between them, until one has this code. */
static bool wait_for(int fd, uint8_t code)
{
    static uint8_t body[BODY_MAX];
    uint8_t head[8];
    uint32_t size;

    for (;;) {
        if (!hear(fd, head, sizeof head)) return false;
        if (memcmp(head, "AMQP", 4) == 0) continue;
        size = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
        if (size < 8 || size - 8 > sizeof body || !hear(fd, body, size - 8)) return false;
        if (size > 11 && body[2] == code) return true;
    }
}

/* Comes in: with a token, and a link to the hub, when there is one. */
static int enter(unsigned number)
{
    struct bytes b = {0};
    int fd = dial(port, number);
    bool good;

    add_hello(&b);
    add_cbs(&b);
    if (token) add_token(&b);
    good = say(fd, b.at, b.len) && wait_for(fd, token ? TRANSFER : ATTACH);
    b.len = 0;
    if (good && token) {
        add_attach(&b, 2, false, "out", hub);
        good = say(fd, b.at, b.len) && wait_for(fd, FLOW);
    }
    free(b.at);
    if (good) return fd;
    close(fd);
    return -1;
}

/* ---- attackers ---- */

static void add_message(struct bytes *b, struct peer *p, uint32_t handle, uint32_t format,
                        const struct bytes *m, size_t frame)
{
    for (size_t at = 0; at < m->len; at += frame) {
        size_t left = m->len - at, len = left < frame ? left : frame;
        add_transfer(b, handle, p->next_id, format, false, len < left, m->at + at, len);
    }
    p->next_id++;
}

/* Frames that are short and have an answer. */
static void add_churn(struct bytes *b, unsigned kind)
{
    struct bytes f = {0};

    for (int i = 0; i < 200; i++) {
        if (kind == 0) {
            add_attach(b, 3, true, "churn", "$cbs");
            ADD(&f, "\x52\x03\x41");
            add_frame(b, 0, DETACH, 2, &f, NULL, 0);
        } else if (kind == 1) {
            ADD(&f, "\x43\x70\x7f\xff\xff\xff\x43\x52\x64\x40\x40\x40\x40\x40\x41"); /* echo */
            add_frame(b, 0, FLOW, 10, &f, NULL, 0);
        } else {
            ADD(&f, "\x43\x43\x43\x52\x64"); /* the window shuts, */
            add_frame(b, 0, FLOW, 4, &f, NULL, 0);
            ADD(&f, "\x43\x70\x7f\xff\xff\xff\x43\x52\x64"); /* and opens */
            add_frame(b, 0, FLOW, 4, &f, NULL, 0);
            ADD(&f, "\x41\x43\x70\x7f\xff\xff\xff\x41\x00\x53\x24\x45"); /* all is settled */
            add_frame(b, 0, DISPOSITION, 5, &f, NULL, 0);
        }
    }
    free(f.at);
}

/* A message without an end, many that are settled behind it, and then, again and again, that these are:
 * the server has to look at all of them and has nothing to tell. */
static void add_settled(struct bytes *b, struct peer *p)
{
    static const uint8_t empty[] = {0x00, 0x53, 0x75, 0xa0, 0x00};
    struct bytes f = {0};

    if (!p->pinned) {
        add_attach(b, 4, false, "pin", hub);
        p->pinned = p->next_id;
        add_transfer(b, 4, p->next_id++, 0, false, true, empty, sizeof empty);
        for (int i = 0; i < SETTLED; i++)
            add_transfer(b, 2, p->next_id++, 0, true, false, empty, sizeof empty);
    }
    for (int i = 0; i < 1000; i++) {
        ADD(&f, "\x42");
        add_number(&f, p->pinned + 1);
        add_number(&f, p->pinned + SETTLED);
        ADD(&f, "\x41");
        add_frame(b, 0, DISPOSITION, 4, &f, NULL, 0);
    }
    free(f.at);
}

static void add_requests(struct bytes *b)
{
    for (int i = 0; i < 200; i++) ADD(b, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* The words of one kind, some tens of kilobytes or a large message. true: they are HTTP. */
static bool choose_words(struct bytes *b, struct peer *p, unsigned kind)
{
    unsigned kinds = ITEMS + 3 + (token ? ITEMS + 2 : http_port ? 1 : 0);
    struct bytes m = {0};

    kind %= kinds;
    b->len = 0;
    if (kind < ITEMS) {
        add_items(&m, items[kind].at, items[kind].len, STRANGER_FRAME, false);
        for (int i = 0; i < 4; i++) add_message(b, p, 0, 0, &m, STRANGER_FRAME);
    } else if (kind < ITEMS + 3) {
        add_churn(b, kind - ITEMS);
    } else if (!token) {
        add_requests(b);
    } else if (kind == 2 * ITEMS + 4) {
        add_settled(b, p);
    } else if (kind == 2 * ITEMS + 3) {
        add_batch(&m, MESSAGE);
        add_message(b, p, 2, 0x80013700, &m, FRAME);
    } else {
        add_items(&m, items[kind - ITEMS - 3].at, items[kind - ITEMS - 3].len, MESSAGE, true);
        add_message(b, p, 2, 0, &m, FRAME);
    }
    free(m.at);
    return !token && kind == ITEMS + 3;
}

/* Pieces of what it says, so that a large message has its rate, too. */
static bool say_slowly(struct peer *p, const struct bytes *b, int64_t began_ns, double rate)
{
    for (size_t at = 0; at < b->len;) {
        size_t len = b->len - at < 32768 ? b->len - at : 32768;
        int64_t due_ns = began_ns + (int64_t)((double)p->said / rate * 1e9),
                wait = due_ns - now_ns();
        if (wait > 0) nanosleep(&(struct timespec){wait / 1000000000, wait % 1000000000}, NULL);
        if (!say(p->fd, b->at + at, len)) return false;
        p->said += len;
        at += len;
    }
    return true;
}

static int attack(int64_t seconds, double rate, unsigned first_kind)
{
    int64_t began = now_ns(), until = began + seconds * 1000000000;
    struct peer p = {.fd = -1};
    struct bytes b = {0};
    int web = -1;

    for (int64_t now = began; now < until; now = now_ns()) {
        unsigned kind = first_kind + (unsigned)((now - began) / KIND_NS);
        int amqp = p.fd;
        if (amqp < 0) {
            p.next_id = token ? 1 : 0;
            p.pinned = 0;
        }
        if (amqp < 0 && (amqp = enter(0)) < 0) {
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            continue;
        }
        p.fd = amqp;
        if (choose_words(&b, &p, kind)) p.fd = web >= 0 ? web : (web = dial(http_port, 0));
        if (!say_slowly(&p, &b, began, rate)) {
            close(p.fd);
            p.returns++;
            *(p.fd == web ? &web : &amqp) = -1;
        }
        p.fd = amqp;
    }
    printf("said %llu bytes, thrown out %llu times\n", (unsigned long long)p.said,
           (unsigned long long)p.returns);
    return 0;
}

/* ---- those who hold on ---- */

/* Whether the server closes it within so long. */
static bool is_closed(int fd, int wait_ms)
{
    int64_t until = now_ns() + wait_ms * INT64_C(1000000);

    while (fd >= 0 && drain(fd)) {
        int64_t left_ms = (until - now_ns()) / 1000000;
        if (left_ms <= 0 ||
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)left_ms) <= 0)
            return false;
    }
    return true;
}

static int wait_and_count(const int *fds, unsigned count, int wait_ms)
{
    unsigned closed = 0;

    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF) continue;
    for (unsigned i = 0; i < count; i++) closed += is_closed(fds[i], wait_ms);
    printf("%u of %u closed\n", closed, count);
    return 0;
}

static int hold(unsigned count, size_t bytes)
{
    static int fds[COUNT_MAX];
    static uint8_t payload[FRAME];
    struct bytes b = {0};

    while (b.len < bytes) add_transfer(&b, 2, 1, 0, false, true, payload, sizeof payload);
    for (unsigned i = 0; i < count; i++) {
        fds[i] = enter(i);
        if (fds[i] >= 0) say(fds[i], b.at, b.len);
    }
    return wait_and_count(fds, count, PATIENCE_MS);
}

static int crowd(unsigned count)
{
    static int fds[COUNT_MAX];
    struct bytes b = {0};

    add_hello(&b);
    for (unsigned i = 0; i < count; i++) {
        fds[i] = dial(port, 0);
        say(fds[i], b.at, b.len);
        wait_for(fds[i], OPEN);
    }
    return wait_and_count(fds, count, 0);
}

/* ---- the others ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static bool publish_once(void)
{
    struct bytes b = {0};
    int fd = enter(0);
    bool good = fd >= 0;

    add_transfer(&b, 2, 1, 0, false, false,
                 "\x00\x53\x75\xa0\x05"
                 "event",
                 10);
    good = good && say(fd, b.at, b.len) && wait_for(fd, DISPOSITION);
    if (fd >= 0) close(fd);
    free(b.at);
    return good;
}

static int measure(int64_t seconds)
{
    static int64_t samples[SAMPLES_MAX];
    int64_t until = now_ns() + seconds * 1000000000;
    unsigned n = 0, failed = 0;

    while (n < SAMPLES_MAX && now_ns() < until) {
        int64_t began = now_ns();
        if (!publish_once()) {
            failed++;
            continue;
        }
        samples[n++] = (now_ns() - began) / 1000;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (n == 0) return 1;
    qsort(samples, n, sizeof samples[0], compare);
    printf("count=%u failed=%u p50=%lld p99=%lld max=%lld\n", n, failed, (long long)samples[n / 2],
           (long long)samples[n * 99 / 100], (long long)samples[n - 1]);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";
    unsigned long long number = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    double more = argc > 4 ? strtod(argv[4], NULL) : 0;
    bool known = argc == 8;

    if (argc > 2) port = (unsigned)strtoul(argv[2], NULL, 10);
    if (known) {
        audience = argv[5];
        token = argv[6];
        hub = argv[7];
    }
    if (argc == 6) http_port = (unsigned)strtoul(argv[5], NULL, 10);
    if (strcmp(what, "crowd") == 0 && number <= COUNT_MAX) return crowd((unsigned)number);
    if (strcmp(what, "stranger") == 0) return attack((int64_t)number, more, (unsigned)getpid());
    if (!known) return 2;
    if (strcmp(what, "sender") == 0) return attack((int64_t)number, more, (unsigned)getpid());
    if (strcmp(what, "measure") == 0) return measure((int64_t)number);
    if (strcmp(what, "hold") == 0 && number <= COUNT_MAX)
        return hold((unsigned)number, (size_t)more);
    return 2;
}
