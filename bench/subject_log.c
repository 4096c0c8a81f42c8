/* subject_log.c - the log alone: bodies that nobody looks into. */
#include <stdlib.h>

#include "base/thread.h"
#include "bench/subject.h"
#include "log/log.h"

struct log_subject {
    struct weir__subject base;
    struct weir__log *log;
};

struct weir__log *weir__subject_log_of(struct weir__subject *subject)
{
    return ((struct log_subject *)(void *)subject)->log;
}

static void tell(void *user, int rc, const struct weir__log_receipt *receipt,
                 const struct weir_error *err)
{
    (void)receipt;
    (void)err;
    weir__window_done(user, 1, rc);
}

static struct weir__log_batch batch_of(const struct weir__parcel *parcel, uint32_t partition)
{
    return (struct weir__log_batch){.partition = partition,
                                    .count = parcel->count,
                                    .body = {parcel->payload}};
}

static int send_batch(struct weir__subject *subject, const struct weir__parcel *parcel,
                      uint32_t partition, struct weir__window *window, struct weir_error *err)
{
    struct weir__log_batch batch = batch_of(parcel, partition);

    return weir__log_append(weir__subject_log_of(subject), &batch, INT64_MAX, tell, window, err);
}

static int send_wait(struct weir__subject *subject, const struct weir__parcel *parcel,
                     uint32_t partition, struct weir_error *err)
{
    struct weir__log_batch batch = batch_of(parcel, partition);
    struct weir__log_receipt receipt;

    return weir__log_append_wait(weir__subject_log_of(subject), &batch, INT64_MAX, &receipt, err);
}

static int close_log(struct weir__subject *subject, struct weir_error *err)
{
    int rc = weir__log_close(weir__subject_log_of(subject), err);

    free(subject);
    return rc;
}

static int open_log(struct weir__subject **out, const struct weir__subject_options *options,
                    struct weir_error *err)
{
    struct weir__log_options log = {
        .dir = options->dir,
        .hub_id = 1,
        .partitions = options->partitions,
        .segment_bytes_max = options->segment_bytes,
        .retain_bytes = options->retain_bytes,
    };
    struct log_subject *s = calloc(1, sizeof *s);
    int rc;

    if (!s) return weir__fail(err, WEIR_ENOMEM, "log");
    s->base.ops = &weir__subject_log;
    rc = options->existing ? 0 : weir__log_create(&log, err);
    if (rc == 0) rc = weir__log_open(&s->log, &log, err);
    if (rc != 0) {
        free(s);
        return rc;
    }
    *out = &s->base;
    return 0;
}

const struct weir__subject_ops weir__subject_log = {
    .name = "log",
    .open = open_log,
    .send = send_batch,
    .send_wait = send_wait,
    .close = close_log,
};
