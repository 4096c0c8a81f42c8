/* subject_api.c - what a program calls: event structs through the public interface. */
#include <stdlib.h>

#include "bench/subject.h"
#include "weir/weir.h"

struct api_subject {
    struct weir__subject base;
    struct weir *weir;
    struct weir_producer *producer;
};

static struct weir_producer *producer_of(struct weir__subject *subject)
{
    return ((struct api_subject *)(void *)subject)->producer;
}

static void tell(void *user, int rc, const struct weir_receipt *receipt,
                 const struct weir_error *err)
{
    (void)receipt;
    (void)err;
    weir__window_done(user, 1, rc);
}

static int send_batch(struct weir__subject *subject, const struct weir__parcel *parcel,
                      uint32_t partition, struct weir__window *window, struct weir_error *err)
{
    (void)partition; /* the producer takes them in turn */
    return weir_producer_send_async(producer_of(subject), parcel->events, parcel->count, -1, tell,
                                    window, err);
}

static int send_wait(struct weir__subject *subject, const struct weir__parcel *parcel,
                     uint32_t partition, struct weir_error *err)
{
    (void)partition;
    return weir_producer_send(producer_of(subject), parcel->events, parcel->count, -1, NULL, err);
}

static int close_api(struct weir__subject *subject, struct weir_error *err)
{
    struct api_subject *s = (struct api_subject *)(void *)subject;
    int rc = weir_producer_close(s->producer, -1, err);
    int closed = weir_close(s->weir, rc == 0 ? err : NULL);

    free(s);
    return rc == 0 ? closed : rc;
}

static int open_api(struct weir__subject **out, const struct weir__subject_options *options,
                    struct weir_error *err)
{
    struct weir_hub_options hub = {
        .size = sizeof hub,
        .partitions = options->partitions,
        .retain_bytes = options->retain_bytes,
    };
    struct api_subject *s = calloc(1, sizeof *s);
    int rc;

    if (!s) return weir__fail(err, WEIR_ENOMEM, "api");
    s->base.ops = &weir__subject_api;
    rc = weir_open(&s->weir, options->dir, NULL, err);
    if (rc == 0) rc = weir_hub_create(s->weir, "bench", &hub, err);
    if (rc == 0) rc = weir_producer_open(&s->producer, s->weir, "bench", NULL, err);
    if (rc != 0) {
        close_api(&s->base, NULL);
        return rc;
    }
    *out = &s->base;
    return 0;
}

const struct weir__subject_ops weir__subject_api = {
    .name = "api",
    .open = open_api,
    .send = send_batch,
    .send_wait = send_wait,
    .close = close_api,
};
