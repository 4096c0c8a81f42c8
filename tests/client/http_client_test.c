/* Requests byte by byte, as a server on a real socket hears them, and what becomes of its answers. */
#include "client/http_client.h"

#include "client/http_server.h"

#define PATIENCE_MS 30000
#define SOON_MS 30

static struct weir__loops *loops;
static struct weir__http_client client;
static struct weir__http_reply reply;
static struct weir_error err;

static int start(void **state)
{
    struct weir__loops_options one = {.count = 1};

    (void)state;
    if (server_start() != 0 || weir__loops_start(&loops, &one, &err) != 0) return -1;
    client =
        (struct weir__http_client){.timeout_ms = PATIENCE_MS, .loop = weir__loops_at(loops, 0)};
    return weir__http_client_set_url(&client, server.url, &err);
}

static int stop(void **state)
{
    (void)state;
    weir__loops_free(loops);
    server_stop();
    return 0;
}

/* One exchange: the request must be `request`. */
static int ask(const struct weir__http_call *call, const char *request, const char *first,
               const char *then)
{
    int rc;

    server_begin(first, then);
    rc = weir__http_client_ask(&client, call, &reply, &err);
    server_end();
    assert_string_equal(server.heard, request);
    return rc;
}

static const char *request_of(const char *line, const char *more)
{
    static char text[512];

    snprintf(text, sizeof text, "%s HTTP/1.0\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n%s",
             line, server.port, more);
    return text;
}

static int get(const char *first, const char *then)
{
    struct weir__http_call call = {.method = "GET", .path = "/p"};

    return ask(&call, request_of("GET /p", "Content-Length: 0\r\n\r\n"), first, then);
}

static int put(const char *first)
{
    struct weir__http_call call = {.method = "PUT",
                                   .path = "/q?r",
                                   .token = "token",
                                   .only_new = true,
                                   .body = weir__bytes_of("{}", 2)};

    return ask(&call,
               request_of("PUT /q?r", "Content-Length: 2\r\nContent-Type: application/json\r\n"
                                      "Authorization: token\r\nIf-None-Match: *\r\n\r\n{}"),
               first, NULL);
}

static void assert_reply(unsigned status, const char *body)
{
    assert_int_equal(reply.status, status);
    assert_int_equal(reply.body.len, strlen(body));
    if (*body) assert_memory_equal(reply.body.at, body, strlen(body));
    weir__http_reply_fini(&reply);
}

#define OK "HTTP/1.1 200 OK\r\n"

static void answers_end_with_their_length(void **state)
{
    static const struct {
        const char *first, *then;
        unsigned status;
        const char *body;
    } cases[] = {
        {OK "Content-Length: 5\r\n\r\nhello", NULL, 200, "hello"},
        {OK "Content-Length: 5\r\n\r\nhello and more", NULL, 200, "hello"},
        {OK "Content-Length: 0\r\n\r\n", NULL, 200, ""},
        {OK "\r\nup to the end", NULL, 200, "up to the end"},
        {"HT", "TP/1.1 201 Made\r\nContent-Length: 2\r\n\r\n{}", 201, "{}"},
        {OK "Content-Length: 5\r\n\r\nhe", "llo", 200, "hello"},
        {"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", NULL, 204, ""},
        {"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\nhello", NULL, 304, ""},
        {"HTTP/1.1 205 No\r\nContent-Length: 5\r\n\r\nhello", NULL, 205, "hello"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (get(cases[i].first, cases[i].then) != 0) fail_msg("%zu: %s", i, err.text);
        assert_reply(cases[i].status, cases[i].body);
    }
    server.holds = true; /* who has all of it does not wait for the end */
    assert_int_equal(get("HTTP/1.1 204 No\r\n\r\n", NULL), 0);
    assert_reply(204, "");
    assert_int_equal(get(OK "Content-Length: 1\r\n\r\nx", NULL), 0);
    assert_reply(200, "x");
    server.holds = false;
    assert_int_equal(put("HTTP/1.1 201 Made\r\n\r\n"), 0);
    assert_reply(201, "");
}

/* The text begins with where it was asked. */
static void assert_failed(int rc, int code, const char *text)
{
    char want[512];

    snprintf(want, sizeof want, "%s: %s", client.url, text);
    assert_int_equal(rc, code);
    assert_int_equal(err.code, code);
    assert_string_equal(err.text, want);
    assert_int_equal(reply.status, 0);
    weir__http_reply_fini(&reply);
}

#define BROKE_OFF "the connection ended before the answer did"

static void what_is_no_answer_is_told(void **state)
{
    static const char *const strange[] = {
        "SSH-2.0\r\n",
        "X",
        OK "Content-Length: \r\n\r\n",
        OK "Content-Length: 12345678901\r\n\r\n",
        OK "Content-Length: 1/\r\n\r\n",
        OK "Content-Length: 1:\r\n\r\n",
    };
    static const char *const half[] = {"", "HTTP", OK, OK "Content-Length: 3\r\n\r\nab",
                                       OK "Content-Length: 1234567890\r\n\r\nab"};

    (void)state;
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        assert_failed(get(strange[i], NULL), WEIR_ENOTSUP,
                      "what answers there does not speak HTTP");
    for (size_t i = 0; i < sizeof half / sizeof half[0]; i++)
        assert_failed(get(half[i], NULL), WEIR_EUNREACHABLE, BROKE_OFF);
}

/* A change that went out may have been made; one that did not, or was refused, was not. */
static void changes_may_have_been_made(void **state)
{
    struct weir__http_call call = {.method = "DELETE", .path = "/"};
    struct weir__http_client nobody = client;

    (void)state;
    assert_failed(put("HTTP"), WEIR_EUNKNOWN, "whether it was done is unknown: " BROKE_OFF);
    assert_failed(put("SSH"), WEIR_ENOTSUP, "what answers there does not speak HTTP");
    assert_int_equal(weir__http_client_set_url(&nobody, "http://127.0.0.1:1", &err), 0);
    assert_int_equal(weir__http_client_ask(&nobody, &call, &reply, &err), WEIR_EUNREACHABLE);
    assert_non_null(strstr(err.text, "refused"));
    assert_int_equal(weir__http_client_ask(&nobody, &call, &reply, NULL), WEIR_EUNREACHABLE);
}

/* What the server heard by then does not matter. */
static void patience_ends(void **state)
{
    struct weir__http_call call = {.method = "GET", .path = "/"};
    struct weir__http_client hasty = client;

    (void)state;
    hasty.timeout_ms = SOON_MS;
    server.deaf = server.holds = true;
    server_begin("HTTP/1.1 2", NULL);
    assert_failed(weir__http_client_ask(&hasty, &call, &reply, &err), WEIR_EUNREACHABLE,
                  "no answer within 30 ms");
    server_end();
    server.deaf = server.holds = false;
}

/* An answer of just this many bytes, to be freed. */
static char *long_answer(size_t bytes)
{
    static const char head[] = OK "\r\n";
    char *text = malloc(bytes + 1);

    assert_non_null(text);
    memset(text, 'x', bytes);
    memcpy(text, head, sizeof head - 1);
    text[bytes] = '\0';
    return text;
}

/* More than can be kept is read no further, and nobody takes it for an answer that broke off. */
static void answers_have_their_longest(void **state)
{
    size_t most = WEIR__HTTP_CLIENT_ANSWER_MAX;
    char *large = long_answer(most - (1 << 20)), *larger = long_answer(most + 1);

    (void)state;
    assert_int_equal(get(large, NULL), 0);
    assert_reply(200, strstr(large, "\r\n\r\n") + 4);
    assert_failed(get(larger, NULL), WEIR_ETOOBIG, "the answer is too long");
    assert_failed(put(larger), WEIR_ETOOBIG, "the answer is too long");
    free(larger);
    free(large);
}

/* Where connections are taken and nobody reads. */
static int listen_deaf(char url[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (void *)&at, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (void *)&at, &size), 0);
    snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

/* In seconds where it has whole ones; times before the call are over at once. */
static void patience_is_told_as_it_was_given(void **state)
{
    static const struct {
        int64_t ms;
        const char *says;
    } cases[] = {
        {0, "no answer within 0 s"},        {1, "no answer within 1 ms"},
        {-999, "no answer within -999 ms"}, {-1000, "no answer within -1 s"},
        {-2000, "no answer within -2 s"},   {-1001, "no answer within -1001 ms"},
    };
    struct weir__http_call call = {.method = "GET", .path = "/"};
    struct weir__http_client hasty = client;
    char url[64], want[128];
    int fd = listen_deaf(url);

    (void)state;
    assert_int_equal(weir__http_client_set_url(&hasty, url, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hasty.timeout_ms = cases[i].ms;
        assert_int_equal(weir__http_client_ask(&hasty, &call, &reply, &err), WEIR_EUNREACHABLE);
        snprintf(want, sizeof want, "%s: %s", url, cases[i].says);
        assert_string_equal(err.text, want);
        weir__http_reply_fini(&reply);
    }
    close(fd);
}

/* A request of the largest size is refused before anybody is asked. */
static void requests_have_their_longest(void **state)
{
    static char large[WEIR__HTTP_CLIENT_REQUEST_MAX];
    struct weir__http_call call = {.method = "PUT",
                                   .path = "/",
                                   .body = weir__bytes_of(large, sizeof large)};

    (void)state;
    assert_failed(weir__http_client_ask(&client, &call, &reply, &err), WEIR_ETOOBIG,
                  "the request is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_end_with_their_length),
        cmocka_unit_test(what_is_no_answer_is_told),
        cmocka_unit_test(changes_may_have_been_made),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(patience_is_told_as_it_was_given),
        cmocka_unit_test(requests_have_their_longest),
        cmocka_unit_test(answers_have_their_longest),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
