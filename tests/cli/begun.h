/* begun.h - the parts of weir serve with a namespace, before it listens. */
#ifndef WEIR_TESTS_CLI_BEGUN_H
#define WEIR_TESTS_CLI_BEGUN_H

#include "cli/said.h"
#include "cli/serve.h"
#include "log/fs.h"
#include "support/tempdir.h"

static char dir[TEMPDIR_BYTES], authority[TEMPDIR_BYTES + 16];
static struct weir__serve *s;
static struct weir__fs *memory;
static struct weir_error err;

static inline int begin(void **state)
{
    (void)state;
    s = calloc(1, sizeof *s);
    if (!s || tempdir_make(dir) != 0) return -1;
    snprintf(authority, sizeof authority, "%s/ca", dir);
    s->o.amqp = "127.0.0.1:0";
    s->o.common.data = dir;
    s->o.authority = authority;
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    weir__server_stop(s->server);
    weir__tls_context_free(s->tls);
    if (s->ns) weir__namespace_close(s->ns, NULL);
    weir__fs_memory_free(memory);
    memory = NULL;
    free(s);
    tempdir_remove(dir);
    return 0;
}

static inline void open_namespace(bool in_memory)
{
    struct weir__namespace_options options = {0};

    s->o.in_memory = in_memory;
    if (in_memory) assert_int_equal(weir__fs_memory_new(&memory, 64 << 20, &err), 0);
    options.fs = memory;
    assert_int_equal(weir__namespace_open(&s->ns, in_memory ? "memory" : dir, &options, &err), 0);
}

static inline void forget_namespace(void)
{
    assert_int_equal(weir__namespace_close(s->ns, &err), 0);
    weir__fs_memory_free(memory);
    s->ns = NULL;
    memory = NULL;
}

static inline void add_hub(const char *name)
{
    struct weir__hub_config config = {.name = name, .partitions = 1};

    assert_int_equal(weir__namespace_hub_create(s->ns, &config, &err), 0);
}

/* The first key; what is said about it is not printed. */
static inline int choose(void)
{
    int rc;

    said_begin();
    rc = weir__serve_choose_key(s, &err);
    said_end();
    return rc;
}

#define BEGUN_CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
