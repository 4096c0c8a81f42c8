/* mailbox.h - work for a loop, put there by any thread.
 *
 * A post is embedded in what it is about, so that posting never fails and never allocates: there
 * can be as many posts waiting as there are things that own one. Posting what waits already does
 * nothing, so a hundred changes to one thing are one visit.
 *
 * The lock guards the list and `asleep`. A loop that is awake looks into its mailbox before it
 * rests, so only the first post to a resting loop has to wake it: one wake-up for many posts. */
#ifndef WEIR_IO_MAILBOX_H
#define WEIR_IO_MAILBOX_H

#include "base/thread.h"

struct weir__post {
    void (*fn)(void *arg); /* on the loop; may free the post, or post it again */
    void *arg;
    struct weir__posts *in; /* where it waits, NULL: nowhere */
    struct weir__post *next, *prev;
};

/* Posts in the order in which they came. */
struct weir__posts {
    struct weir__post *first, *last;
    size_t count;
};

struct weir__mailbox {
    struct weir__mutex lock;
    struct weir__posts posts;
    bool asleep;
    bool closed;
};

static inline void weir__post_init(struct weir__post *p, void (*fn)(void *arg), void *arg)
{
    *p = (struct weir__post){.fn = fn, .arg = arg};
}

/* Without a lock: for lists that one thread owns. put does nothing when it waits already, drop when
 * it does not wait there; take gives the first, NULL when there is none. */
void weir__posts_put(struct weir__posts *, struct weir__post *);
void weir__posts_drop(struct weir__posts *, struct weir__post *);
struct weir__post *weir__posts_take(struct weir__posts *);

void weir__mailbox_init(struct weir__mailbox *);
void weir__mailbox_fini(struct weir__mailbox *);

/* Any thread. WEIR_ECLOSED: it will never run. *wake: the owner rests, and it is up to the caller
 * to wake it. */
int weir__mailbox_put(struct weir__mailbox *, struct weir__post *, bool *wake);

/* The owner's thread. drop takes a post back from here or from a list of the owner's own. */
void weir__mailbox_drop(struct weir__mailbox *, struct weir__post *);
struct weir__post *weir__mailbox_take(struct weir__mailbox *);

/* The owner is about to rest; false when there is mail, and it should not. */
bool weir__mailbox_rest(struct weir__mailbox *);
void weir__mailbox_wake(struct weir__mailbox *); /* it rests no more */

/* Nothing is taken in from here on; what waits can still be taken out. */
void weir__mailbox_close(struct weir__mailbox *);

#endif
