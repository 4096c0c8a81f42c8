/* trial.h - `weir bench send|receive|e2e`: what a program sees that uses the library, on a folder or
 * over a connection: how fast, how late, and what it costs it.
 *
 *   send      batches to the partitions in turn, many under way, timed until each is acknowledged
 *   receive   what the partitions hold when it begins, from their oldest events, timed call by call
 *   e2e       both at once: what is sent, at a rate or as fast as it goes, is received, timed from
 *             the moment it should have been sent to the return of the call that gives it
 *
 * Nothing is deleted, no receiver is pushed aside (none has an epoch), and events of others are
 * counted but not taken for ours: e2e begins behind the newest events and knows its own by a number
 * that they begin with.
 *
 *   body of an event that is sent: run (8 bytes), when it should have been sent (8), filling
 *
 * CPU is that of this process. For e2e it is divided: the sending thread and the thread on which the
 * library runs completions are the sender's, all others the receiver's. */
#ifndef WEIR_BENCH_TRIAL_H
#define WEIR_BENCH_TRIAL_H

#include <stdio.h>

#include "base/thread.h"
#include "bench/histogram.h"
#include "weir/weir.h"

#define WEIR__TRIAL_SIZE_MIN 16u /* bytes of a body: the mark */
#define WEIR__TRIAL_SIZE_MAX (1u << 20)
#define WEIR__TRIAL_BATCH_MAX 4096u
#define WEIR__TRIAL_PARTITIONS_MAX 256u /* a thread reads each */
#define WEIR__TRIAL_RATE_MAX 100000000u

enum weir__trial_mode { WEIR__TRIAL_SEND, WEIR__TRIAL_RECEIVE, WEIR__TRIAL_E2E };

struct weir__trial_options {
    enum weir__trial_mode mode;
    struct weir *to, *from; /* for senders and receivers; the same, or two connections */
    const char *hub, *group;
    uint32_t size;       /* bytes of a body; 0: 100 */
    uint32_t batch;      /* events sent as one; 0: 100 */
    uint32_t partitions; /* the first so many of the hub; 0: all, or as many as there may be */
    uint32_t rate;       /* events per second; 0: as fast as it goes */
    uint64_t count;      /* events in all, and time: whichever ends first, 0: not by this one */
    int64_t time_ms;
    FILE *progress;              /* a terminal, or NULL */
    bool (*stopped)(void *user); /* asked now and then; true ends the run early */
    void *user;
};

/* What one side did; events is 0 when it had no part. */
struct weir__trial_side {
    uint64_t events, bytes; /* bodies only; acknowledged, received */
    double seconds;
    double cpu_s;
    double user_s, system_s; /* of cpu_s; 0 where both sides ran */
};

struct weir__trial {
    struct weir__trial_options o; /* complete */
    struct weir__trial_side sent, received;
    uint64_t failed;              /* not acknowledged */
    uint64_t missing;             /* e2e: acknowledged, not received */
    uint64_t others;              /* e2e: received, somebody else's */
    struct weir__histogram times; /* ns */
};

/* Runs it; out is large, and complete also when a run was ended early or failed on its way. The
 * first failure is returned. WEIR_EINVAL: an option is out of range. */
int weir__trial_run(struct weir__trial *out, const struct weir__trial_options *,
                    struct weir_error *);

/* Lines for people, or one JSON object. */
void weir__trial_print(const struct weir__trial *, FILE *, bool json);

#endif
