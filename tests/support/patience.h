/* patience.h - reading from a socket that has a time limit (SO_RCVTIMEO). A program that was stopped
 * and goes on finds such a read interrupted (signal(7)), which is no end and no time-out. */
#ifndef WEIR_SUPPORT_PATIENCE_H
#define WEIR_SUPPORT_PATIENCE_H

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

static inline ssize_t patience_recv(int fd, void *to, size_t room)
{
    ssize_t n;

    do {
        n = recv(fd, to, room, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* All of it, or less at the end, and when the time is over. */
static inline size_t patience_recv_all(int fd, void *to, size_t len)
{
    size_t got = 0;
    ssize_t n;

    while (got < len && (n = patience_recv(fd, (char *)to + got, len - got)) > 0) got += (size_t)n;
    return got;
}

#endif
