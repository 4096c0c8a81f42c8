#include "io/timer.h"

#include <stddef.h>

/* Of two trees one: the later top becomes the first child of the earlier. What a top has for next and
 * prev means nothing. */
static struct weir__timer *meld(struct weir__timer *a, struct weir__timer *b)
{
    if (!a) return b;
    if (!b) return a;
    if (b->at_ms < a->at_ms) {
        struct weir__timer *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    b->prev = a;
    if (a->child) a->child->prev = b;
    a->child = b;
    return a;
}

/* Melds siblings in pairs from left to right, then the pairs from right to left: this order is what
 * keeps the trees flat. The pairs are chained by prev meanwhile. */
static struct weir__timer *meld_siblings(struct weir__timer *first)
{
    struct weir__timer *pairs = NULL, *top = NULL;

    while (first) {
        struct weir__timer *a = first, *b = a->next, *pair;
        first = b ? b->next : NULL;
        pair = meld(a, b);
        pair->prev = pairs;
        pairs = pair;
    }
    while (pairs) {
        struct weir__timer *before = pairs->prev;
        top = meld(top, pairs);
        pairs = before;
    }
    return top;
}

void weir__timers_stop(struct weir__timers *all, struct weir__timer *t)
{
    if (!t->running) return;
    t->running = false;
    if (t == all->top) {
        all->top = meld_siblings(t->child);
    } else {
        if (t->prev->child == t)
            t->prev->child = t->next;
        else
            t->prev->next = t->next;
        if (t->next) t->next->prev = t->prev;
        all->top = meld(all->top, meld_siblings(t->child));
    }
    t->child = t->next = t->prev = NULL;
}

void weir__timers_start(struct weir__timers *all, struct weir__timer *t, int64_t at_ms)
{
    weir__timers_stop(all, t);
    t->at_ms = at_ms;
    t->running = true;
    all->top = meld(all->top, t);
}

int64_t weir__timers_next(const struct weir__timers *all)
{
    return all->top ? all->top->at_ms : INT64_MAX;
}

struct weir__timer *weir__timers_due(struct weir__timers *all, int64_t now_ms)
{
    struct weir__timer *t = all->top;

    if (!t || t->at_ms > now_ms) return NULL;
    weir__timers_stop(all, t);
    return t;
}
