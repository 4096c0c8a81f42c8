/* turn_queue.c - connections whose next message waits for a turn of their loop.
 *
 * Checking a message of a megabyte takes milliseconds, and a hundred peers may send theirs at once. So a
 * message that comes when a turn of the loop is over waits, in the order in which they came. A turn takes
 * from the front of the queue until it is over, and at least one, so nobody waits for ever; and as a large
 * message is begun late in a turn at most once, a turn is no longer than WEIR__LOOP_TURN_NS, one share of
 * small messages, and one large one.
 *
 * Only the first of the queue is visited: the others cost nothing while they wait. */
#include "server/state.h"

#define LARGE_BYTES 16384u

static struct weir__turn_queue *queue_of(const struct weir__connection *c)
{
    return &c->server->at[weir__loop_index(c->loop)].queue;
}

static void join(struct weir__turn_queue *q, struct weir__connection *c)
{
    c->in_queue = true;
    c->queue_next = NULL;
    c->queue_prev = q->last;
    if (q->last)
        q->last->queue_next = c;
    else
        q->first = c;
    q->last = c;
}

void weir__turn_queue_leave(struct weir__connection *c)
{
    struct weir__turn_queue *q = queue_of(c);

    if (!c->in_queue) return;
    c->in_queue = false;
    if (c->queue_next)
        c->queue_next->queue_prev = c->queue_prev;
    else
        q->last = c->queue_prev;
    if (c->queue_prev)
        c->queue_prev->queue_next = c->queue_next;
    else
        q->first = c->queue_next;
    if (q->first) weir__connection_visit(q->first);
}

bool weir__turn_queue_wait(struct weir__connection *c, size_t message_bytes)
{
    struct weir__turn_queue *q = queue_of(c);
    uint64_t turn = weir__loop_turn(c->loop);
    bool large = message_bytes >= LARGE_BYTES, over = weir__loop_turn_over(c->loop);

    if (!c->in_queue && !over && !(large && q->first)) {
        if (large) q->taken = turn;
        return false;
    }
    if (!c->in_queue) join(q, c);
    if (q->first != c) return true;
    if (over && q->taken == turn) {
        weir__connection_visit(c);
        return true;
    }
    q->taken = turn;
    weir__turn_queue_leave(c);
    return false;
}
