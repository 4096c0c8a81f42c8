#define _GNU_SOURCE
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int weir__descriptor_move(int fd)
{
    int moved, why;

    if (fd < 0 || fd >= WEIR__DESCRIPTORS_STANDARD) return fd;
    moved = fcntl(fd, F_DUPFD_CLOEXEC, WEIR__DESCRIPTORS_STANDARD);
    why = errno;
    close(fd);
    errno = why;
    return moved;
}

void weir__descriptors_hold(struct weir__descriptors_held *h)
{
    int fd;

    h->count = 0;
    while (h->count < WEIR__DESCRIPTORS_STANDARD) {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd >= WEIR__DESCRIPTORS_STANDARD) close(fd);
        if (fd < 0 || fd >= WEIR__DESCRIPTORS_STANDARD) return;
        h->fd[h->count++] = fd;
    }
}

void weir__descriptors_release(struct weir__descriptors_held *h)
{
    while (h->count > 0) close(h->fd[--h->count]);
}
