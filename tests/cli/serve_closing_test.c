/* serve_closing_test.c - how weir serve ends: what it leaves open, and what it says when its folder cannot
 * be closed. */
#include "support/descriptors.h"

#include "cli/steps.h"

#include <signal.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/exit.h"
#include "cli/serve.h"

#define PORTS "--amqp 127.0.0.1:0 --http 127.0.0.1:0"
#define CLOSING "weir: closing the data folder: the disk does not answer"

int __real_weir__namespace_close(struct weir__namespace *ns, struct weir_error *err);
int __wrap_weir__namespace_close(struct weir__namespace *ns, struct weir_error *err);
void __wrap_weir__serve_print_ready(const struct weir__serve *s);

static bool closes;      /* well */
static int64_t began_ns; /* as it says itself */

int __wrap_weir__namespace_close(struct weir__namespace *ns, struct weir_error *err)
{
    int rc = __real_weir__namespace_close(ns, err);

    return closes ? rc : weir__fail(err, WEIR_EIO, "the disk does not answer");
}

static bool has_sign(void)
{
    char path[TEMPDIR_BYTES + 16];

    snprintf(path, sizeof path, "%s/serving", dir);
    return access(path, F_OK) == 0;
}

static bool had_sign; /* while it served */

/* As soon as it serves, it is told to stop. */
void __wrap_weir__serve_print_ready(const struct weir__serve *s)
{
    began_ns = s->began_ns;
    had_sign = has_sign();
    kill(getpid(), SIGTERM);
}

/* What went wrong first is what the code tells. */
static void a_folder_that_cannot_be_closed(void **state)
{
    static const struct {
        const char *line;
        bool closes;
        int code;
    } rows[] = {
        {PORTS, true, WEIR__EXIT_OK},
        {PORTS " --amqps 127.0.0.1:0 --tls-certificate none.pem --tls-key none.pem", true,
         WEIR__EXIT_NOT_FOUND},
        {PORTS " --amqps 127.0.0.1:0 --tls-certificate none.pem --tls-key none.pem", false,
         WEIR__EXIT_NOT_FOUND},
        {PORTS, false, WEIR__EXIT_FAILURE},
    };

    unsigned open = 0;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t before_ns = weir__mono_ns();
        int code;
        closes = rows[i].closes;
        code = run(&weir__command_serve, rows[i].line);
        if (code != rows[i].code) fail_msg("%s: code %d: %s", rows[i].line, code, said_err);
        assert_int_equal(strstr(said_err, CLOSING) == NULL, closes);
        assert_true(had_sign && !has_sign());
        if (rows[i].code != WEIR__EXIT_NOT_FOUND)
            assert_true(began_ns >= before_ns && began_ns <= weir__mono_ns());
        if (i == 0) open = descriptors_count(); /* what is opened once and stays is open now */
        assert_int_equal(descriptors_count(), open);
    }
}

/* All hubs are opened before it is ready, so one that cannot be is told though nobody uses it. */
static void what_is_wrong_with_a_hub_is_told_at_once(void **state)
{
    char path[TEMPDIR_BYTES + 32];

    (void)state;
    closes = true;
    assert_int_equal(run(&weir__command_serve, PORTS " --hub h:1"), WEIR__EXIT_OK);
    assert_null(strstr(said_err, "opening hub 'h'"));
    snprintf(path, sizeof path, "%s/hub-0000000000000001", dir);
    tempdir_remove(path);
    assert_int_equal(run(&weir__command_serve, PORTS), WEIR__EXIT_OK);
    assert_non_null(strstr(said_err, "opening hub 'h'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_closed, begin, end),
        cmocka_unit_test_setup_teardown(what_is_wrong_with_a_hub_is_told_at_once, begin, end),
    };

    return cmocka_run_group_tests_name("serve_closing", tests, NULL, NULL);
}
