/* rest.c - events by HTTP: POST /HUB/messages, /HUB/partitions/N/messages and, for those who still
 * use it, /HUB/publishers/NAME/messages.
 *
 *   body > weir__posting_read > weir__server_publish > (on disk) > 201
 *
 * 201 means what `accepted` means in AMQP. A log that takes nothing in is asked again for
 * WEIR__SERVER_BUSY_MS, as there; then it is 503, with Retry-After. */
#include <inttypes.h>

#include "server/posting.h"
#include "server/web.h"

/* The partition that the path names, when it names one. */
static int find_partition(const struct weir__visit *v, uint32_t *out, struct weir_error *err)
{
    uint32_t count = weir__hub_partitions(v->hub);

    *out = WEIR__PARTITION_ANY;
    if (!strstr(v->route->path, "partitions")) return 0;
    *out = weir__address_partition(v->star[1]);
    if (*out < count) return 0;
    return weir__fail(err, WEIR_EINVAL,
                      "The specified partition is invalid for an EventHub partition sender or "
                      "receiver. It should be between 0 and %" PRIu32 ".",
                      count - 1);
}

static void count_unflushed(struct weir__visit *v, size_t bytes)
{
    v->unflushed = bytes;
    atomic_fetch_add(&v->server->unflushed, bytes);
}

/* What stop waits for. */
static void uncount_unflushed(struct weir__visit *v)
{
    struct weir__server *s = v->server;

    if (atomic_fetch_sub(&s->unflushed, v->unflushed) == v->unflushed &&
        atomic_load(&s->stopping)) {
        weir__mutex_lock(&s->lock);
        weir__cond_broadcast(&s->changed);
        weir__mutex_unlock(&s->lock);
    }
}

/* On the log's thread. */
static void done(void *visit, int rc, const struct weir__log_receipt *receipt,
                 const struct weir_error *err)
{
    struct weir__visit *v = visit;

    (void)receipt;
    v->rc = rc;
    if (rc != 0) v->why = err ? *err : (struct weir_error){.code = rc};
    weir__visit_return(v);
}

/* On the loop again. */
static void settle(struct weir__visit *v)
{
    uncount_unflushed(v);
    weir__hub_release(v->hub);
    v->hub = NULL;
    if (v->rc == 0)
        weir__answer_empty(v, 201);
    else
        weir__answer_failure(v, &v->why);
}

/* On the loop again, or still. The log is busy. */
static void try_later(struct weir__visit *v)
{
    v->returned = NULL;
    if (v->tcp && !weir__visit_retry(v)) weir__answer_failure(v, &v->why);
}

static int publish(struct weir__visit *v, struct weir__batch_writer *writer, struct weir_error *err)
{
    struct weir__batch batch;
    uint32_t wanted, partition = 0;
    int rc = find_partition(v, &wanted, err);

    if (rc == 0 && atomic_load(&v->server->unflushed) > WEIR__SERVER_UNFLUSHED_ALL_MAX)
        rc = weir__fail(err, WEIR_EBUSY, "too much is not on disk yet");
    if (rc == 0) rc = weir__posting_read(writer, v->request, weir__buf_bytes(&v->body), err);
    if (rc == 0) rc = weir__batch_writer_batch(writer, &batch, err);
    if (rc == 0) rc = weir__hub_route(v->hub, &batch, wanted, &partition, err);
    if (rc != 0) return rc;
    v->returned = settle;
    count_unflushed(v, writer->body.len + 1); /* never nothing */
    rc = weir__server_publish(v->server, v->hub, &batch, partition, NULL, done, v, err);
    if (rc == 0) return 0;
    v->returned = NULL;
    uncount_unflushed(v);
    return rc;
}

bool weir__rest_answer(struct weir__visit *v)
{
    struct weir__batch_writer writer;
    struct weir_error err;
    int rc = weir__namespace_use(v->server->ns, v->star[0], &v->hub, &err);

    if (rc == WEIR_ENOTFOUND) /* as the service says it */
        weir__fail(&err, rc, "The messaging entity '%.200s' could not be found.", v->star[0]);

    if (rc == 0) {
        weir__batch_writer_init(&writer, weir__hub_batch_bytes_max(v->hub));
        rc = publish(v, &writer, &err);
        weir__batch_writer_fini(&writer);
    }
    if (rc == 0) return false;
    weir__hub_release(v->hub);
    v->hub = NULL;
    if (rc == WEIR_EBUSY) {
        v->why = err;
        v->returned = try_later;
    } else {
        weir__answer_failure(v, &err);
    }
    return true;
}
