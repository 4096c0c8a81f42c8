/* many_hubs.c - what many hubs with one event each cost one process.
 *
 *     many_hubs DIR HUBS IDLE_S make|open
 *
 * make: creates the hubs and publishes one event to each. open: opens all of them as a server does,
 * publishes one more to each, waits IDLE_S seconds and prints what the process took meanwhile. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/thread.h"
#include "hub/namespace.h"

#define SETTLE_S 8 /* marks are written and memory is given back within this */
#define FILES_PER_HUB 8

static void check(int rc, const struct weir_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "many_hubs: %s\n", err->text);
    exit(1);
}

static long status(const char *field)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long value = -1;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0) value = atol(line + strlen(field));
    if (f) fclose(f);
    return value;
}

static double cpu_s(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static double now_s(void)
{
    return (double)weir__mono_ns() / 1e9;
}

static void rest(long seconds)
{
    struct timespec t = {seconds, 0};

    nanosleep(&t, NULL);
}

static void name_hub(char name[16], unsigned i)
{
    snprintf(name, 16, "hub%u", i);
}

static void publish(struct weir__namespace *ns, unsigned i)
{
    static const uint8_t message[] = {0x00, 0x53, 0x75, 0xa0, 3, 'o', 'n', 'e'};
    struct weir__log_receipt receipt;
    struct weir_error err = {0};
    struct weir__batch batch;
    struct weir__hub *hub;
    char name[16];

    name_hub(name, i);
    check(weir__namespace_use(ns, name, &hub, &err), &err);
    check(weir__batch_of_payload(&batch, 0, weir__bytes_of(message, sizeof message), 0, &err),
          &err);
    check(weir__hub_publish_wait(hub, &batch, 0, NULL, INT64_MAX, &receipt, &err), &err);
    weir__hub_release(hub);
}

static void make_hubs(struct weir__namespace *ns, unsigned hubs)
{
    struct weir_error err = {0};
    char name[16];

    for (unsigned i = 0; i < hubs; i++) {
        struct weir__hub_config config = {.name = name, .partitions = 4};

        name_hub(name, i);
        check(weir__namespace_hub_create(ns, &config, &err), &err);
        publish(ns, i);
    }
}

static void measure(struct weir__namespace *ns, unsigned hubs, long idle_s, double began_s)
{
    double opened_s = now_s() - began_s, cpu, real;
    uint32_t failed = 0;

    weir__namespace_open_hubs(ns, &failed);
    assert(failed == 0);
    opened_s = now_s() - began_s;
    for (unsigned i = 0; i < hubs; i++) publish(ns, i);
    rest(SETTLE_S);
    cpu = cpu_s();
    real = now_s();
    rest(idle_s);
    printf("open_ms=%.0f threads=%ld resident_kb=%ld idle_percent=%.2f\n", opened_s * 1e3,
           status("Threads:"), status("VmRSS:"), 100 * (cpu_s() - cpu) / (now_s() - real));
}

int main(int argc, char **argv)
{
    struct rlimit files;
    struct weir__namespace *ns;
    struct weir_error err = {0};
    double began_s = now_s();
    unsigned hubs;

    if (argc != 5) return 2;
    hubs = (unsigned)atoi(argv[2]);
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < (rlim_t)hubs * FILES_PER_HUB) files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    check(weir__namespace_open(&ns, argv[1], NULL, &err), &err);
    if (strcmp(argv[4], "make") == 0)
        make_hubs(ns, hubs);
    else
        measure(ns, hubs, atol(argv[3]), began_s);
    check(weir__namespace_close(ns, &err), &err);
    return 0;
}
