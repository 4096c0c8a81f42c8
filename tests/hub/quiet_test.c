/* quiet_test.c - a healthy namespace has nothing to report: not when it is opened, used and closed,
 * and not when it is opened again. Both copies of everything are good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "hub/namespace.h"
#include "hub/payload.h"
#include "support/tempdir.h"

#define ROUNDS 3

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__namespace_options options;
    struct weir__namespace *ns;
    struct weir_error err;
    unsigned lines;
    char first[512];
};

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != 0) fail_msg("%s: %s", #call, s->err.text);                                   \
    } while (0)

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;

    (void)room;
    if (level >= WEIR__WARN && s->lines++ == 0) snprintf(s->first, sizeof s->first, "%s", line);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(tempdir_make(s->dir), 0);
    s->options = (struct weir__namespace_options){.logger = {listen, s}};
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    tempdir_remove(s->dir);
    free(s);
    return 0;
}

static void assert_quiet(const struct scene *s)
{
    if (s->lines > 0) fail_msg("%u lines, the first: %s", s->lines, s->first);
}

static void publish(struct scene *s, const char *name)
{
    static struct payload payload;
    struct weir__log_receipt receipt;
    struct weir__batch batch;
    struct weir__hub *hub;

    assert_ok(weir__namespace_use(s->ns, name, &hub, &s->err));
    payload_batch(&payload, NULL, "event", 5);
    assert_ok(weir__batch_of_payload(&batch, WEIR__AMQP_FORMAT_BATCH, payload_bytes(&payload), 0,
                                     &s->err));
    assert_ok(
        weir__hub_publish_wait(hub, &batch, 0, NULL, weir__deadline_ns(20000), &receipt, &s->err));
    weir__hub_release(hub);
}

/* Makes, uses and removes something of everything. */
static void work(struct scene *s, int round)
{
    struct weir__hub_config config = {.partitions = 4};
    char name[32];

    snprintf(name, sizeof name, "hub-%d", round);
    config.name = name;
    assert_ok(weir__namespace_hub_create(s->ns, &config, &s->err));
    assert_ok(weir__namespace_group_add(s->ns, name, "billing", &s->err));
    publish(s, name);
    publish(s, "hub-0");
    if (round == 1) {
        assert_ok(weir__namespace_group_remove(s->ns, name, "billing", &s->err));
        assert_ok(weir__namespace_hub_delete(s->ns, name, &s->err));
    }
}

static void a_healthy_namespace_is_quiet(void **state)
{
    struct scene *s = *state;

    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(weir__namespace_open(&s->ns, s->dir, &s->options, &s->err));
        assert_quiet(s);
        work(s, round);
        assert_ok(weir__namespace_close(s->ns, &s->err));
        assert_quiet(s);
    }
    for (int i = 0; i < 2; i++) { /* and with nothing to do between */
        assert_ok(weir__namespace_open(&s->ns, s->dir, &s->options, &s->err));
        assert_ok(weir__namespace_close(s->ns, &s->err));
        assert_quiet(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_healthy_namespace_is_quiet, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
