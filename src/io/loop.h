/* loop.h - loops: each is a thread that waits for sockets, timers and mail, and does one turn after
 * the other:
 *
 *     poll     sockets that are ready are read and written
 *     expire   timers that are due
 *     mail     posts of other threads
 *     late     what earlier turns had no time for: sockets, and the rest of large inputs
 *     turn     the owner's own step, when it gave one: everything of this turn has been read
 *     flush    posts of this thread: output goes out here, and what is to be closed is closed
 *
 * Whatever lives on a loop is touched by that loop's thread only; others post. A call marked
 * "here" must be made on the loop's own thread, and asserts that it is. */
#ifndef WEIR_IO_LOOP_H
#define WEIR_IO_LOOP_H

#include "io/mailbox.h"
#include "io/timer.h"

/* In one turn a loop runs at most so many posts of others, and goes over its own list at most so
 * many times; the rest follows in the next turn, without a rest between. */
#define WEIR__LOOP_POSTS_PER_TURN 1024
#define WEIR__LOOP_FLUSHES_PER_TURN 8

#define WEIR__LOOPS_MAX 256

/* How long a turn may last before those who have much to do leave the rest for the next one, so
 * that everybody has a turn soon. */
#define WEIR__LOOP_TURN_NS INT64_C(1000000)

/* How long each of the other parts may go on when the turn is over, or nearly. Each does at least one
 * thing, so that nobody waits for ever. */
#define WEIR__LOOP_PART_NS INT64_C(500000)

/* How long a loop that expects mail stays awake for it, if what it waited for the last time came as
 * soon: waking a thread takes 15 to 30 us, and whoever publishes one batch after another would wait for
 * that each time. Threads that have something to do go first. */
#define WEIR__LOOP_AWAKE_NS INT64_C(200000)

/* Turns by how long they took, from the end of the wait to the beginning of the next. The last
 * bucket has those above every bound. */
#define WEIR__LOOP_TURN_BUCKETS 13
#define WEIR__LOOP_LONG_US 5000

struct weir__loop_turns {
    uint64_t buckets[WEIR__LOOP_TURN_BUCKETS];
    uint64_t ns;          /* all of them together */
    uint64_t worked_long; /* turns in which a loop worked for more than WEIR__LOOP_LONG_US */
};

struct weir__loop;
struct weir__loops;

/* Zero means the default. */
struct weir__loops_options {
    unsigned count;                                /* one for each core; at most WEIR__LOOPS_MAX */
    void (*turn)(void *user, struct weir__loop *); /* see above; NULL: none */
    void *user;
};

int weir__loops_start(struct weir__loops **out, const struct weir__loops_options *,
                      struct weir_error *);

/* Closes what still lives on the loops (connections are told WEIR_ECANCELED), runs the posts that
 * wait, and ends the threads. Not from a loop. From here on weir__loop_post says WEIR_ECLOSED.
 * Timers that still run are forgotten. */
void weir__loops_stop(struct weir__loops *);
void weir__loops_free(struct weir__loops *); /* stops them first; NULL is fine */

unsigned weir__loops_count(const struct weir__loops *);
struct weir__loop *weir__loops_at(struct weir__loops *, unsigned index);

/* Any thread: adds the turns of all loops to what is in `out`. */
void weir__loops_turns(struct weir__loops *, struct weir__loop_turns *out);
/* Microseconds: the most of a bucket. 0: there is no most. */
uint32_t weir__loop_turn_bound_us(unsigned bucket);

unsigned weir__loop_index(const struct weir__loop *);

/* Here: which turn this is, for how long it has lasted, and whether that is WEIR__LOOP_TURN_NS. The last
 * two read the clock. */
uint64_t weir__loop_turn(const struct weir__loop *);
int64_t weir__loop_turn_ns(const struct weir__loop *);
bool weir__loop_turn_over(const struct weir__loop *);
bool weir__loop_here(const struct weir__loop *); /* is this its thread? */

/* Runs the post on the loop, from any thread. Posting what waits already is fine. WEIR_ECLOSED: the
 * loop has stopped and the post will never run. */
int weir__loop_post(struct weir__loop *, struct weir__post *);

/* Here: so many more posts of others are to come soon, or, below 0, have come. */
void weir__loop_expect_mail(struct weir__loop *, int more);

/* Here: takes back a post that waits, whomever it was given to. */
void weir__loop_unpost(struct weir__loop *, struct weir__post *);

/* Here: runs the post at the end of this turn, without a lock. */
void weir__loop_defer(struct weir__loop *, struct weir__post *);

/* Here: runs the post in a later turn, in order, when that has time for it. */
void weir__loop_put_off(struct weir__loop *, struct weir__post *);

/* Here: milliseconds of a clock that never runs backwards, read once or twice a turn; the same
 * clock as weir__clock's mono_ms. */
int64_t weir__loop_now_ms(const struct weir__loop *);

/* Here. at_ms is of weir__loop_now_ms. Started again, a timer moves; INT64_MAX stops it. */
void weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t at_ms);
void weir__loop_timer_stop(struct weir__loop *, struct weir__timer *);

#endif
