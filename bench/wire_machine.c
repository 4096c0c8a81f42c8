/* wire_machine.c - what the machine does without us: one TCP stream through the loopback device, a
 * round trip, and a flush. Blocking calls, a thread at each end, nothing in between. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "bench/place.h"
#include "bench/raw.h"
#include "bench/wire_bench.h"

#define FLUSH_FILE_BYTES (64u << 20)
#define BLOCK_BYTES 4096u

/* Two ends of a connection, each with the memory that it writes from or reads into. */
struct pair {
    int near, far;
    uint8_t *near_bytes, *far_bytes;
    size_t size; /* of a write */
    uint64_t writes;
};

/* ---- sockets ---- */

static int connect_pair(struct pair *p, int listener, struct weir_error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int on = 1;

    if (bind(listener, (struct sockaddr *)&at, len) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0)
        return weir__fail_errno(err, errno, "listening on 127.0.0.1");
    p->near = socket(AF_INET, SOCK_STREAM, 0);
    if (p->near < 0 || connect(p->near, (struct sockaddr *)&at, len) != 0)
        return weir__fail_errno(err, errno, "connecting to 127.0.0.1");
    p->far = accept(listener, NULL, NULL);
    if (p->far < 0) return weir__fail_errno(err, errno, "accepting");
    setsockopt(p->near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(p->far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return 0;
}

static void close_pair(struct pair *p)
{
    if (p->near >= 0) close(p->near);
    if (p->far >= 0) close(p->far);
    free(p->near_bytes);
    free(p->far_bytes);
}

/* close it also after an error. */
static int open_pair(struct pair *p, const struct weir__bench_wire_options *o,
                     struct weir_error *err)
{
    int listener, rc;

    *p = (struct pair){.near = -1, .far = -1, .size = o->size, .writes = o->events};
    p->near_bytes = calloc(1, p->size);
    p->far_bytes = calloc(1, p->size);
    if (!p->near_bytes || !p->far_bytes)
        return weir__fail(err, WEIR_ENOMEM, "writes of %zu bytes", p->size);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0) return weir__fail_errno(err, errno, "a socket");
    rc = connect_pair(p, listener, err);
    close(listener);
    return rc;
}

static bool read_all(int fd, uint8_t *to, size_t len)
{
    while (len) {
        ssize_t n = read(fd, to, len);
        if (n <= 0) return false;
        to += n;
        len -= (size_t)n;
    }
    return true;
}

static bool write_all(int fd, const uint8_t *from, size_t len)
{
    while (len) {
        ssize_t n = write(fd, from, len);
        if (n <= 0) return false;
        from += n;
        len -= (size_t)n;
    }
    return true;
}

static void count_run(const struct weir__bench_wire_options *o, struct weir__bench_run *run)
{
    run->events = run->batches = o->events;
    run->bytes = o->events * o->size;
}

/* ---- one stream ---- */

static void *write_stream(void *arg)
{
    struct pair *p = arg;
    uint64_t left = p->writes;

    while (left && write_all(p->far, p->far_bytes, p->size)) left--;
    shutdown(p->far, SHUT_WR);
    return NULL;
}

static int read_stream(struct pair *p, struct weir_error *err)
{
    struct weir__thread writer = {.running = false};
    uint64_t left = p->writes * p->size;
    ssize_t n;
    int rc = weir__thread_start(&writer, "bench-stream", write_stream, p, err);

    while (rc == 0 && (n = read(p->near, p->near_bytes, p->size)) > 0) left -= (uint64_t)n;
    weir__thread_join(&writer);
    return rc == 0 && left ? weir__fail(err, WEIR_EIO, "the stream broke") : rc;
}

int weir__bench_wire_loopback(const struct weir__bench_wire_options *o,
                              const struct weir__bench_wire_target *t,
                              struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct weir__bench_wire_meter meter;
    struct pair p;
    int rc = open_pair(&p, o, err);

    (void)t;
    weir__bench_wire_meter_begin(&meter, 0);
    if (rc == 0) rc = read_stream(&p, err);
    weir__bench_wire_meter_end(&meter, row);
    close_pair(&p);
    count_run(o, &row->run);
    snprintf(row->mode, sizeof row->mode, "stream");
    return rc;
}

/* ---- a round trip ---- */

static void *echo(void *arg)
{
    struct pair *p = arg;

    while (read_all(p->far, p->far_bytes, p->size) && write_all(p->far, p->far_bytes, p->size))
        continue;
    return NULL;
}

static int make_trips(struct pair *p, double *us, struct weir_error *err)
{
    struct weir__thread other = {.running = false};
    int rc = weir__thread_start(&other, "bench-echo", echo, p, err);

    for (uint64_t i = 0; i < p->writes && rc == 0; i++) {
        int64_t began_ns = weir__mono_ns();
        if (!write_all(p->near, p->near_bytes, p->size) ||
            !read_all(p->near, p->near_bytes, p->size))
            rc = weir__fail(err, WEIR_EIO, "the round trip broke");
        us[i] = (double)(weir__mono_ns() - began_ns) / 1e3;
    }
    shutdown(p->near, SHUT_RDWR);
    weir__thread_join(&other);
    return rc;
}

int weir__bench_wire_trip(const struct weir__bench_wire_options *o,
                          const struct weir__bench_wire_target *t, struct weir__bench_wire_row *row,
                          struct weir_error *err)
{
    struct weir__bench_wire_meter meter;
    struct pair p;
    int rc = open_pair(&p, o, err);

    (void)t;
    row->us = calloc(o->events, sizeof *row->us);
    row->us_count = o->events;
    if (rc == 0 && !row->us)
        rc = weir__fail(err, WEIR_ENOMEM, "room for %" PRIu64 " times", o->events);
    weir__bench_wire_meter_begin(&meter, 0);
    if (rc == 0) rc = make_trips(&p, row->us, err);
    weir__bench_wire_meter_end(&meter, row);
    close_pair(&p);
    count_run(o, &row->run);
    snprintf(row->mode, sizeof row->mode, "trip");
    return rc;
}

/* ---- a flush ---- */

int weir__bench_wire_flush(const struct weir__bench_wire_options *o,
                           const struct weir__bench_wire_target *t,
                           struct weir__bench_wire_row *row, struct weir_error *err)
{
    char path[WEIR__PLACE_PATH_BYTES];
    struct weir__raw *raw = NULL;
    struct weir__place place;
    int rc;

    (void)t;
    if (o->size % BLOCK_BYTES != 0)
        return weir__fail(err, WEIR_EINVAL, "--size must be a multiple of %u", BLOCK_BYTES);
    rc = weir__place_open(&place, o->data ? o->data : "/var/tmp", FLUSH_FILE_BYTES, err);
    if (rc != 0) return rc;
    rc = weir__place_path(&place, "raw", path, err);
    if (rc == 0) rc = weir__raw_open(&raw, path, FLUSH_FILE_BYTES, err);
    if (rc == 0) rc = weir__raw_overwrite(raw, true, o->size, (uint32_t)o->events, &row->run, err);
    weir__raw_close(raw);
    weir__place_close(&place);
    snprintf(row->mode, sizeof row->mode, "flush");
    return rc;
}
