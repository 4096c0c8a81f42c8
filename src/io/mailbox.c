#include "io/mailbox.h"

#include <assert.h>

void weir__posts_put(struct weir__posts *list, struct weir__post *p)
{
    if (p->in) return;
    p->in = list;
    p->next = NULL;
    p->prev = list->last;
    if (list->last)
        list->last->next = p;
    else
        list->first = p;
    list->last = p;
    list->count++;
}

void weir__posts_drop(struct weir__posts *list, struct weir__post *p)
{
    if (p->in != list) return;
    if (p->prev)
        p->prev->next = p->next;
    else
        list->first = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        list->last = p->prev;
    p->in = NULL;
    list->count--;
}

struct weir__post *weir__posts_take(struct weir__posts *list)
{
    struct weir__post *p = list->first;

    if (p) weir__posts_drop(list, p);
    return p;
}

void weir__mailbox_init(struct weir__mailbox *m)
{
    *m = (struct weir__mailbox){.closed = false};
    weir__mutex_init(&m->lock);
}

void weir__mailbox_fini(struct weir__mailbox *m)
{
    assert(!m->posts.first);
    weir__mutex_fini(&m->lock);
}

int weir__mailbox_put(struct weir__mailbox *m, struct weir__post *p, bool *wake)
{
    bool closed;

    weir__mutex_lock(&m->lock);
    closed = m->closed;
    if (!closed) weir__posts_put(&m->posts, p);
    *wake = m->asleep;
    m->asleep = false;
    weir__mutex_unlock(&m->lock);
    return closed ? WEIR_ECLOSED : 0;
}

void weir__mailbox_drop(struct weir__mailbox *m, struct weir__post *p)
{
    weir__mutex_lock(&m->lock);
    if (p->in) weir__posts_drop(p->in, p);
    weir__mutex_unlock(&m->lock);
}

struct weir__post *weir__mailbox_take(struct weir__mailbox *m)
{
    struct weir__post *p;

    weir__mutex_lock(&m->lock);
    p = weir__posts_take(&m->posts);
    weir__mutex_unlock(&m->lock);
    return p;
}

bool weir__mailbox_rest(struct weir__mailbox *m)
{
    bool rests;

    weir__mutex_lock(&m->lock);
    rests = m->asleep = !m->posts.first;
    weir__mutex_unlock(&m->lock);
    return rests;
}

void weir__mailbox_wake(struct weir__mailbox *m)
{
    weir__mutex_lock(&m->lock);
    m->asleep = false;
    weir__mutex_unlock(&m->lock);
}

void weir__mailbox_close(struct weir__mailbox *m)
{
    weir__mutex_lock(&m->lock);
    m->closed = true;
    weir__mutex_unlock(&m->lock);
}
