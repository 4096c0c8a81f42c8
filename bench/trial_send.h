/* trial_send.h - the sending side of a trial. */
#ifndef WEIR_BENCH_TRIAL_SEND_H
#define WEIR_BENCH_TRIAL_SEND_H

#include <time.h>

#include "bench/trial.h"

struct weir__trial_sender;

/* Opens a producer for each partition and sends one batch, which shows that it works, and on which
 * thread completions run. Its events are due at 0. */
int weir__trial_sender_open(struct weir__trial_sender **out, const struct weir__trial_options *,
                            uint64_t run, struct weir_error *);

/* Until the count, the time, the end or a failure; then waits for what is under way. Fills
 * trial->sent and failed, and with timed the times of acknowledgement. */
int weir__trial_sender_run(struct weir__trial_sender *, struct weir__trial *, bool timed,
                           struct weir_error *);

/* CPU of the calling thread, which must be the sending one, and of the library's, so far. */
double weir__trial_sender_cpu_s(const struct weir__trial_sender *);

void weir__trial_sender_close(struct weir__trial_sender *); /* NULL is fine */

#endif
