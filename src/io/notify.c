#define _GNU_SOURCE
#include "io/notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A name outside the file system begins with a NUL and ends with its length, not with another. */
static int parse_address(const char *address, struct sockaddr_un *out, socklen_t *out_len,
                         struct weir_error *err)
{
    size_t len = strlen(address);

    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    if ((address[0] != '/' && address[0] != '@') || len < 2 || len >= sizeof out->sun_path)
        return weir__fail(err, WEIR_EINVAL, "'%.128s' is not a path or @name", address);
    memcpy(out->sun_path, address, len);
    if (address[0] == '@') out->sun_path[0] = '\0';
    *out_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (address[0] == '/'));
    return 0;
}

static int send_state(int fd, const struct sockaddr_un *to, socklen_t to_len, const char *state,
                      struct weir_error *err)
{
    const struct sockaddr *any = (const struct sockaddr *)(const void *)to;
    ssize_t n;

    do {
        n = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, any, to_len);
    } while (n < 0 && errno == EINTR);
    return n >= 0 ? 0 : weir__fail_errno(err, errno, "sendto");
}

int weir__notify_send(const char *address, const char *state, struct weir_error *err)
{
    struct sockaddr_un to;
    socklen_t to_len;
    int fd, rc;

    if (!address || !*address) return 0;
    rc = parse_address(address, &to, &to_len, err);
    if (rc == 0) {
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        rc = fd < 0 ? weir__fail_errno(err, errno, "socket")
                    : send_state(fd, &to, to_len, state, err);
        if (fd >= 0) close(fd);
    }
    return rc == 0 ? 0 : weir__wrap(err, rc, "notifying the service manager");
}
