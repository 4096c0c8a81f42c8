/* hub.c - a hub behind weir_open as a processor's source: a receiver with an epoch for each
 * partition, woken by the library instead of waited for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "weir/source.h"

#define RECEIVER_NAME_MAX 64 /* bytes that a hub takes of a receiver's name */

struct hub_source {
    struct weir_source base;
    struct weir *weir;
};

struct weir_stream {
    struct weir_receiver *receiver;
    bool metrics;
};

static int count(struct weir_source *b, uint32_t *out, struct weir_error *err)
{
    struct hub_source *s = (struct hub_source *)b;
    struct weir_hub_info info;
    int rc = weir_hub_info(s->weir, b->hub, &info, err);

    if (rc == 0) *out = info.partitions;
    return rc;
}

static int open_stream(struct weir_source *b, uint32_t partition,
                       const struct weir_stream_options *options, struct weir_stream **out,
                       struct weir_error *err)
{
    char name[RECEIVER_NAME_MAX + 1];
    struct weir_receiver_options o = {
        .size = sizeof o,
        .group = b->group,
        .position = options->position,
        .exclusive = true,
        .epoch = options->epoch,
        .name = name,
        .bytes_max = options->bytes_max,
        .events_max = options->events_max,
        .metrics = options->metrics,
        .wake = options->wake,
        .user = options->user,
    };
    struct weir_stream *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a stream");
    snprintf(name, sizeof name, "%s", options->owner ? options->owner : "");
    s->metrics = options->metrics;
    rc = weir_receiver_open(&s->receiver, ((struct hub_source *)b)->weir, b->hub, partition, &o,
                            err);
    if (rc != 0) {
        free(s);
        return rc;
    }
    *out = s;
    return 0;
}

static int receive(struct weir_stream *s, size_t max, struct weir_received *out,
                   struct weir_error *err)
{
    return weir_receiver_receive(s->receiver, max, 0, out, err);
}

static void tail(struct weir_stream *s, struct weir_partition_tail *out)
{
    struct weir_receiver_metrics m;

    *out = (struct weir_partition_tail){0};
    if (!s->metrics || weir_receiver_metrics(s->receiver, &m, NULL) != 0 || m.retrieved_ms == 0)
        return;
    *out = (struct weir_partition_tail){
        .known = true,
        .last_sequence = m.last_sequence,
        .last_time_ms = m.last_time_ms,
        .heard_ms = m.retrieved_ms,
    };
}

static void shut(struct weir_stream *s)
{
    if (!s) return;
    weir_receiver_close(s->receiver);
    free(s);
}

static void close_source(struct weir_source *b)
{
    free(b);
}

static const struct weir_source_ops hub_ops = {
    .version = WEIR_SOURCE_VERSION,
    .count = count,
    .open = open_stream,
    .receive = receive,
    .tail = tail,
    .shut = shut,
    .close = close_source,
};

/* A receiver without an epoch shows that the group is there and that we may listen to it, and
 * disturbs nobody: where an owner reads it is refused, and that is as good an answer. */
static int try_group(struct hub_source *s, struct weir_error *err)
{
    struct weir_receiver_options o = {.size = sizeof o,
                                      .group = s->base.group,
                                      .name = "weir processor",
                                      .bytes_max = 1};
    struct weir_receiver *receiver;
    int rc = weir_receiver_open(&receiver, s->weir, s->base.hub, 0, &o, err);

    weir_receiver_close(receiver);
    if (rc == 0 || rc == WEIR_EEPOCH || rc == WEIR_ELIMIT) return 0;
    return weir__wrap(err, rc, "consumer group '%s' of hub '%s'", s->base.group, s->base.hub);
}

static int copy_name(char *to, size_t room, const char *name, const char *what,
                     struct weir_error *err)
{
    if (!name || !*name || strlen(name) >= room)
        return weir__fail(err, WEIR_EINVAL, "a %s's name has 1 to %zu bytes", what, room - 1);
    snprintf(to, room, "%s", name);
    return 0;
}

int weir_source_hub(struct weir_source **out, struct weir *w, const char *hub, const char *group,
                    struct weir_error *err)
{
    struct hub_source *s = calloc(1, sizeof *s);
    uint32_t partitions;
    int rc;

    *out = NULL;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a source");
    s->base.ops = &hub_ops;
    s->weir = w;
    rc = copy_name(s->base.hub, sizeof s->base.hub, hub, "hub", err);
    if (rc == 0)
        rc = copy_name(s->base.group, sizeof s->base.group, group ? group : WEIR_DEFAULT_GROUP,
                       "group", err);
    if (rc == 0) rc = weir_space(w, s->base.space, err);
    if (rc == 0) rc = count(&s->base, &partitions, err);
    if (rc == 0) rc = try_group(s, err);
    if (rc != 0) {
        free(s);
        return rc;
    }
    *out = &s->base;
    return 0;
}
