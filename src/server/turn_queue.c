/* turn_queue.c - connections whose next message waits for a turn of their loop.
 *
 * Checking a message of a megabyte takes milliseconds, and a hundred peers may send one at the same time.
 * So a message that arrives after WEIR__LOOP_TURN_NS of a turn waits in a queue, first come, first served.
 *
 *   small messages   the queue is served for SMALL_NS from the first that was taken late, however long
 *                    the turn has lasted then: else a loop that has much else to do would take one in a
 *                    turn, behind all who did not have to wait
 *   large messages   one may be begun after WEIR__LOOP_TURN_NS, if nothing else was taken late; none
 *                    overtakes the queue
 *
 * So what comes late adds to a turn SMALL_NS and one connection's share of small messages, or one large
 * message. The queue has its place among what is deferred, first come, first served, and gives up at least
 * one message each time it is served, so no connection waits for ever. */
#include "server/state.h"

#define LARGE_BYTES 16384u
#define SMALL_NS WEIR__LOOP_TURN_NS

static struct weir__turn_queue *queue_of(const struct weir__connection *c)
{
    return &c->server->at[weir__loop_index(c->loop)].queue;
}

/* Serves connections from the front of the queue until one of them may not go yet. */
static void serve_queue(void *arg)
{
    struct weir__turn_queue *q = arg;
    struct weir__connection *c, *before = NULL;

    for (; (c = q->first) && c != before; before = c) weir__connection_serve(c);
    if (c) weir__loop_defer(c->loop, &q->serve);
}

void weir__turn_queue_init(struct weir__turn_queue *q)
{
    weir__post_init(&q->serve, serve_queue, q);
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
    weir__loop_defer(c->loop, &q->serve);
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
}

/* Notes that this turn takes a late or a large message. */
static void take(struct weir__turn_queue *q, uint64_t turn, int64_t from_ns)
{
    if (q->taken == turn) return;
    q->taken = turn;
    q->until_ns = SMALL_NS + (from_ns > WEIR__LOOP_TURN_NS ? from_ns : WEIR__LOOP_TURN_NS);
}

bool weir__turn_queue_wait(struct weir__connection *c, size_t message_bytes)
{
    struct weir__turn_queue *q = queue_of(c);
    uint64_t turn = weir__loop_turn(c->loop);
    int64_t ns = weir__loop_turn_ns(c->loop);
    bool large = message_bytes >= LARGE_BYTES, over = ns >= WEIR__LOOP_TURN_NS;

    if (!c->in_queue && !over && !(large && q->first)) {
        if (large) take(q, turn, 0);
        return false;
    }
    if (!c->in_queue) join(q, c);
    if (q->first != c) return true;
    if (q->taken == turn && (large ? over : ns >= q->until_ns)) return true;
    take(q, turn, large ? 0 : ns);
    weir__turn_queue_leave(c);
    return false;
}
