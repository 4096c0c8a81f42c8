#define _GNU_SOURCE
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

void weir__mutex_init(struct weir__mutex *m)
{
    int rc = pthread_mutex_init(&m->m, NULL);
    assert(rc == 0);
    (void)rc;
}

void weir__mutex_fini(struct weir__mutex *m)
{
    pthread_mutex_destroy(&m->m);
}

void weir__mutex_lock(struct weir__mutex *m)
{
    int rc = pthread_mutex_lock(&m->m);
    assert(rc == 0);
    (void)rc;
}

void weir__mutex_unlock(struct weir__mutex *m)
{
    int rc = pthread_mutex_unlock(&m->m);
    assert(rc == 0);
    (void)rc;
}

void weir__cond_init(struct weir__cond *c)
{
    pthread_condattr_t attr;
    int rc;

    pthread_condattr_init(&attr);
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    assert(rc == 0);
    rc = pthread_cond_init(&c->c, &attr);
    assert(rc == 0);
    (void)rc;
    pthread_condattr_destroy(&attr);
}

void weir__cond_fini(struct weir__cond *c)
{
    pthread_cond_destroy(&c->c);
}

void weir__cond_signal(struct weir__cond *c)
{
    pthread_cond_signal(&c->c);
}

void weir__cond_broadcast(struct weir__cond *c)
{
    pthread_cond_broadcast(&c->c);
}

bool weir__cond_wait(struct weir__cond *c, struct weir__mutex *m, int64_t deadline_ns)
{
    struct timespec until;

    if (deadline_ns == INT64_MAX) return pthread_cond_wait(&c->c, &m->m) == 0;
    until.tv_sec = (time_t)(deadline_ns / 1000000000);
    until.tv_nsec = (long)(deadline_ns % 1000000000);
    return pthread_cond_timedwait(&c->c, &m->m, &until) != ETIMEDOUT;
}

int64_t weir__mono_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t weir__deadline_ns(int64_t timeout_ms)
{
    int64_t now;

    if (timeout_ms < 0) return INT64_MAX;
    now = weir__mono_ns();
    if (timeout_ms > (INT64_MAX - now) / 1000000) return INT64_MAX;
    return now + timeout_ms * 1000000;
}

int weir__thread_start(struct weir__thread *t, const char *name, void *(*run)(void *), void *arg,
                       struct weir_error *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&t->t, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) return weir__fail_errno(err, rc, "starting a thread");
    t->running = true;
    pthread_setname_np(t->t, name);
    return 0;
}

void weir__thread_join(struct weir__thread *t)
{
    if (!t->running) return;
    pthread_join(t->t, NULL);
    t->running = false;
}

void weir__thread_detach(struct weir__thread *t)
{
    if (!t->running) return;
    pthread_detach(t->t);
    t->running = false;
}
