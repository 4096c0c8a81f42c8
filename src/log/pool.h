/* pool.h - the threads that any number of logs share.
 *
 * Flushers take jobs from one queue, first come first served. A job is in the queue or on one
 * thread, never both; one that has more to do than a turn allows goes behind the others. The keeper
 * calls each member when it is due, one at a time.
 *
 * Threads are started when they are needed. One that cannot be started for a moment is tried again
 * the next time; the work waits or goes on with those that are there. A flusher whose work came soon
 * the last time stays awake for a tenth of a millisecond before it sleeps.
 *
 * Lock order: the lock that a job's or member's owner has > the pool's. */
#ifndef WEIR_LOG_POOL_H
#define WEIR_LOG_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WEIR__LOG_POOL_FLUSHERS 4u      /* of a pool that many logs share */
#define WEIR__LOG_POOL_FLUSHERS_MAX 16u /* of any */

struct weir__log_pool;

int weir__log_pool_new(struct weir__log_pool **out, unsigned flushers, struct weir_error *);

/* Every log that was opened with it is closed. NULL is allowed. */
void weir__log_pool_free(struct weir__log_pool *);

/* ---- for logs ---- */

enum weir__job_state {
    WEIR__JOB_NONE, /* there is no pool */
    WEIR__JOB_IDLE,
    WEIR__JOB_QUEUED, /* it will run; also between leaving the queue and running */
    WEIR__JOB_RUNNING
};

struct weir__pool_job {
    enum weir__job_state state; /* the owner's, under its lock */
    /* Takes the owner's lock and makes the state RUNNING; before it returns IDLE, or QUEUED again
     * by weir__pool_put_back. The pool does not touch the job behind its return. */
    void (*run)(void *owner);
    void *owner;
    struct weir__pool_job *next; /* pool */
};

/* Under the owner's lock, when the job is IDLE: it becomes QUEUED. */
void weir__pool_put(struct weir__log_pool *, struct weir__pool_job *);
/* The same for a job at the end of its turn. */
void weir__pool_put_back(struct weir__log_pool *, struct weir__pool_job *);

/* Whether the calling thread is one of its flushers. */
bool weir__pool_here(struct weir__log_pool *);

struct weir__pool_member {
    /* Does what is due and returns when to come again, as weir__deadline_ns. */
    int64_t (*keep)(void *owner);
    void *owner;
    int64_t due_ns; /* pool */
    size_t at;      /* pool; its place in the heap */
    enum weir__member_state {
        WEIR__MEMBER_OUT,
        WEIR__MEMBER_WAITS,
        WEIR__MEMBER_KEPT /* the keeper is at it */
    } state;              /* pool */
};

/* Begins keeping a member, at due_ns first. When this returns 0 the keeper and at least one flusher
 * run. WEIR_EBUSY: they cannot be started now. */
int weir__pool_join(struct weir__log_pool *, struct weir__pool_member *, int64_t due_ns,
                    struct weir_error *);

/* Returns when the keeper is not at it and will not come again. Without the owner's lock; nothing
 * when it never joined. */
void weir__pool_leave(struct weir__log_pool *, struct weir__pool_member *);

/* Makes it due at due_ns, unless it is due earlier. */
void weir__pool_due(struct weir__log_pool *, struct weir__pool_member *, int64_t due_ns);

#endif
