/* A server whose clients fall silent: those that are there and say nothing, and those whose machine is
 * gone, for whom TCP has to notice. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/server.h"
#include "support/patience.h"
#include "support/tempdir.h"

#define IDLE_MS 300
#define PATIENCE_S 20
#define POWER_LOSS_MS 60000 /* within which a machine without power is noticed */
#define DESCRIPTORS 256

#define SPEECH /* open, begin, attach of a sender to $cbs */                                       \
    "AMQP\0\1\0\0"                                                                                 \
    "\0\0\0\x12\2\0\0\0\0\x53\x10\xc0\5\1\xa1\2me"                                                 \
    "\0\0\0\x14\2\0\0\0\0\x53\x11\xc0\7\4\x40\x43\x52\x64\x52\x64"                                 \
    "\0\0\0\x28\2\0\0\0\0\x53\x12\xc0\x1b\x0a\xa1\1s\x43\x42\x40\x40\0\x53\x28\x45"                \
    "\0\x53\x29\xc0\7\1\xa1\4$cbs\x40\x40\x43"

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__namespace *ns;
    struct weir__server *server;
    int fd; /* a client's */
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir__server_options o = {.amqp = "127.0.0.1:0", .loops = 1, .idle_ms = IDLE_MS};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in to = {.sin_family = AF_INET};

    assert_int_equal(tempdir_make(s->dir), 0);
    assert_int_equal(weir__namespace_open(&s->ns, s->dir, NULL, NULL), 0);
    o.ns = s->ns;
    assert_int_equal(weir__server_start(&s->server, &o, NULL), 0);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port =
        htons((uint16_t)strtoul(strrchr(weir__server_amqp(s->server), ':') + 1, NULL, 10));
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(s->fd, (struct sockaddr *)&to, sizeof to), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    close(s->fd);
    weir__server_stop(s->server);
    weir__namespace_close(s->ns, NULL);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

/* Everything until the server hangs up. */
static size_t hear_all(struct scene *s, uint8_t *to, size_t room)
{
    return patience_recv_all(s->fd, to, room);
}

/* The first code behind the protocol header, then of each frame: 10 open ... 18 close. */
static size_t list_frames(const uint8_t *at, size_t len, uint8_t *codes, size_t room)
{
    size_t count = 0;

    for (size_t i = 8; i + 11 <= len && count < room;) {
        size_t size = (size_t)at[i + 2] << 8 | at[i + 3];
        assert_true(size >= 8);
        if (size > 8) codes[count++] = at[i + 10];
        i += size;
    }
    return count;
}

static void silence_ends_links_sessions_and_the_connection(void **state)
{
    static const uint8_t want[] = {0x10, 0x11, 0x12, 0x13, 0x16, 0x17, 0x18};
    static const char text[] =
        "inactive for more than the allowed 600 milliseconds and is closed by "
        "container 'weir'.";
    struct scene *s = *state;
    uint8_t heard[4096], codes[16], *at;
    size_t len, count, texts = 0;

    assert_int_equal(send(s->fd, SPEECH, sizeof SPEECH - 1, MSG_NOSIGNAL), sizeof SPEECH - 1);
    len = hear_all(s, heard, sizeof heard);
    count = list_frames(heard, len, codes, sizeof codes);
    assert_int_equal(count, sizeof want);
    assert_memory_equal(codes, want, sizeof want);
    for (at = heard; (at = memmem(at, len - (size_t)(at - heard), text, sizeof text - 1)); at++)
        texts++;
    assert_int_equal(texts, 3);
}

/* The server's end of the client's connection. */
static int find_other_end(const struct scene *s)
{
    struct sockaddr_in mine, peer;
    socklen_t len = sizeof mine;

    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&mine, &len), 0);
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        len = sizeof peer;
        if (fd == s->fd || getpeername(fd, (struct sockaddr *)&peer, &len) != 0) continue;
        if (peer.sin_family == AF_INET && peer.sin_port == mine.sin_port) return fd;
    }
    return -1;
}

static int option(int fd, int level, int name)
{
    socklen_t len = sizeof(int);
    int value = 0;

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* No AMQP time-out sees it in time, but the kernel does: it probes, and gives up. */
static void a_machine_without_power_is_noticed(void **state)
{
    struct scene *s = *state;
    uint8_t header[8];
    int fd, probe_ms, dead_ms;

    assert_int_equal(send(s->fd, "AMQP\0\1\0\0", 8, MSG_NOSIGNAL), 8);
    assert_int_equal(patience_recv_all(s->fd, header, sizeof header), 8);
    fd = find_other_end(s);
    assert_true(fd >= 0);
    assert_int_not_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    probe_ms = 1000 * option(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    dead_ms = option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    assert_in_range(dead_ms, 1, POWER_LOSS_MS);
    assert_true(probe_ms < dead_ms);
    assert_true(dead_ms + 1000 * option(fd, IPPROTO_TCP, TCP_KEEPINTVL) <= POWER_LOSS_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(silence_ends_links_sessions_and_the_connection, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_machine_without_power_is_noticed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
