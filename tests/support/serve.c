#define _GNU_SOURCE
#include "support/serve.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_BYTES 2048
#define PATH_BYTES 512

static void run(const struct serve *s, const char *dir, int out)
{
    const char *program = getenv("WEIR");
    char authority[PATH_BYTES];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    snprintf(authority, sizeof authority, "%s.authority", dir);
    if (!program || !*program) program = WEIR_PROGRAM;
    execl(program, program, "serve", "--json", "--data", dir, "--amqp", s->amqp, "--amqps",
          s->tls ? s->amqps : "off", "--authority", authority, "--http", s->http, "--https",
          s->tls ? s->https : "off", s->events_only ? "--events-only" : (char *)NULL, (char *)NULL);
    perror(program);
    _exit(127);
}

/* The text behind "name":" in the ready line. */
static int find_address(const char *line, const char *name, char to[SERVE_ADDRESS_BYTES])
{
    char wanted[32];
    const char *at;
    size_t len;

    snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
    at = strstr(line, wanted);
    if (!at) return -1;
    at += strlen(wanted);
    len = strcspn(at, "\"");
    if (len >= SERVE_ADDRESS_BYTES) return -1;
    memcpy(to, at, len);
    to[len] = '\0';
    return 0;
}

static int read_ready(struct serve *s)
{
    char line[LINE_BYTES] = "";
    size_t len = 0;
    ssize_t n;

    while (!strchr(line, '\n') && len + 1 < sizeof line &&
           (n = read(s->out, line + len, sizeof line - 1 - len)) > 0)
        line[len += (size_t)n] = '\0';
    if (find_address(line, "amqp", s->amqp) != 0 || find_address(line, "http", s->http) != 0)
        return -1;
    if (!s->tls) return 0;
    return find_address(line, "amqps", s->amqps) != 0 ? -1 : find_address(line, "https", s->https);
}

int serve_again(struct serve *s, const char *dir)
{
    int pipes[2];

    if (pipe2(pipes, O_CLOEXEC) != 0) return -1;
    s->pid = fork();
    if (s->pid == 0) run(s, dir, pipes[1]);
    close(pipes[1]);
    s->out = pipes[0];
    if (s->pid > 0 && read_ready(s) == 0) return 0;
    fprintf(stderr, "weir serve --data %s is not ready\n", dir);
    serve_kill(s);
    return -1;
}

/* A free port, and a socket that is bound to it and does not listen. The server, which binds with
 * SO_REUSEADDR too, can have it any number of times; whoever lets the system choose is given another
 * one, also while the server is down. */
static int hold_port(char to[SERVE_ADDRESS_BYTES])
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    socklen_t len = sizeof own;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&own, sizeof own) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &len) != 0) {
        perror("holding a port");
        abort();
    }
    snprintf(to, SERVE_ADDRESS_BYTES, "127.0.0.1:%u", ntohs(own.sin_port));
    return fd;
}

int serve_start(struct serve *s, const char *dir, bool tls)
{
    char *const addresses[SERVE_PORTS] = {s->amqp, s->amqps, s->http, s->https};

    for (int i = 0; i < SERVE_PORTS; i++)
        if (s->held[i] == 0) s->held[i] = hold_port(addresses[i]);
    s->tls = tls;
    s->out = -1;
    snprintf(s->ca_file, sizeof s->ca_file, "%s.authority/ca.pem", dir);
    return serve_again(s, dir);
}

static int end(struct serve *s, int signal)
{
    int status = -1;

    if (s->pid > 0) {
        kill(s->pid, signal);
        waitpid(s->pid, &status, 0);
    }
    if (s->out >= 0) close(s->out);
    s->out = -1;
    s->pid = 0;
    return status;
}

int serve_stop(struct serve *s)
{
    return end(s, SIGTERM) == 0 ? 0 : -1;
}

void serve_kill(struct serve *s)
{
    end(s, SIGKILL);
}

void serve_connection(char to[SERVE_CONNECTION_BYTES], const char *address, bool tls)
{
    snprintf(to, SERVE_CONNECTION_BYTES,
             "Endpoint=sb://localhost%s/;SharedAccessKeyName=RootManageSharedAccessKey;"
             "SharedAccessKey=SAS_KEY_VALUE%s",
             strrchr(address, ':'), tls ? "" : ";UseDevelopmentEmulator=true");
}
