/* http_say.c - a server that says the same to everybody, for the tests of a client.
 *
 *   http_say FILE        to each who asks, the bytes of FILE, and the end of the connection
 *   http_say FILE hold   the same, and the connection stays
 *
 * Prints its port when it listens, on 127.0.0.1, and goes on until it is killed. Built by
 * admin-answers.sh. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)16 << 20)

static char file[FILE_BYTES_MAX];

/* Whoever closes with something unread takes back what it said: so it is read to its end. */
static void hear_question(int fd)
{
    char text[65536];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof text - 1 && (n = read(fd, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)n;
        text[len] = '\0';
        if (strstr(text, "\r\n\r\n")) return;
    }
}

static void say(int fd, const char *at, size_t len)
{
    ssize_t n;

    while (len > 0 && (n = write(fd, at, len)) > 0) {
        at += n;
        len -= (size_t)n;
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    FILE *from = argc > 1 ? fopen(argv[1], "rb") : NULL;
    size_t len;

    signal(SIGPIPE, SIG_IGN);
    if (!from || bind(listener, (void *)&at, size) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (void *)&at, &size) != 0)
        return 1;
    len = fread(file, 1, sizeof file, from);
    printf("%u\n", (unsigned)ntohs(at.sin_port));
    fflush(stdout);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        hear_question(fd);
        say(fd, file, len);
        if (argc == 2) close(fd);
    }
    return 1;
}
