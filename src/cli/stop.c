#include "cli/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"

#define END_SIGNAL SIGUSR1 /* ours, to end the thread */
#define SAME_NS 200000000  /* timeout(1), for one, says it to us and to our group: that is once */

struct weir__stop {
    struct weir__thread thread;
    sigset_t signals;
    atomic_bool asked, ending, hup;
    bool had_terminal;
    int pipe[2];
    void (*fn)(void *user);
    void *user;
};

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* false: it is over. */
static bool note_hup(struct weir__stop *s)
{
    if (s->had_terminal && !has_terminal()) return false;
    if (!atomic_exchange(&s->hup, true) && write(s->pipe[1], "", 1) != 1) return false;
    return true;
}

static void *wait_for_signals(void *arg)
{
    struct weir__stop *s = arg;
    int64_t first_ns = 0;
    int signal;

    while (sigwait(&s->signals, &signal) == 0 && !atomic_load(&s->ending)) {
        if (signal == END_SIGNAL) continue;
        if (signal == SIGHUP && note_hup(s)) continue;
        if (atomic_load(&s->asked) && weir__mono_ns() - first_ns < SAME_NS) continue;
        if (atomic_exchange(&s->asked, true)) _exit(128 + signal);
        first_ns = weir__mono_ns();
        if (write(s->pipe[1], "", 1) != 1) _exit(128 + signal);
        if (s->fn) s->fn(s->user);
    }
    return NULL;
}

static int start(struct weir__stop **out, bool server, void (*fn)(void *user), void *user,
                 struct weir_error *err)
{
    struct weir__stop *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory");
    s->fn = fn;
    s->user = user;
    s->had_terminal = server && has_terminal();
    if (pipe(s->pipe) != 0) {
        rc = weir__fail_errno(err, errno, "pipe");
        free(s);
        return rc;
    }
    fcntl(s->pipe[0], F_SETFD, FD_CLOEXEC);
    fcntl(s->pipe[1], F_SETFD, FD_CLOEXEC);
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, END_SIGNAL);
    if (server) sigaddset(&s->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
    rc = weir__thread_start(&s->thread, "weir-stop", wait_for_signals, s, err);
    if (rc != 0) {
        weir__stop_end(s);
        return rc;
    }
    *out = s;
    return 0;
}

int weir__stop_start(struct weir__stop **out, void (*fn)(void *user), void *user,
                     struct weir_error *err)
{
    return start(out, false, fn, user, err);
}

int weir__stop_start_server(struct weir__stop **out, struct weir_error *err)
{
    return start(out, true, NULL, NULL, err);
}

bool weir__stop_take_hup(struct weir__stop *s)
{
    char bytes[16];

    if (!atomic_load(&s->hup)) return false;
    if (read(s->pipe[0], bytes, sizeof bytes) < 0) return false; /* before the next one is noted */
    atomic_store(&s->hup, false);
    return true;
}

bool weir__stop_asked(const struct weir__stop *s)
{
    return atomic_load(&s->asked);
}

int weir__stop_fd(const struct weir__stop *s)
{
    return s->pipe[0];
}

void weir__stop_end(struct weir__stop *s)
{
    if (!s) return;
    atomic_store(&s->ending, true);
    if (s->thread.running) pthread_kill(s->thread.t, END_SIGNAL);
    weir__thread_join(&s->thread);
    close(s->pipe[0]);
    close(s->pipe[1]);
    free(s);
}
