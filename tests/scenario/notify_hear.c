/* notify_hear.c - a service manager's ear: binds the datagram socket that is named as
 * $NOTIFY_SOCKET names it, prints "listening", then each datagram on a line, and ends after as many
 * as were asked for. Built by serve-end.sh. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), left = argc == 3 ? atoi(argv[2]) : 0;
    size_t len = argc == 3 ? strlen(argv[1]) : 0;
    char got[256];
    ssize_t n;

    if (fd < 0 || len == 0 || len >= sizeof a.sun_path) return 2;
    memcpy(a.sun_path, argv[1], len);
    if (a.sun_path[0] == '@') a.sun_path[0] = '\0';
    if (bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("listening\n");
    while (left-- > 0 && (n = recv(fd, got, sizeof got, 0)) > 0) printf("%.*s\n", (int)n, got);
    return 0;
}
