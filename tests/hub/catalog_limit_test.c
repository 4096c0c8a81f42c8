/* catalog_limit_test.c - the largest catalogue that can be written can be read, to the byte. */
#include "hub/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/simfs.h"

#define DIR "data"
#define COPY_BYTES_MAX (WEIR__CATALOG_HEADER_BYTES + WEIR__CATALOG_BYTES_MAX)
#define GROUPS_EACH 320u
#define GROUP_BYTES_MAX (2 + WEIR__GROUP_NAME_MAX)

static struct weir_error err;

static size_t bytes_of(const struct weir__catalog *c)
{
    struct weir__buf buf;
    size_t len;

    weir__buf_init(&buf, COPY_BYTES_MAX);
    assert_int_equal(weir__catalog_encode(c, &buf, &err), 0);
    len = buf.len;
    weir__buf_fini(&buf);
    return len;
}

static struct weir__catalog_hub *add_hub(struct weir__catalog *c)
{
    struct weir__catalog_hub *hub;

    assert_int_equal(weir__catalog_add_hub(c, &hub, &err), 0);
    snprintf(hub->name, sizeof hub->name, "hub%04u", c->hub_count);
    hub->id = c->next_hub_id++;
    hub->partitions = 1;
    assert_int_equal(weir__catalog_add_group(hub, WEIR__GROUP_DEFAULT, &err), 0);
    return hub;
}

/* A group that takes so many bytes. What tells names apart comes first: that is quicker to find. */
static void add_group(struct weir__catalog_hub *hub, size_t bytes)
{
    char name[WEIR__GROUP_NAME_MAX + 1];

    assert_int_equal(snprintf(name, sizeof name, "%ux%0*d", hub->group_count % 1000 + 1000,
                              (int)bytes - 2 - 5, 0),
                     bytes - 2);
    assert_int_equal(weir__catalog_add_group(hub, name, &err), 0);
}

/* Fills a catalogue until a copy of it has exactly so many bytes. */
static void grow_to(struct weir__catalog *c, size_t bytes)
{
    size_t empty = bytes_of(c), left = bytes - empty, full;

    for (unsigned i = 0; i < GROUPS_EACH; i++)
        add_group(i ? &c->hubs[0] : add_hub(c), GROUP_BYTES_MAX);
    full = bytes_of(c) - empty;
    for (left -= full; left > 2 * full; left -= full)
        for (unsigned i = 0; i < GROUPS_EACH; i++)
            add_group(i ? &c->hubs[c->hub_count - 1] : add_hub(c), GROUP_BYTES_MAX);
    for (; left > 2 * GROUP_BYTES_MAX; left -= GROUP_BYTES_MAX)
        add_group(&c->hubs[c->hub_count - 1], GROUP_BYTES_MAX);
    add_group(&c->hubs[c->hub_count - 1], left / 2);
    add_group(&c->hubs[c->hub_count - 1], left - left / 2);
    assert_int_equal(bytes_of(c), bytes);
}

static struct weir__catalog_store store_on(struct simfs *disk)
{
    struct weir__catalog_store s;

    assert_int_equal(weir__catalog_store_init(&s, simfs_fs(disk), DIR, NULL, &err), 0);
    return s;
}

/* One byte more than the limit is refused before anything is written. */
static void the_largest_is_kept_and_no_larger(void **state)
{
    struct simfs *disk = simfs_new();
    struct weir__catalog_store s = store_on(disk);
    struct weir__catalog c, back;
    struct weir__catalog_hub *last;
    uint64_t hash, calls;

    (void)state;
    assert_int_equal(simfs_fs(disk)->ops->make_dir(simfs_fs(disk), DIR, &err), 0);
    weir__catalog_init(&c);
    grow_to(&c, COPY_BYTES_MAX);
    assert_int_equal(weir__catalog_save(&s, &c, &err), 0);
    assert_int_equal(simfs_size(disk, DIR "/catalog.0"), COPY_BYTES_MAX);
    s = store_on(disk);
    assert_int_equal(weir__catalog_load(&s, &back, &err), 0);
    assert_int_equal(back.hub_count, c.hub_count);
    assert_false(s.unequal);
    weir__catalog_fini(&back);

    last = &c.hubs[c.hub_count - 1];
    c.generation++;
    strcat(last->name, "x");
    hash = simfs_hash(disk);
    calls = simfs_calls(disk, SIMFS_CHANGES);
    assert_int_equal(weir__catalog_save(&s, &c, &err), WEIR_ELIMIT);
    assert_int_equal(simfs_hash(disk), hash);
    assert_int_equal(simfs_calls(disk, SIMFS_CHANGES), calls);
    weir__catalog_fini(&c);
    simfs_free(disk);
}

/* What is longer was not written by us. */
static void a_longer_file_is_bad(void **state)
{
    struct simfs *disk = simfs_new();
    struct weir__catalog_store s = store_on(disk);
    struct weir__catalog c, back;
    struct weir__file *file;

    (void)state;
    assert_int_equal(simfs_fs(disk)->ops->make_dir(simfs_fs(disk), DIR, &err), 0);
    weir__catalog_init(&c);
    assert_int_equal(weir__catalog_save(&s, &c, &err), 0);
    for (uint64_t more = 0; more < 2; more++) {
        assert_int_equal(simfs_fs(disk)->ops->open(simfs_fs(disk), DIR "/catalog.0", 0, &file,
                                                   &err),
                         0);
        assert_int_equal(file->ops->allocate(file, COPY_BYTES_MAX + more, &err), 0);
        weir__file_close(file);
        s = store_on(disk);
        assert_int_equal(weir__catalog_load(&s, &back, &err), 0);
        assert_int_equal(s.unequal, more == 1);
        weir__catalog_fini(&back);
    }
    weir__catalog_fini(&c);
    simfs_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_is_kept_and_no_larger),
        cmocka_unit_test(a_longer_file_is_bad),
    };

    return cmocka_run_group_tests_name("catalog_limit", tests, NULL, NULL);
}
