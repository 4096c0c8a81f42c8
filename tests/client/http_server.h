/* http_server.h - a server on a real socket that hears one request and gives one answer, for tests of
 * clients. */
#ifndef WEIR_TESTS_CLIENT_HTTP_SERVER_H
#define WEIR_TESTS_CLIENT_HTTP_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/patience.h"

static struct {
    int listener;
    unsigned port;
    char url[64];
    pthread_t thread;
    char heard[8192]; /* of the request, with a NUL */
    size_t heard_len;
    const char *first, *then; /* the answer; then is NULL: nothing follows */
    bool deaf;                /* it answers without hearing */
    bool holds;               /* the connection, until the other side hangs up */
} server;

static inline int server_start(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 30}; /* then nobody has asked, and the test fails */
    socklen_t size = sizeof at;

    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server.listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(server.listener, (void *)&at, size) != 0 || listen(server.listener, 8) != 0 ||
        getsockname(server.listener, (void *)&at, &size) != 0)
        return -1;
    server.port = ntohs(at.sin_port);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%u", server.port);
    return 0;
}

static inline void server_stop(void)
{
    close(server.listener);
}

/* The head is there, and as much behind it as it says. */
static inline bool server_heard_all(void)
{
    const char *end = strstr(server.heard, "\r\n\r\n"), *length;

    if (!end) return false;
    length = strstr(server.heard, "Content-Length: ");
    return server.heard_len >= (size_t)(end + 4 - server.heard) +
                                   (length && length < end ? strtoul(length + 16, NULL, 10) : 0);
}

/* The time limit is for everything that is read, so it is interrupted when the program was stopped. */
static inline int server_accept(void)
{
    int fd;

    do {
        fd = accept(server.listener, NULL, NULL);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static inline void *server_run(void *arg)
{
    int fd = server_accept();
    ssize_t n = 1;
    char rest[256];

    while (!server.deaf && !server_heard_all() && n > 0) {
        n = patience_recv(fd, server.heard + server.heard_len,
                          sizeof server.heard - 1 - server.heard_len);
        if (n > 0) server.heard_len += (size_t)n;
    }
    n = send(fd, server.first, strlen(server.first), MSG_NOSIGNAL);
    if (n >= 0 && server.then) n = send(fd, server.then, strlen(server.then), MSG_NOSIGNAL);
    while (server.holds && patience_recv(fd, rest, sizeof rest) > 0) continue;
    close(fd);
    return n < 0 ? NULL : arg;
}

/* Waits for one who asks, beside the test. */
static inline void server_begin(const char *first, const char *then)
{
    server.first = first;
    server.then = then;
    server.heard_len = 0;
    memset(server.heard, 0, sizeof server.heard);
    assert_int_equal(pthread_create(&server.thread, NULL, server_run, &server), 0);
}

static inline void server_end(void)
{
    pthread_join(server.thread, NULL);
}

#endif
