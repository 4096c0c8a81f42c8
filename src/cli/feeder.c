#define _GNU_SOURCE /* pipe2, open_memstream */
#include "cli/feeder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "cli/json.h"

#define END_MS 5000   /* for a command to finish what it has */
#define LOOK_MS 100   /* between looks at whether the partition moves */
#define NUMBER_MAX 20 /* digits */

struct fed {
    uint64_t sequence, offset;
};

struct weir__feeder {
    const char *command;
    pid_t pid; /* 0: it does not run */
    int in, out;
    char number[NUMBER_MAX + 1];
    size_t digits;
    struct fed *fed; /* with the command, oldest first; a ring */
    size_t first, count, room;
    bool has_done;
    uint64_t done; /* the last number that it printed and that was not marked yet */
    int status;    /* how it ended last, as waitpid tells */
};

/* ---- the process ---- */

static void set_files(posix_spawn_file_actions_t *files, int in, int out)
{
    posix_spawn_file_actions_init(files);
    posix_spawn_file_actions_adddup2(files, in, 0);
    posix_spawn_file_actions_adddup2(files, out, 1);
}

/* Its own group, so that Ctrl-C lets it finish; and signals as a program expects them. */
static void set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, pipe_only;

    sigemptyset(&none);
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &pipe_only);
}

static int spawn(struct weir__feeder *f, const struct weir_partition *p, int in, int out,
                 struct weir_error *err)
{
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(f->command), NULL};
    char partition[32], hub[300], group[128];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    size_t count = 0;
    char **env;
    int failed = ENOMEM;

    while (environ[count]) count++;
    env = calloc(count + 4, sizeof *env);
    if (env && argv[2]) {
        memcpy(env, environ, count * sizeof *env);
        snprintf(partition, sizeof partition, "WEIR_PARTITION=%" PRIu32, weir_partition_id(p));
        snprintf(hub, sizeof hub, "WEIR_HUB=%s", weir_partition_hub(p));
        snprintf(group, sizeof group, "WEIR_GROUP=%s", weir_partition_group(p));
        env[count] = partition;
        env[count + 1] = hub;
        env[count + 2] = group;
        set_files(&files, in, out);
        set_attributes(&attributes);
        failed = posix_spawn(&f->pid, "/bin/sh", &files, &attributes, argv, env);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
    }
    free(env);
    free(argv[2]);
    if (failed) f->pid = 0;
    return failed ? weir__fail_errno(err, failed, "starting the command") : 0;
}

static int start(struct weir__feeder *f, const struct weir_partition *p, struct weir_error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    int rc = 0;

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        rc = weir__fail_errno(err, errno, "a pipe to the command");
    if (rc == 0) rc = spawn(f, p, in[0], out[1], err);
    close(in[0]);
    close(out[1]);
    if (rc != 0) {
        close(in[1]);
        close(out[0]);
        return rc;
    }
    f->in = in[1];
    f->out = out[0];
    fcntl(f->in, F_SETFL, O_NONBLOCK);
    fcntl(f->out, F_SETFL, O_NONBLOCK);
    f->digits = f->count = f->first = 0;
    return 0;
}

/* It has ended, or is made to: 0 when that was well. */
static int finish(struct weir__feeder *f, int signal)
{
    int status = 0;

    close(f->in); /* which -1 does not mind: it was closed before */
    close(f->out);
    if (signal) kill(-f->pid, signal);
    while (waitpid(f->pid, &status, 0) < 0 && errno == EINTR) continue;
    f->pid = 0;
    f->status = status;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : WEIR_EFAILED;
}

/* ---- numbers ---- */

static void take_byte(struct weir__feeder *f, char c)
{
    if (c >= '0' && c <= '9' && f->digits < NUMBER_MAX) {
        f->number[f->digits++] = c;
        return;
    }
    if (f->digits > 0) {
        f->number[f->digits] = '\0';
        f->done = strtoull(f->number, NULL, 10);
        f->has_done = true;
    }
    f->digits = 0;
}

/* false: it has closed its output, which is its end. */
static bool take_numbers(struct weir__feeder *f)
{
    char bytes[4096];
    ssize_t len;

    while ((len = read(f->out, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < len; i++) take_byte(f, bytes[i]);
    if (len == 0) take_byte(f, '\n');
    return len < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Marks the last event that is not behind the number. */
static int mark(struct weir__feeder *f, struct weir_partition *p, uint64_t *out_marked)
{
    struct weir_event e = {.partition = weir_partition_id(p)};
    bool any = false;
    int rc;

    if (!f->has_done) return 0;
    f->has_done = false;
    while (f->count > 0 && f->fed[f->first].sequence <= f->done) {
        e.sequence = f->fed[f->first].sequence;
        e.offset = f->fed[f->first].offset;
        any = true;
        f->first = (f->first + 1) % f->room;
        f->count--;
    }
    if (!any) return 0;
    rc = weir_checkpoint(p, &e);
    *out_marked = e.sequence;
    return rc == 0 ? 1 : rc;
}

/* ---- lines ---- */

static bool note_event(struct weir__feeder *f, const struct weir_event *e)
{
    size_t room = f->room ? f->room * 2 : 1024;
    struct fed *fed;

    if (f->count == WEIR__FEEDER_EVENTS_MAX) return false;
    if (f->count == f->room) {
        fed = calloc(room, sizeof *fed);
        if (!fed) return false;
        for (size_t i = 0; i < f->count; i++) fed[i] = f->fed[(f->first + i) % f->room];
        free(f->fed);
        f->fed = fed;
        f->room = room;
        f->first = 0;
    }
    assert(f->count < f->room);
    f->fed[(f->first + f->count++) % f->room] = (struct fed){e->sequence, e->offset};
    return true;
}

static int make_lines(struct weir__feeder *f, const struct weir_event *e, size_t count, char **out,
                      size_t *out_len)
{
    FILE *lines = open_memstream(out, out_len);
    bool ok = lines != NULL;

    for (size_t i = 0; ok && i < count; i++) {
        weir__json_event(lines, &e[i]);
        ok = note_event(f, &e[i]);
    }
    if (lines && fclose(lines) != 0) ok = false;
    return ok ? 0 : WEIR_EBUSY;
}

/* Writes while it reads, because a command may do the same. 1: the partition is about to move; the
 * rest is the next owner's. */
static int exchange(struct weir__feeder *f, const struct weir_partition *p, const char *at,
                    size_t len)
{
    while (len > 0) {
        struct pollfd fds[] = {{.fd = f->in, .events = POLLOUT}, {.fd = f->out, .events = POLLIN}};
        ssize_t wrote;
        if (weir_partition_revoked(p)) return 1;
        if (poll(fds, 2, LOOK_MS) < 0) continue;
        if (fds[1].revents && !take_numbers(f)) return WEIR_ECLOSED;
        if (!fds[0].revents) continue;
        wrote = write(f->in, at, len);
        if (wrote < 0 && errno != EAGAIN && errno != EINTR) return WEIR_ECLOSED;
        if (wrote > 0) {
            at += wrote;
            len -= (size_t)wrote;
        }
    }
    return take_numbers(f) ? 0 : WEIR_ECLOSED;
}

int weir__feeder_feed(struct weir__feeder *f, struct weir_partition *p, const struct weir_event *e,
                      size_t count, uint64_t *out_marked)
{
    char *lines = NULL;
    size_t len = 0;
    int rc = 0;

    if (f->pid == 0 && count == 0) return 0;
    if (f->pid == 0) rc = start(f, p, NULL);
    if (rc == 0) rc = make_lines(f, e, count, &lines, &len);
    if (rc == 0) rc = exchange(f, p, lines, len);
    free(lines);
    if (rc == WEIR_ECLOSED) rc = finish(f, 0);
    if (rc < 0) return rc;
    return mark(f, p, out_marked);
}

bool weir__feeder_failed(const struct weir__feeder *f, char out[WEIR__FEEDER_WHY_BYTES])
{
    if (!f || f->pid != 0 || f->status == 0) return false;
    if (WIFSIGNALED(f->status))
        snprintf(out, WEIR__FEEDER_WHY_BYTES, "was killed by signal %d", WTERMSIG(f->status));
    else
        snprintf(out, WEIR__FEEDER_WHY_BYTES, "ended with exit code %d", WEXITSTATUS(f->status));
    return true;
}

/* ---- lives ---- */

int weir__feeder_open(struct weir__feeder **out, const char *command, struct weir_partition *p,
                      struct weir_error *err)
{
    struct weir__feeder *f = calloc(1, sizeof *f);
    int rc;

    *out = NULL;
    if (!f) return weir__fail(err, WEIR_ENOMEM, "no memory");
    f->command = command;
    rc = start(f, p, err);
    if (rc != 0)
        free(f);
    else
        *out = f;
    return rc;
}

/* The end of its input asks it to finish. true: it has. */
static bool wait_for_end(struct weir__feeder *f)
{
    int64_t deadline_ns = weir__deadline_ns(END_MS);
    bool more = true;

    close(f->in);
    f->in = -1;
    while (more && weir__mono_ns() < deadline_ns) {
        struct pollfd fd = {.fd = f->out, .events = POLLIN};
        if (poll(&fd, 1, LOOK_MS) > 0) more = take_numbers(f);
    }
    return !more;
}

int weir__feeder_close(struct weir__feeder *f, struct weir_partition *p, uint64_t *out_marked)
{
    int rc;

    if (!f) return 0;
    if (f->pid != 0) finish(f, wait_for_end(f) ? 0 : SIGKILL);
    rc = mark(f, p, out_marked);
    free(f->fed);
    free(f);
    return rc;
}
