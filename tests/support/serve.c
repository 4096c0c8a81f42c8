#define _GNU_SOURCE
#include "support/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
          s->tls ? s->https : "off", (char *)NULL);
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

int serve_start(struct serve *s, const char *dir, bool tls)
{
    *s = (struct serve){.tls = tls,
                        .out = -1,
                        .amqp = "127.0.0.1:0",
                        .amqps = "127.0.0.1:0",
                        .http = "127.0.0.1:0",
                        .https = "127.0.0.1:0"};
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
