/* store_postgres_test.c - the store in a real PostgreSQL server, and what only servers do: stop,
 * freeze, hang up, refuse. */
#define _GNU_SOURCE
#include "contract/store_sql_suite.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/thread.h"
#include "contract/sql.h"
#include "support/postgres.h"

#define CALL_MS 300            /* of handles that are to time out */
#define SLOW_MS (CALL_MS * 20) /* what a loaded machine may make of it */
#define BEATS 1000

static struct postgres_server server;

static struct weir_store *open_url(const char *url, int64_t call_ms)
{
    struct weir_store_options o = {.size = sizeof o, .call_ms = call_ms};
    struct weir_store *s;

    if (weir_store_postgres(&s, url, &o, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return s;
}

static struct weir_store *store_open(int64_t call_ms)
{
    return open_url(server.url, call_ms ? call_ms : WAIT_MS_MAX);
}

static void store_sql(const char *sql)
{
    char filled[512];
    const char *at = strstr(sql, "%s");

    assert_non_null(at);
    snprintf(filled, sizeof filled, "%.*sweir.%s", (int)(at - sql), sql, at + 2);
    run_sql(server.url, filled);
}

/* ---- servers that do not answer ---- */

/* A handle with a short deadline, and how long its last call took. */
static void use_impatient(struct world *w)
{
    weir_store_close(w->store);
    w->store = store_open(CALL_MS);
}

static int timed_beat(struct world *w, int64_t *took_ms)
{
    int64_t began = weir__mono_ns();
    int rc = beat(w, "a", 1, EXPIRE_MS);

    *took_ms = (weir__mono_ns() - began) / 1000000;
    return rc;
}

static void beat_until_ok(struct world *w)
{
    int64_t deadline = weir__deadline_ns(WAIT_MS_MAX);
    int rc;

    while ((rc = beat(w, "a", 1, EXPIRE_MS)) != 0) {
        if (rc != WEIR_EUNREACHABLE && rc != WEIR_ETIMEDOUT) assert_ok(rc);
        if (weir__mono_ns() > deadline) fail_msg("it does not come back: %s", err.text);
    }
}

static void a_frozen_server_is_a_time_out(void **state)
{
    struct world *w = *state;
    struct weir_record r = {0};
    int64_t took_ms;

    use_impatient(w);
    beat_until_ok(w);
    postgres_signal_all(&server, SIGSTOP);
    assert_int_equal(timed_beat(w, &took_ms), WEIR_ETIMEDOUT); /* on a connection that was good */
    assert_in_range(took_ms, CALL_MS - 5, SLOW_MS);
    assert_int_equal(timed_beat(w, &took_ms), WEIR_ETIMEDOUT); /* while connecting */
    assert_in_range(took_ms, CALL_MS - 5, SLOW_MS);
    assert_int_equal(claim(w, &r, "a", 1), WEIR_ETIMEDOUT);
    assert_int_equal(w->ops->read(w->store, &w->scope, &w->view, &err), WEIR_ETIMEDOUT);
    postgres_signal_all(&server, SIGCONT);
    beat_until_ok(w);
    assert_non_null(member_of(w, "a"));
}

static void a_stopped_server_comes_back(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");
    int64_t took_ms;

    read_ok(w);
    postgres_stop(&server);
    assert_int_equal(timed_beat(w, &took_ms), WEIR_EUNREACHABLE);
    assert_int_equal(claim(w, &r, "b", 1), WEIR_EUNREACHABLE);
    assert_int_equal(w->ops->read(w->store, &w->scope, &w->view, &err), WEIR_EUNREACHABLE);
    assert_int_equal(w->view.record_count, 1); /* as it was */
    assert_int_equal(postgres_start(&server), 0);
    assert_ok(claim(w, &r, "b", 1));
    assert_int_equal(r.epoch, 2);

    postgres_stop(&server); /* a restart between two calls is not noticed */
    assert_int_equal(postgres_start(&server), 0);
    assert_ok(claim(w, &r, "c", 1));
    assert_int_equal(r.epoch, 3);
}

#define OUR_BACKENDS "pg_stat_activity WHERE application_name = 'weir' AND pid <> pg_backend_pid()"

/* Until the server counts none of them. */
static void await_none(const char *backends)
{
    int64_t deadline = weir__deadline_ns(WAIT_MS_MAX);
    char sql[256], count[32];

    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", backends);
    do {
        ask_sql(server.url, sql, count, sizeof count);
    } while (strcmp(count, "0") != 0 && weir__mono_ns() < deadline);
    assert_string_equal(count, "0");
}

static void a_killed_backend_is_replaced(void **state)
{
    struct world *w = *state;

    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    run_sql(server.url, "SELECT pg_terminate_backend(pid) FROM " OUR_BACKENDS);
    await_none(OUR_BACKENDS);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
}

/* A connection that ends while a call waits for its answer: it may have been done. */
static void *kill_waiting(void *arg)
{
    const char *sql = "SELECT count(pg_terminate_backend(pid)) FROM " OUR_BACKENDS
                      " AND wait_event_type = 'Lock'";
    int64_t deadline = weir__deadline_ns(WAIT_MS_MAX);
    char count[32];

    do {
        ask_sql(server.url, sql, count, sizeof count);
    } while (strcmp(count, "0") == 0 && weir__mono_ns() < deadline);
    *(bool *)arg = strcmp(count, "1") == 0;
    return NULL;
}

static void a_lost_answer_is_unknown(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");
    PGconn *holder = PQconnectdb(server.url);
    bool killed = false;
    pthread_t killer;

    PQclear(PQexec(holder, "BEGIN"));
    PQclear(PQexec(holder, "SELECT * FROM weir.record FOR UPDATE"));
    assert_int_equal(pthread_create(&killer, NULL, kill_waiting, &killed), 0);
    assert_int_equal(claim(w, &r, "b", 1), WEIR_EUNREACHABLE);
    pthread_join(killer, NULL);
    assert_true(killed);
    PQfinish(holder);
    assert_ok(claim(w, &r, "b", 1)); /* this time it was not done */
}

static void a_held_row_is_a_time_out(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");
    PGconn *holder = PQconnectdb(server.url);

    use_impatient(w);
    beat_until_ok(w);
    PQclear(PQexec(holder, "BEGIN"));
    PQclear(PQexec(holder, "SELECT * FROM weir.record FOR UPDATE"));
    assert_int_equal(claim(w, &r, "b", 1), WEIR_ETIMEDOUT);
    await_none(OUR_BACKENDS " AND state = 'active'"); /* nothing comes later */
    PQfinish(holder);
    beat_until_ok(w);
    assert_string_equal(record_of(w, 0).version, r.version);
}

/* Somebody who takes connections and says nothing, and somebody who does not even take them. */
static void a_black_hole_is_a_time_out(void **state)
{
    struct world *w = *state;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int hole = socket(AF_INET, SOCK_STREAM, 0), waiting[3];
    socklen_t len = sizeof to;
    char url[128];
    int64_t took_ms;

    assert_int_equal(bind(hole, (struct sockaddr *)&to, len), 0);
    assert_int_equal(listen(hole, 0), 0);
    assert_int_equal(getsockname(hole, (struct sockaddr *)&to, &len), 0);
    snprintf(url, sizeof url, "postgres://weir@127.0.0.1:%d/postgres", ntohs(to.sin_port));
    weir_store_close(w->store);
    w->store = open_url(url, CALL_MS);
    assert_int_equal(timed_beat(w, &took_ms), WEIR_ETIMEDOUT);
    assert_in_range(took_ms, CALL_MS - 5, SLOW_MS);
    for (int i = 0; i < 3; i++) { /* fill its queue */
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(waiting[i], (struct sockaddr *)&to, len);
    }
    assert_int_equal(timed_beat(w, &took_ms), WEIR_ETIMEDOUT);
    assert_in_range(took_ms, CALL_MS - 5, SLOW_MS);
    for (int i = 0; i < 3; i++) close(waiting[i]);
    close(hole);
    assert_int_equal(timed_beat(w, &took_ms), WEIR_EUNREACHABLE); /* now it is refused */
}

/* ---- servers that refuse ---- */

static int rc_with(struct world *w, const char *url)
{
    struct weir_store *s = open_url(url, WAIT_MS_MAX);
    int rc = s->ops->read(s, &w->scope, &w->view, &err);

    weir_store_close(s);
    return rc;
}

static void url_in_server(char to[512], const char *user, const char *database)
{
    snprintf(to, 512, "postgres://%s@/%s?host=%s", user, database, server.dir);
}

static void refusals_have_names(void **state)
{
    struct world *w = *state;
    char url[512];

    url_in_server(url, "weir", "nowhere");
    assert_int_equal(rc_with(w, url), WEIR_ENOTFOUND);
    assert_non_null(strstr(err.text, "\"nowhere\" does not exist"));
    url_in_server(url, "nobody-here", "postgres");
    assert_int_equal(rc_with(w, url), WEIR_EDENIED);
    assert_non_null(strstr(err.text, "nobody-here"));

    run_sql(server.url, "CREATE ROLE reader LOGIN"); /* who may see nothing of ours */
    url_in_server(url, "reader", "postgres");
    assert_int_equal(rc_with(w, url), WEIR_EDENIED);
    run_sql(server.url, "CREATE DATABASE bare");
    url_in_server(url, "reader", "bare"); /* and make nothing */
    assert_int_equal(rc_with(w, url), WEIR_EDENIED);

    run_sql(server.url, "UPDATE weir.format SET version = 7");
    assert_int_equal(rc_with(w, server.url), WEIR_EVERSION);
    assert_non_null(strstr(err.text, "format 7"));
    run_sql(server.url, "UPDATE weir.format SET version = 1"); /* before records had turns */
    assert_int_equal(rc_with(w, server.url), WEIR_EVERSION);
    assert_non_null(strstr(err.text, "format 1"));
    assert_non_null(strstr(err.text, "use another database"));
    run_sql(server.url,
            "INSERT INTO weir.format VALUES (2)"); /* two rows say nothing, as does none */
    assert_int_equal(rc_with(w, server.url), WEIR_EVERSION);
    assert_non_null(strstr(err.text, "format -1"));
    run_sql(server.url, "DELETE FROM weir.format");
    assert_int_equal(rc_with(w, server.url), WEIR_EVERSION);
    assert_non_null(strstr(err.text, "format -1"));
    run_sql(server.url, "INSERT INTO weir.format VALUES (2)");
    assert_ok(rc_with(w, server.url));
}

/* However a URL is wrong, what stands for a password is not said again. */
static void passwords_are_not_repeated(void **state)
{
    static const char *const wrong[] = {
        "postgres://user:sesame@[::1/db",      "postgres://user:p@sesame@host/db",
        "postgres://user:a/sesame@host/db",    "postgres://user:sesame/x@host/db",
        "postgres://user:sesame@host:port/db", "postgres://user:sesame@host/db?sesame=1",
        "postgres://user:sesame%zz@host/db",   "mysql://user:sesame@host/db",
        "host=/nowhere password=sesame",
    };
    struct world *w = *state;
    struct weir_store *s;
    char url[512];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(weir_store_postgres(&s, wrong[i], NULL, &err), WEIR_EINVAL);
        assert_null(s);
        assert_null(strstr(err.text, "sesame"));
    }
    snprintf(url, sizeof url, "postgres://weir:sesame@/postgres?host=%s/none", server.dir);
    assert_int_equal(rc_with(w, url), WEIR_EUNREACHABLE);
    assert_null(strstr(err.text, "sesame"));
    run_sql(server.url, "CREATE ROLE secret LOGIN PASSWORD 'other'");
    run_sql(server.url,
            "COPY (SELECT 'local all secret scram-sha-256' UNION ALL SELECT 'local all all trust')"
            " TO PROGRAM 'cat > pg_hba.conf'");
    run_sql(server.url, "SELECT pg_reload_conf()");
    snprintf(url, sizeof url, "postgres://secret:sesame@/postgres?host=%s", server.dir);
    for (int i = 0; i < WAIT_MS_MAX / 10 && rc_with(w, url) == 0; i++) continue; /* it reloads */
    assert_int_equal(rc_with(w, url), WEIR_EDENIED);
    assert_null(strstr(err.text, "sesame"));
    assert_non_null(strstr(err.text, "password authentication failed"));
    url_in_server(url, "secret", "postgres");
    assert_int_equal(rc_with(w, url), WEIR_EDENIED);
    assert_non_null(strstr(err.text, "no password"));
}

/* ---- tables ---- */

#define DROP_ALL "DROP SCHEMA IF EXISTS weir CASCADE"

static int beat_in_child(int number, void *arg)
{
    const struct world *w = arg;
    struct weir_store *s = store_open(0);
    struct weir_member m = member_named("", 1, EXPIRE_MS);
    int rc;

    snprintf(m.id, sizeof m.id, "m%d", number);
    rc = s->ops->beat(s, &w->scope, &m, &err);
    if (rc != 0) fprintf(stderr, "child %d: %s\n", number, err.text);
    weir_store_close(s);
    return rc == 0 ? 0 : 1;
}

static void tables_are_made_once(void **state)
{
    struct world *w = *state;

    for (int round = 0; round < 10; round++) {
        run_sql(server.url, DROP_ALL);
        run_children(8, beat_in_child, w);
        read_ok(w);
        assert_int_equal(w->view.member_count, 8);
    }
}

static void dropped_tables_are_made_again(void **state)
{
    struct world *w = *state;
    int rc;

    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    run_sql(server.url, DROP_ALL);
    rc = beat(w, "a", 1, EXPIRE_MS);
    assert_true(rc == WEIR_ENOTFOUND || rc == WEIR_EUNREACHABLE);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
}

/* Beats and marks are written beside the rows they replace, and leave nothing behind. */
static void tables_stay_small(void **state)
{
    struct world *w = *state;
    struct weir_record r;
    char text[64];

    run_sql(server.url, DROP_ALL);
    weir_store_close(w->store);
    w->store = store_open(0);
    r = claim_first(w, 0, "a");
    for (int i = 0; i < BEATS; i++) {
        assert_ok(beat(w, "a", 1, EXPIRE_MS));
        assert_int_equal(mark_one(w, "a", mark_of(&r, (uint64_t)i)), 0);
    }
    ask_sql(server.url,
            "SELECT pg_table_size('weir.member') + pg_table_size('weir.record')"
            " + pg_indexes_size('weir.member') + pg_indexes_size('weir.record')",
            text, sizeof text);
    assert_in_range(strtol(text, NULL, 10), 1, 256 << 10);
}

static int start_server(void **state)
{
    (void)state;
    return postgres_start(&server);
}

static int remove_server(void **state)
{
    (void)state;
    postgres_remove(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {STORE_CASES,
                                       STORE_SQL_CASES,
                                       STORE_CASE(a_frozen_server_is_a_time_out),
                                       STORE_CASE(a_stopped_server_comes_back),
                                       STORE_CASE(a_killed_backend_is_replaced),
                                       STORE_CASE(a_lost_answer_is_unknown),
                                       STORE_CASE(a_held_row_is_a_time_out),
                                       STORE_CASE(a_black_hole_is_a_time_out),
                                       STORE_CASE(refusals_have_names),
                                       STORE_CASE(passwords_are_not_repeated),
                                       STORE_CASE(tables_are_made_once),
                                       STORE_CASE(dropped_tables_are_made_again),
                                       STORE_CASE(tables_stay_small)};
    const char *why = postgres_make(&server);

    if (why) {
        print_message("%s\n[  PASSED  ] 0 test(s).\n[  SKIPPED ] %zu test(s).\n", why,
                      sizeof tests / sizeof tests[0]);
        return 0;
    }
    return cmocka_run_group_tests(tests, start_server, remove_server);
}
