/* publish.c - batches on their way to the disk: from a connection to the log and back. */
#include <assert.h>
#include <stdlib.h>

#include "server/state.h"

struct weir__publish *weir__publish_new(struct weir__connection *c)
{
    struct weir__publish *p = c->spare;

    if (p) {
        c->spare = p->next;
        c->spare_count--;
    } else {
        p = malloc(sizeof *p);
    }
    if (p) *p = (struct weir__publish){.connection = c};
    return p;
}

void weir__publish_free(struct weir__publish *p)
{
    struct weir__connection *c = p->connection;

    free(p->why);
    if (c->spare_count == WEIR__PUBLISH_SPARE_MAX) {
        free(p);
        return;
    }
    p->why = NULL;
    p->next = c->spare;
    c->spare = p;
    c->spare_count++;
}

void weir__publish_begin(struct weir__publish *p, size_t bytes)
{
    p->bytes = bytes;
    p->connection->unflushed += bytes;
    atomic_fetch_add(&p->connection->server->unflushed, bytes);
    atomic_fetch_add(&p->connection->refs, 1);
}

/* It is no longer with the log. The reference stays with the caller. */
static void end_publish(struct weir__publish *p)
{
    struct weir__server *s = p->connection->server;

    p->connection->unflushed -= p->bytes;
    if (atomic_fetch_sub(&s->unflushed, p->bytes) == p->bytes && atomic_load(&s->stopping)) {
        weir__mutex_lock(&s->lock);
        weir__cond_broadcast(&s->changed);
        weir__mutex_unlock(&s->lock);
    }
    weir__publish_free(p);
}

void weir__publish_cancel(struct weir__publish *p)
{
    struct weir__connection *c = p->connection;

    end_publish(p);
    weir__connection_let_go(c);
}

/* On the log's thread. The loops run until the log has done all that it was given, so there is
 * always somebody to take the mail. */
void weir__publish_done(void *publish, int rc, const struct weir__log_receipt *receipt,
                        const struct weir_error *err)
{
    struct weir__publish *p = publish;
    struct weir__connection *c = p->connection;

    (void)receipt;
    p->rc = rc;
    if (rc != 0 && err) p->why = malloc(sizeof *p->why);
    if (p->why) *p->why = *err;
    weir__mutex_lock(&c->lock);
    *c->done_last = p;
    c->done_last = &p->next;
    rc = weir__loop_post(c->loop, &c->work);
    assert(rc == 0);
    weir__mutex_unlock(&c->lock);
}

unsigned weir__publish_take_done(struct weir__connection *c)
{
    struct weir__publish *p, *next;
    unsigned count = 0;

    weir__mutex_lock(&c->lock);
    p = c->done;
    c->done = NULL;
    c->done_last = &c->done;
    weir__mutex_unlock(&c->lock);
    for (; p; p = next, count++) {
        next = p->next;
        weir__sender_settle(p);
        end_publish(p);
    }
    return count;
}
