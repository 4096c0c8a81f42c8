/* repeat.c - publishes the last batches of idempotent producers once more, and judges the answers.
 * Compiled against the tree before as well, which must give the same.
 *
 *   repeat DIR HUB <LINES    a line: partition, id, epoch, sequence, count, offset of its first event */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/namespace.h"

#define EVENTS_MAX 9u

static struct weir_error err;

static void must(int rc, const char *what)
{
    if (rc == 0) return;
    fprintf(stderr, "repeat: %s: %s\n", what, err.text);
    exit(1);
}

static void repeat(struct weir__hub *hub, uint32_t partition, const struct weir__log_producer *who,
                   uint32_t count, uint64_t offset)
{
    struct weir__batch_writer w;
    struct weir__batch b;
    struct weir__log_receipt at;
    struct weir__bytes message = weir__bytes_of("\0\x53\x75\xa0\1x", 6);

    weir__batch_writer_init(&w, 0);
    must(weir__batch_writer_start(&w, weir__bytes_of(NULL, 0), &err), "start");
    for (uint32_t i = 0; i < count; i++)
        must(weir__batch_writer_add_message(&w, message, &err), "add");
    must(weir__batch_writer_batch(&w, &b, &err), "batch");
    must(weir__hub_publish_wait(hub, &b, partition, who, INT64_MAX, &at, &err), "publish");
    if (!at.duplicate || at.offset != offset) {
        fprintf(stderr,
                "repeat: producer %" PRIu64 " in %u: duplicate %d, offset %" PRIu64
                " instead of %" PRIu64 "\n",
                who->id, partition, at.duplicate, at.offset, offset);
        exit(1);
    }
    weir__batch_writer_fini(&w);
}

int main(int argc, char **argv)
{
    struct weir__namespace_options o = {.must_exist = true};
    struct weir__log_producer who;
    struct weir__namespace *ns;
    struct weir__hub *hub;
    uint32_t partition, count, lines = 0;
    uint64_t offset;

    if (argc != 3) return 2;
    must(weir__namespace_open(&ns, argv[1], &o, &err), "open");
    must(weir__namespace_use(ns, argv[2], &hub, &err), "use");
    while (scanf("%" SCNu32 "%" SCNu64 "%" SCNu16 "%" SCNu32 "%" SCNu32 "%" SCNu64, &partition,
                 &who.id, &who.epoch, &who.sequence, &count, &offset) == 6) {
        if (count > EVENTS_MAX) return 2;
        repeat(hub, partition, &who, count, offset);
        lines++;
    }
    weir__hub_release(hub);
    must(weir__namespace_close(ns, &err), "close");
    printf("%" PRIu32 "\n", lines);
    return 0;
}
