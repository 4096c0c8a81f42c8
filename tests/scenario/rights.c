/* rights.c - a right is taken away under load: rights LINKS DOOMED SOCKET SPARED COMMAND.
 * Built and run by rights.sh.
 *
 * LINKS producers with the connection string DOOMED, ten to a connection, every other connection by the
 * string SOCKET, and two with SPARED publish as fast as they are answered; COMMAND then takes DOOMED's
 * right away. It exits 1, with a sentence, unless
 *
 *   every producer had published before
 *   no doomed one has a batch stored more than a second after COMMAND returned, though it tries on
 *   what the doomed are told at last is WEIR_EDENIED
 *   the spared ones publish on, without one failure */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

#define LINKS_MAX 128
#define LINKS_PER_CONNECTION 10
#define SPARED 2
#define GRACE_MS 1000
#define AFTER_MS 3000 /* they go on trying */
#define SEND_MS 5000
#define START_MS 60000

struct link {
    struct weir *place;
    struct weir_producer *producer;
    pthread_t thread;
    atomic_int_fast64_t last_ms; /* when a batch was stored last; 0: never */
    atomic_uint failures;
    int failed_with;
};

static struct link links[LINKS_MAX + SPARED];
static struct weir *places[LINKS_MAX + SPARED];
static size_t link_count, place_count;
static atomic_bool stop;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what, const struct weir_error *err)
{
    printf("rights: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

static void *publish(void *arg)
{
    struct link *l = arg;
    struct weir_event event = {.body = {"x", 1}};
    struct weir_error err;

    while (!atomic_load(&stop)) {
        int rc = weir_producer_send(l->producer, &event, 1, SEND_MS, NULL, &err);
        if (rc == 0) {
            atomic_store(&l->last_ms, now_ms());
            continue;
        }
        l->failed_with = rc;
        atomic_fetch_add(&l->failures, 1);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return NULL;
}

static struct weir *open_place(const char *string)
{
    struct weir_options options = {.size = sizeof options, .patience_ms = 3000};
    struct weir_error err;

    if (weir_open(&places[place_count], string, &options, &err) != 0) die("open", &err);
    return places[place_count++];
}

static void add_link(struct weir *place)
{
    struct link *l = &links[link_count++];
    struct weir_error err;

    l->place = place;
    if (weir_producer_open(&l->producer, place, "h", NULL, &err) != 0) die("producer", &err);
    if (pthread_create(&l->thread, NULL, publish, l) != 0) die("no thread", NULL);
}

static void wait_until_busy(void)
{
    int64_t until = now_ms() + START_MS;

    for (size_t i = 0; i < link_count; i++)
        while (atomic_load(&links[i].last_ms) == 0) {
            if (now_ms() > until) die("not everybody could publish", NULL);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
}

static void judge(const struct link *l, bool doomed, int64_t removed_ms)
{
    int64_t last_ms = atomic_load(&l->last_ms) - removed_ms;

    if (doomed && last_ms > GRACE_MS) {
        printf("rights: one published %d ms later\n", (int)last_ms);
        exit(1);
    }
    if (doomed && l->failed_with != WEIR_EDENIED) {
        printf("rights: one was told %d\n", l->failed_with);
        exit(1);
    }
    if (!doomed && (last_ms < GRACE_MS || atomic_load(&l->failures))) die("the spared, too", NULL);
}

int main(int argc, char **argv)
{
    size_t doomed = argc == 6 ? (size_t)atoi(argv[1]) : 0;
    struct weir *place = NULL;
    int64_t removed_ms;

    if (doomed == 0 || doomed > LINKS_MAX) die("rights LINKS DOOMED SOCKET SPARED COMMAND", NULL);
    for (size_t i = 0; i < doomed; i++) {
        if (i % LINKS_PER_CONNECTION == 0)
            place = open_place(i / LINKS_PER_CONNECTION % 2 ? argv[3] : argv[2]);
        add_link(place);
    }
    place = open_place(argv[4]);
    for (int i = 0; i < SPARED; i++) add_link(place);
    wait_until_busy();
    if (system(argv[5]) != 0) die("the command failed", NULL);
    removed_ms = now_ms();
    nanosleep(&(struct timespec){.tv_sec = AFTER_MS / 1000}, NULL);
    atomic_store(&stop, true);
    for (size_t i = 0; i < link_count; i++) {
        pthread_join(links[i].thread, NULL);
        judge(&links[i], i < doomed, removed_ms);
    }
    for (size_t i = 0; i < link_count; i++) weir_producer_close(links[i].producer, 0, NULL);
    for (size_t i = 0; i < place_count; i++) weir_close(places[i], NULL);
    return 0;
}
