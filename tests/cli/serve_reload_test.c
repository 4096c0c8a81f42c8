/* serve_reload_test.c - SIGHUP: what is read again, what the log says about it, and what whoever started
 * the server is told. */
#include "cli/begun.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/thread.h"

static char config[TEMPDIR_BYTES + 16], said_log[4096];
static int hears = -1; /* what is notified */

static void note_line(enum weir__level level, const char *room, const char *line, void *user)
{
    size_t len = strlen(said_log);

    (void)user;
    snprintf(said_log + len, sizeof said_log - len, "%d %s: %s\n", (int)level, room, line);
}

static int begin_reload(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char name[64];
    int len = snprintf(name, sizeof name, "@weir-reload-test-%ld", (long)getpid());

    if (begin(state) != 0) return -1;
    memcpy(at.sun_path + 1, name + 1, (size_t)len - 1);
    hears = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (hears < 0 || bind(hears, (void *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)) != 0)
        return -1;
    setenv("NOTIFY_SOCKET", name, 1);
    snprintf(config, sizeof config, "%s/Config.json", dir);
    said_log[0] = '\0';
    s->warnings.logger = (struct weir__logger){note_line, NULL};
    open_namespace(true);
    return 0;
}

static int end_reload(void **state)
{
    unsetenv("NOTIFY_SOCKET");
    close(hears);
    return end(state);
}

static void put_config(const char *text)
{
    FILE *f = fopen(config, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The next message; "" when there is none. */
static const char *hear(void)
{
    static char text[256];
    ssize_t len = recv(hears, text, sizeof text - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    return text;
}

static void expect_reload(const char *log)
{
    int64_t before = weir__mono_ns() / 1000, at;
    int end = 0;

    said_log[0] = '\0';
    weir__serve_reload(s);
    assert_int_equal(sscanf(hear(), "RELOADING=1\nMONOTONIC_USEC=%" SCNd64 "%n", &at, &end), 1);
    assert_true(at >= before && at <= weir__mono_ns() / 1000);
    assert_string_equal(hear(), "READY=1");
    assert_string_equal(hear(), "");
    assert_string_equal(said_log, log);
}

#define SIGHUP_LINE "1 serve: SIGHUP: files are read again\n"
#define HUBS(hubs)                                                                                 \
    "{\"UserConfig\":{\"NamespaceConfig\":[{\"Type\":\"EventHub\",\"Entities\":[" hubs "]}]}}"
#define HUB(name, partitions) "{\"Name\":\"" name "\",\"PartitionCount\":" partitions "}"

static int count_hub(const struct weir__catalog_hub *hub, void *user)
{
    (void)hub;
    ++*(unsigned *)user;
    return 0;
}

static unsigned hub_count(void)
{
    unsigned count = 0;

    assert_int_equal(weir__namespace_hub_each(s->ns, count_hub, &count), 0);
    return count;
}

static void without_files_nothing_is_read(void **state)
{
    (void)state;
    expect_reload(SIGHUP_LINE);
}

/* Each of them: what is bad changes nothing, and the next time is another chance. */
static void a_configuration_is_read_again(void **state)
{
    char bad[1024];

    (void)state;
    s->o.config = config;
    put_config(HUBS(HUB("a", "2")));
    expect_reload(SIGHUP_LINE "1 serve: the configuration was read again\n");
    assert_int_equal(hub_count(), 1);
    put_config(HUBS(HUB("b", "1") "," HUB("c", "0")));
    snprintf(bad, sizeof bad,
             SIGHUP_LINE
             "3 serve: the configuration stays as it was: %s: line 1, column 127: a hub "
             "has 1 to 1024 partitions, not '0'\n",
             config);
    expect_reload(bad);
    assert_int_equal(hub_count(), 1);
    put_config(HUBS(HUB("b", "1") "," HUB("a", "3")));
    snprintf(bad, sizeof bad,
             SIGHUP_LINE "3 serve: the configuration stays as it was: %.120s:1:98: hub 'a' has 2 "
                         "partitions, and 3 are asked for; 'weir hub update' can give it more\n",
             config);
    expect_reload(bad);
    assert_int_equal(hub_count(), 1);
    put_config(HUBS(HUB("b", "1") "," HUB("a", "2")));
    expect_reload(SIGHUP_LINE "1 serve: the configuration was read again\n");
    assert_int_equal(hub_count(), 2);
}

/* Nobody listens there any more: that is warned of, and the rest is done. */
static void who_cannot_be_told_is_warned_of(void **state)
{
    (void)state;
    setenv("NOTIFY_SOCKET", "relative", 1);
    said_log[0] = '\0';
    weir__serve_reload(s);
    assert_int_equal(s->warnings.count, 2);
    assert_non_null(strstr(said_log, SIGHUP_LINE));
    assert_string_equal(hear(), "");
}

#define RELOAD_CASE(f) cmocka_unit_test_setup_teardown(f, begin_reload, end_reload)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RELOAD_CASE(without_files_nothing_is_read),
        RELOAD_CASE(a_configuration_is_read_again),
        RELOAD_CASE(who_cannot_be_told_is_warned_of),
    };

    return cmocka_run_group_tests_name("serve_reload", tests, NULL, NULL);
}
