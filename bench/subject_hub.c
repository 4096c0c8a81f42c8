/* subject_hub.c - a hub that is given what came over a wire. */
#include <stdlib.h>

#include "bench/subject.h"
#include "hub/namespace.h"

struct hub_subject {
    struct weir__subject base;
    struct weir__namespace *space;
    struct weir__hub *hub;
};

static struct weir__hub *hub_of(struct weir__subject *subject)
{
    return ((struct hub_subject *)(void *)subject)->hub;
}

static void tell(void *user, int rc, const struct weir__log_receipt *receipt,
                 const struct weir_error *err)
{
    (void)receipt;
    (void)err;
    weir__window_done(user, 1, rc);
}

/* What a server does with a transfer: looks into it, finds its partition, hands it on. */
static int send_batch(struct weir__subject *subject, const struct weir__parcel *parcel,
                      uint32_t partition, struct weir__window *window, struct weir_error *err)
{
    struct weir__hub *hub = hub_of(subject);
    struct weir__batch batch;
    int rc = weir__batch_of_payload(&batch, parcel->format, parcel->payload, 0, err);

    if (rc == 0) rc = weir__hub_route(hub, &batch, partition, &partition, err);
    if (rc != 0) return rc;
    return weir__hub_publish(hub, &batch, partition, NULL, INT64_MAX, tell, window, err);
}

static int send_wait(struct weir__subject *subject, const struct weir__parcel *parcel,
                     uint32_t partition, struct weir_error *err)
{
    struct weir__hub *hub = hub_of(subject);
    struct weir__log_receipt receipt;
    struct weir__batch batch;
    int rc = weir__batch_of_payload(&batch, parcel->format, parcel->payload, 0, err);

    if (rc == 0) rc = weir__hub_route(hub, &batch, partition, &partition, err);
    if (rc != 0) return rc;
    return weir__hub_publish_wait(hub, &batch, partition, NULL, INT64_MAX, &receipt, err);
}

static int close_hub(struct weir__subject *subject, struct weir_error *err)
{
    struct hub_subject *s = (struct hub_subject *)(void *)subject;
    int rc = 0;

    weir__hub_release(s->hub);
    if (s->space) rc = weir__namespace_close(s->space, err);
    free(s);
    return rc;
}

static int open_hub(struct weir__subject **out, const struct weir__subject_options *options,
                    struct weir_error *err)
{
    struct weir__namespace_options space = {.segment_bytes_max = options->segment_bytes};
    struct weir__hub_config config = {
        .name = "bench",
        .partitions = options->partitions,
        .retain_bytes = options->retain_bytes,
    };
    struct hub_subject *s = calloc(1, sizeof *s);
    int rc;

    if (!s) return weir__fail(err, WEIR_ENOMEM, "hub");
    s->base.ops = &weir__subject_hub;
    rc = weir__namespace_open(&s->space, options->dir, &space, err);
    if (rc == 0 && !options->existing) rc = weir__namespace_hub_create(s->space, &config, err);
    if (rc == 0) rc = weir__namespace_use(s->space, config.name, &s->hub, err);
    if (rc != 0) {
        close_hub(&s->base, NULL);
        return rc;
    }
    *out = &s->base;
    return 0;
}

const struct weir__subject_ops weir__subject_hub = {
    .name = "hub",
    .open = open_hub,
    .send = send_batch,
    .send_wait = send_wait,
    .close = close_hub,
};
