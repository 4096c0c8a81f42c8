/* thread.h - the threads, locks and waits that the rooms use. Waits measure monotonic time. */
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct weir__mutex {
    pthread_mutex_t m;
};

struct weir__cond {
    pthread_cond_t c;
};

struct weir__thread {
    pthread_t t;
    bool running;
};

void weir__mutex_init(struct weir__mutex *);
void weir__mutex_fini(struct weir__mutex *);
void weir__mutex_lock(struct weir__mutex *);
void weir__mutex_unlock(struct weir__mutex *);

void weir__cond_init(struct weir__cond *);
void weir__cond_fini(struct weir__cond *);
void weir__cond_signal(struct weir__cond *);
void weir__cond_broadcast(struct weir__cond *);

/* Waits until signalled or until deadline_ns of weir__mono_ns (INT64_MAX: for ever); false when the
 * deadline passed. May return true without a signal: test the condition again. */
bool weir__cond_wait(struct weir__cond *, struct weir__mutex *, int64_t deadline_ns);

/* CLOCK_MONOTONIC, for deadlines only. */
int64_t weir__mono_ns(void);

/* deadline_ns for a wait of timeout_ms from now; negative means for ever. */
int64_t weir__deadline_ns(int64_t timeout_ms);

/* All signals are blocked in the new thread. name is for debuggers, at most 15 bytes. */
int weir__thread_start(struct weir__thread *, const char *name, void *(*run)(void *), void *arg,
                       struct weir_error *);
void weir__thread_join(struct weir__thread *);   /* nothing when it never started */
void weir__thread_detach(struct weir__thread *); /* likewise: nobody will join it */

#endif
