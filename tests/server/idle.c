/* idle - opens many AMQP connections and then does nothing with them:
 *
 *     idle PORT COUNT silent                 TCP only
 *     idle PORT COUNT open                   SASL ANONYMOUS, open
 *     idle PORT COUNT token AUDIENCE TOKEN   and a session, the $cbs pair and a token
 *
 * Prints "ready" when all of them are there, and waits for the end of its input; then it prints how
 * many the server has closed. They come from several loopback addresses, because each of these has
 * only some 28,000 ports. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PER_ADDRESS 4000
#define BYTES_MAX 8192
#define PATIENCE_S 20
#define COUNT_MAX 100000

#define OPEN 0x10
#define TRANSFER 0x14

struct bytes {
    uint8_t at[BYTES_MAX];
    size_t len;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void add(struct bytes *b, const void *at, size_t len)
{
    if (b->len + len > sizeof b->at) {
        fprintf(stderr, "idle: the message is too long\n");
        exit(1);
    }
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
    ADD(b, "\xb1"); /* str32 */
    add32(b, (uint32_t)strlen(text));
    add(b, text, strlen(text));
}

/* A performative with these fields, and what follows it. */
static void add_frame(struct bytes *b, uint8_t type, uint8_t code, uint32_t fields,
                      const struct bytes *list, const struct bytes *payload)
{
    add32(b, (uint32_t)(20 + list->len + (payload ? payload->len : 0)));
    add(b, (uint8_t[]){2, type, 0, 0, 0, 0x53, code, 0xd0}, 8); /* list32 */
    add32(b, (uint32_t)(4 + list->len));
    add32(b, fields);
    add(b, list->at, list->len);
    if (payload) add(b, payload->at, payload->len);
}

static void add_hello(struct bytes *b)
{
    struct bytes init = {.len = 0}, open = {.len = 0};

    ADD(b, "AMQP\3\1\0\0");
    ADD(&init, "\xa3\x09"
               "ANONYMOUS");
    add_frame(b, 1, 0x41, 1, &init, NULL);
    ADD(b, "AMQP\0\1\0\0");
    ADD(&open, "\xa1\x04"
               "idle\xa1\x09localhost");
    add_frame(b, 0, OPEN, 2, &open, NULL);
}

/* A session, both links of $cbs, and credit for the reply. */
static void add_cbs(struct bytes *b)
{
    static const char cbs[] = "\xc0\x07\x01\xa1\x04$cbs";
    struct bytes begin = {.len = 0}, sender = {.len = 0}, receiver = {.len = 0}, flow = {.len = 0};

    ADD(&begin, "\x40\x43\x52\x64\x52\x64"); /* null, 0, 100, 100 */
    add_frame(b, 0, 0x11, 4, &begin, NULL);
    ADD(&sender, "\xa1\x01s\x43\x42\x40\x40\x00\x53\x28\x45\x00\x53\x29");
    add(&sender, cbs, sizeof cbs - 1);
    ADD(&sender, "\x40\x40\x43");
    add_frame(b, 0, 0x12, 10, &sender, NULL);
    ADD(&receiver, "\xa1\x01r\x52\x01\x41\x40\x40\x00\x53\x28");
    add(&receiver, cbs, sizeof cbs - 1);
    ADD(&receiver, "\x00\x53\x29\x45");
    add_frame(b, 0, 0x12, 7, &receiver, NULL);
    ADD(&flow, "\x43\x52\x64\x43\x52\x64\x52\x01\x43\x52\x0a");
    add_frame(b, 0, 0x13, 7, &flow, NULL);
}

static void add_token(struct bytes *b, const char *audience, const char *token)
{
    struct bytes transfer = {.len = 0}, message = {.len = 0}, map = {.len = 0};

    ADD(&transfer, "\x43\x43\xa0\x01t\x43\x41"); /* handle, id, tag, format, settled */
    add_text(&map, "operation");
    add_text(&map, "put-token");
    add_text(&map, "type");
    add_text(&map, "servicebus.windows.net:sastoken");
    add_text(&map, "name");
    add_text(&map, audience);
    ADD(&message, "\x00\x53\x73\xc0\x04\x01\xa1\x01m\x00\x53\x74\xd1");
    add32(&message, (uint32_t)(4 + map.len));
    add32(&message, 6);
    add(&message, map.at, map.len);
    ADD(&message, "\x00\x53\x77");
    add_text(&message, token);
    add_frame(b, 0, TRANSFER, 5, &transfer, &message);
}

static int dial(unsigned port, unsigned number)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0) die("socket");
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number / PER_ADDRESS);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0) die("bind");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) die("connect");
    return fd;
}

static void receive(int fd, uint8_t *to, size_t len)
{
    ssize_t n = recv(fd, to, len, MSG_WAITALL);

    if (n == (ssize_t)len) return;
    fprintf(stderr, "idle: the server closed the connection\n");
    exit(1);
}

/* Reads frames, and headers between them, until one has this code. */
static void wait_for(int fd, uint8_t code)
{
    uint8_t head[8], body[BYTES_MAX];
    uint32_t size;

    do {
        receive(fd, head, sizeof head);
        body[2] = 0;
        if (memcmp(head, "AMQP", 4) == 0) continue;
        size = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
        if (size < 8 || size - 8 > sizeof body) die("a frame is too large");
        receive(fd, body, size - 8);
    } while (body[2] != code || memcmp(head, "AMQP", 4) == 0);
}

static bool is_closed(int fd)
{
    uint8_t bytes[BYTES_MAX];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) continue;
    return n == 0;
}

int main(int argc, char **argv)
{
    static int fds[COUNT_MAX];
    static struct bytes words;
    const char *mode = argc > 3 ? argv[3] : "";
    bool token = argc == 6 && strcmp(mode, "token") == 0;
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0, closed = 0;

    if (count == 0 || count > COUNT_MAX) return 2;
    if (strcmp(mode, "silent") != 0) add_hello(&words);
    if (token) add_cbs(&words);
    if (token) add_token(&words, argv[4], argv[5]);
    for (unsigned i = 0; i < count; i++) {
        fds[i] = dial((unsigned)strtoul(argv[1], NULL, 10), i);
        if (words.len && send(fds[i], words.at, words.len, 0) != (ssize_t)words.len) die("send");
        if (words.len) wait_for(fds[i], token ? TRANSFER : OPEN);
    }
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF) continue;
    for (unsigned i = 0; i < count; i++) closed += is_closed(fds[i]);
    printf("%u of %u closed\n", closed, count);
    return 0;
}
