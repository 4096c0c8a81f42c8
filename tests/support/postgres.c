/* postgres.c - see postgres.h. */
#define _GNU_SOURCE
#include "support/postgres.h"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/tempdir.h"

#define READY_MS_MAX 60000
#define LOOK_MS 10
#define STATUS_BYTES 1024

/* Debian keeps the server's programs out of PATH; the newest is the last. */
static int find_program(const char *name, char path[POSTGRES_PATH_BYTES])
{
    char pattern[POSTGRES_PATH_BYTES];
    glob_t found = {0};
    int rc = -1;

    snprintf(pattern, sizeof pattern, "/usr/lib/postgresql/*/bin/%s", name);
    if (glob(pattern, 0, NULL, &found) == 0) {
        snprintf(path, POSTGRES_PATH_BYTES, "%s", found.gl_pathv[found.gl_pathc - 1]);
        rc = 0;
    }
    globfree(&found);
    return rc;
}

/* Whom the server runs as: it refuses to be root. */
static const struct passwd *find_user(void)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : getpwuid(geteuid());

    return user ? user : getpwnam("nobody");
}

/* In the child, before exec. */
static void become_user(void)
{
    const struct passwd *user = find_user();
    int null = open("/dev/null", O_RDWR);

    if (geteuid() == 0 && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    setsid(); /* Ctrl-C is for the test */
}

static int run_initdb(const struct postgres_server *s)
{
    char program[POSTGRES_PATH_BYTES];
    int status = -1;
    pid_t pid;

    if (find_program("initdb", program) != 0) return -1;
    pid = fork();
    if (pid == 0) {
        become_user();
        execl(program, program, "-D", s->dir, "-U", "weir", "-A", "trust", "-E", "UTF8",
              "--locale=C", "--no-sync", (char *)NULL);
        _exit(127);
    }
    if (pid > 0) waitpid(pid, &status, 0);
    return status == 0 ? 0 : -1;
}

const char *postgres_make(struct postgres_server *s)
{
    const struct passwd *user = find_user();
    const char *tmp = geteuid() == 0 ? NULL : getenv("TMPDIR"); /* which may be root's alone */
    char program[POSTGRES_PATH_BYTES];
    int n;

    *s = (struct postgres_server){0};
    if (find_program("initdb", program) != 0 || find_program("postgres", program) != 0)
        return "PostgreSQL is not installed (Debian: postgresql)";
    if (!user) return "there is no user to run PostgreSQL as";
    n = snprintf(s->dir, sizeof s->dir, "%s/weir-pg-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n >= (int)sizeof s->dir || !mkdtemp(s->dir)) return "there is no folder for PostgreSQL";
    snprintf(s->url, sizeof s->url, "postgres://weir@/postgres?host=%s", s->dir);
    if (chown(s->dir, user->pw_uid, user->pw_gid) == 0 && run_initdb(s) == 0) return NULL;
    postgres_remove(s);
    return "initdb failed";
}

/* The last line of postmaster.pid says how far it is. */
static int is_ready(const struct postgres_server *s)
{
    char path[POSTGRES_PATH_BYTES + 32], status[STATUS_BYTES];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "%s/postmaster.pid", s->dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, status, sizeof status - 1);
        close(fd);
    }
    status[n > 0 ? n : 0] = '\0';
    return strtol(status, NULL, 10) == (long)s->pid && strstr(status, "ready") != NULL;
}

int postgres_start(struct postgres_server *s)
{
    struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    char program[POSTGRES_PATH_BYTES];

    if (find_program("postgres", program) != 0) return -1;
    s->pid = fork();
    if (s->pid == 0) {
        become_user();
        execl(program, program, "-D", s->dir, "-k", s->dir, "-c", "listen_addresses=", "-c",
              "fsync=off", "-c", "shared_buffers=16MB", (char *)NULL);
        _exit(127);
    }
    for (int ms = 0; ms < READY_MS_MAX; ms += LOOK_MS) {
        if (s->pid < 0 || is_ready(s)) return s->pid < 0 ? -1 : 0;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) break;
        nanosleep(&pause, NULL);
    }
    fprintf(stderr, "PostgreSQL in %s does not start\n", s->dir);
    s->pid = 0;
    return -1;
}

void postgres_stop(struct postgres_server *s)
{
    if (s->pid > 0) {
        postgres_signal_all(s, SIGCONT);
        kill(s->pid, SIGQUIT);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

/* The postmaster's children have groups of their own, so they are found by their parent. */
void postgres_signal_all(const struct postgres_server *s, int signal)
{
    char path[64], children[STATUS_BYTES] = "";
    char *at = children, *end;
    int fd;

    kill(s->pid, signal);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)s->pid, (int)s->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (read(fd, children, sizeof children - 1) > 0)
        for (long pid; (pid = strtol(at, &end, 10)) > 0 && end != at; at = end)
            kill((pid_t)pid, signal);
    close(fd);
}

void postgres_remove(struct postgres_server *s)
{
    postgres_stop(s);
    if (s->dir[0]) tempdir_remove(s->dir);
    s->dir[0] = '\0';
}
