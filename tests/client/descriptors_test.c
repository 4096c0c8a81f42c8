/* Descriptors 0, 1 and 2 stay the program's when it has closed them: whatever it prints then must
 * not land in a file of the hubs. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/contract/place.h"

#include "client/wire_place.h"

/* Exit codes of the child. */
enum { FREE = 0, TAKEN = 10, BROKEN = 20 };

static int taken(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) >= 0) return TAKEN + fd;
    return FREE;
}

/* Publishes and looks; on a folder, or on a server. */
static int work(const char *where, const char *ca_file)
{
    struct weir_options o = {.size = sizeof o, .ca_file = ca_file};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p = NULL;
    struct weir *w = NULL;
    int code = BROKEN;

    if (weir_open(&w, where, &o, NULL) == 0 && weir_producer_open(&p, w, "h", NULL, NULL) == 0 &&
        weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, NULL) == 0)
        code = taken();
    weir_producer_close(p, PATIENCE_MS, NULL);
    if (weir_close(w, NULL) != 0) code = BROKEN;
    return code;
}

/* A program of its own: the thread sanitizer does not let a fork of one with threads start any. */
static int in_a_child(const char *where)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++) close(fd);
        execl("/proc/self/exe", "child", where, place.serve.ca_file, (char *)NULL);
        _exit(BROKEN);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_connection_leaves_them_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        place.tls = i & 1;
        place.websocket = i & 2;
        assert_int_equal(place_start(), 0);
        place_make_hub("h", 2);
        assert_int_equal(in_a_child(place_string(NULL)), FREE);
        assert_int_equal(place_stop(), 0);
    }
    place.tls = place.websocket = false;
}

static void a_folder_leaves_them_alone(void **state)
{
    (void)state;
    assert_int_equal(place_start(), 0);
    place_make_hub("h", 2);
    assert_int_equal(serve_stop(&place.serve), 0);
    assert_int_equal(in_a_child(place.data), FREE);
    assert_int_equal(serve_again(&place.serve, place.data), 0);
    assert_int_equal(place_stop(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_leaves_them_alone),
        cmocka_unit_test(a_connection_leaves_them_alone),
    };

    if (argc > 1) return work(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
