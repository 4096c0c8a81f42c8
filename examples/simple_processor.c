/* simple_processor.c - the smallest processor: says what happens, and marks each batch.
 *
 *     simple_processor WHERE HUB STORE
 *
 * WHERE is a folder or a connection string, STORE the path of a SQLite file. Start it as often as
 * you like with the same three: the copies share the partitions of the hub. (A folder is held by one
 * process; for several copies let `weir serve` serve it.) */
#include <inttypes.h>
#include <stdio.h>

#include <weir/processor.h>
#include <weir/weir.h>

static int on_open(struct weir_partition *p, void **state, void *user)
{
    (void)state, (void)user;
    printf("partition %" PRIu32 " opened\n", weir_partition_id(p));
    return 0;
}

static int on_events(struct weir_partition *p, const struct weir_event *events, size_t count,
                     void *user)
{
    (void)user;
    for (size_t i = 0; i < count; i++)
        printf("partition %" PRIu32 ", message %" PRIu64 ": %.*s\n", weir_partition_id(p),
               events[i].sequence, (int)events[i].body.len, events[i].body.at);
    fflush(stdout);
    return weir_checkpoint(p, NULL);
}

static void on_error(struct weir_partition *p, enum weir_action action,
                     const struct weir_error *err, void *user)
{
    (void)p, (void)user;
    printf("error while %s: %s\n", weir_action_text(action), err->text);
}

static void on_close(struct weir_partition *p, enum weir_close_reason reason, void *user)
{
    (void)user;
    printf("partition %" PRIu32 " closed: %s\n", weir_partition_id(p),
           weir_close_reason_text(reason));
}

int main(int argc, char **argv)
{
    struct weir_processor_options options = {.size = sizeof options,
                                             .handler = {on_open, on_events, on_error, on_close}};
    struct weir *weir = NULL;
    struct weir_source *source = NULL;
    struct weir_store *store = NULL;
    struct weir_processor *processor = NULL;
    struct weir_error err = {0};
    bool ok;

    if (argc != 4) {
        fprintf(stderr, "usage: simple_processor WHERE HUB STORE\n");
        return 2;
    }
    ok = weir_open(&weir, argv[1], NULL, &err) == 0 &&
         weir_source_hub(&source, weir, argv[2], NULL, &err) == 0 &&
         weir_store_sqlite(&store, argv[3], NULL, &err) == 0 &&
         weir_processor_start(&processor, source, store, &options, &err) == 0;
    if (ok) {
        printf("Receiving. Press enter to stop.\n");
        fflush(stdout);
        getchar();
        ok = weir_processor_stop(processor, 10000, &err) == 0;
    }
    if (!ok) fprintf(stderr, "%s\n", err.text);
    weir_store_close(store);
    weir_source_close(source);
    return weir_close(weir, NULL) != 0 || !ok;
}
