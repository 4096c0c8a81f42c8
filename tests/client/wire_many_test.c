/* A thousand receivers on one connection: one thread more than before the first, and little memory
 * each. (The resolver of names has threads of its own, as many for one connection as for many.) */
#include "client/contract/place.h"

#include <dirent.h>
#include <unistd.h>

#include "client/wire_place.h"
#include "support/pace.h"

enum { PARTITIONS = 200, EACH = 5, RECEIVERS = PARTITIONS * EACH };

#define BYTES_EACH_MAX 16384

static unsigned count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;

    assert_non_null(tasks);
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count;
}

static long resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void a_thousand_receivers(void **state)
{
    static struct weir_receiver *receivers[RECEIVERS];
    struct weir_producer *producer;
    struct weir *w;
    unsigned threads;
    long bytes;

    (void)state;
    assert_int_equal(place_start(), 0);
    place_make_hub("h", PARTITIONS);
    assert_int_equal(place_open(&w, NULL), 0);
    receivers[0] = open_receiver(w, 0);
    threads = count_threads();
    bytes = resident_bytes();
    for (int i = 1; i < RECEIVERS; i++) receivers[i] = open_receiver(w, (uint32_t)(i / EACH));
    assert_int_equal(count_threads(), threads);
    bytes = (resident_bytes() - bytes) / (RECEIVERS - 1);
    print_message("%d receivers, %ld bytes each\n", RECEIVERS, bytes);
    if (PACE == 1) assert_true(bytes <= BYTES_EACH_MAX);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        producer = open_pinned(w, i);
        send_text(producer, "for all");
        close_producer(producer);
    }
    for (int i = 0; i < RECEIVERS; i++) assert_next(receivers[i], "for all");
    assert_int_equal(count_threads(), threads);
    for (int i = 0; i < RECEIVERS; i++) weir_receiver_close(receivers[i]);
    assert_ok(weir_close(w, &err));
    assert_int_equal(place_stop(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thousand_receivers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
