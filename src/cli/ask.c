/* ask.c - an exchange: a loop of one thread dials, writes and reads; the caller waits for its end.
 *
 *   caller   writes the question > posts it ........................ waits > reads the answer
 *   loop                           dials > writes > reads > ends it  says so */
#include "cli/ask.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "http/head.h"
#include "io/tcp.h"

#define READ_BYTES 16384u
#define HOST_MAX 253
#define LENGTH_DIGITS_MAX 10

struct weir__ask {
    char url[HOST_MAX + 32];
    char address[HOST_MAX + 16]; /* HOST:PORT */
    const char *host;            /* the same as it is in url: Host */
    struct weir__loops *loops;
    struct weir__tls_context *tls; /* NULL: plain */
    struct weir__post dial;
    struct weir__timer timer;

    /* The exchange in work; the loop's until it is over. */
    struct weir__tcp *tcp;
    struct weir__buf out, in;
    size_t sent, seen, head_len;
    uint64_t length; /* of the body; UINT64_MAX: up to the end of the connection */
    struct weir__http_answer head;
    bool whole;

    struct weir__mutex lock;
    struct weir__cond changed;
    bool over;             /* lock */
    struct weir_error why; /* lock; code 0: nothing was wrong */
};

/* ---- what came ---- */

static void fail_exchange(struct weir__ask *a, int code, const char *text)
{
    if (a->why.code == 0) weir__fail(&a->why, code, "%s", text);
    if (a->tcp) weir__tcp_abort(a->tcp, text);
}

static bool read_length(const struct weir__http_answer *head, uint64_t *out)
{
    struct weir__bytes text = weir__http_answer_field(head, "content-length");

    *out = UINT64_MAX;
    if (head->status == 204 || head->status == 304) *out = 0;
    if (*out == 0 || !text.at) return true;
    if (text.len == 0 || text.len > LENGTH_DIGITS_MAX) return false;
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return false;
        *out = *out * 10 + (uint64_t)(text.at[i] - '0');
    }
    return true;
}

/* false: this is not going to be the head of an answer. Not all of it may be there yet. */
static bool read_head(struct weir__ask *a)
{
    struct weir__http_refusal no;
    size_t len;

    if (memcmp(a->in.at, "HTTP/", a->in.len < 5 ? a->in.len : 5) != 0 ||
        !weir__http_head_end(a->in.at, a->in.len, &a->seen, &len, &no))
        return false;
    if (len == 0) return true;
    if (!weir__http_answer_parse(&a->head, a->in.at, len, &no)) return false;
    a->head_len = len;
    return read_length(&a->head, &a->length);
}

/* Looks for the end of the head, and then of the body. */
static void look(struct weir__ask *a)
{
    if (a->head_len == 0 && !read_head(a)) {
        fail_exchange(a, WEIR_ENOTSUP, "what answers there does not speak HTTP");
        return;
    }
    if (a->head_len == 0 || a->length > a->in.len - a->head_len) return;
    a->whole = true;
    weir__tcp_abort(a->tcp, NULL);
}

/* ---- the connection, on the loop ---- */

static void on_opened(void *owner, struct weir__tcp *tcp)
{
    (void)owner;
    weir__tcp_flush(tcp);
}

static uint8_t *give_room(void *owner, size_t *room)
{
    struct weir__ask *a = owner;
    uint8_t *at = weir__buf_room(&a->in, READ_BYTES);

    *room = at ? READ_BYTES : 0;
    if (!at) fail_exchange(a, WEIR_ETOOBIG, "the answer is too long");
    return at;
}

static void on_received(void *owner, size_t bytes)
{
    struct weir__ask *a = owner;

    a->in.len += bytes;
    if (!a->whole) look(a);
}

static void on_ended(void *owner)
{
    struct weir__ask *a = owner;

    a->whole |= a->head_len && a->length == UINT64_MAX;
    if (!a->whole)
        fail_exchange(a, WEIR_EUNREACHABLE, "the connection ended before the answer did");
    else
        weir__tcp_abort(a->tcp, NULL);
}

static struct weir__bytes give_output(void *owner)
{
    struct weir__ask *a = owner;

    return weir__bytes_of(a->out.at + a->sent, a->out.len - a->sent);
}

static void on_sent(void *owner, size_t bytes)
{
    struct weir__ask *a = owner;

    a->sent += bytes;
}

/* The first reason counts; who has the whole answer needs none. */
static void finish(struct weir__ask *a, const struct weir_error *why)
{
    weir__loop_timer_stop(weir__loops_at(a->loops, 0), &a->timer);
    weir__mutex_lock(&a->lock);
    a->tcp = NULL;
    if (!a->whole && a->why.code == 0) a->why = *why;
    a->over = true;
    weir__cond_signal(&a->changed);
    weir__mutex_unlock(&a->lock);
}

static void on_closed(void *owner, const struct weir_error *why)
{
    finish(owner, why);
}

static const struct weir__tcp_calls calls = {
    .opened = on_opened,
    .room = give_room,
    .received = on_received,
    .ended = on_ended,
    .output = give_output,
    .sent = on_sent,
    .closed = on_closed,
};

static void on_late(void *arg)
{
    fail_exchange(arg, WEIR_EUNREACHABLE, "no answer within 15 s");
}

static void dial(void *arg)
{
    struct weir__ask *a = arg;
    struct weir__loop *loop = weir__loops_at(a->loops, 0);
    struct weir__tcp_options options = {.address = a->address, .tls = a->tls};
    struct weir_error err;
    int rc = weir__tcp_connect(&a->tcp, loop, &options, &calls, a, &err);

    if (rc == 0)
        weir__loop_timer_start(loop, &a->timer, weir__loop_now_ms(loop) + WEIR__ASK_MS);
    else
        finish(a, &err);
}

/* ---- the caller ---- */

static bool add_text(struct weir__buf *b, const char *text)
{
    return weir__buf_add(b, text, strlen(text));
}

static bool add_field(struct weir__buf *b, const char *name, const char *value)
{
    return add_text(b, name) && add_text(b, ": ") && add_text(b, value) && add_text(b, "\r\n");
}

static bool write_question(struct weir__ask *a, const struct weir__question *q)
{
    struct weir__buf *b = &a->out;
    char length[24];
    bool ok;

    weir__buf_clear(b);
    snprintf(length, sizeof length, "%zu", q->body ? strlen(q->body) : 0);
    ok = add_text(b, q->method) && add_text(b, " ") && add_text(b, q->path) &&
         add_text(b, " HTTP/1.0\r\n") && add_field(b, "Host", a->host) &&
         add_field(b, "Connection", "close") && add_field(b, "Content-Length", length);
    if (ok && q->body) ok = add_field(b, "Content-Type", "application/json");
    if (ok && q->token) ok = add_field(b, "Authorization", q->token);
    if (ok && q->only_new) ok = add_field(b, "If-None-Match", "*");
    return ok && add_text(b, "\r\n") && (!q->body || add_text(b, q->body));
}

static int wait_for_end(struct weir__ask *a, struct weir_error *err)
{
    int code;

    weir__mutex_lock(&a->lock);
    while (!a->over) weir__cond_wait(&a->changed, &a->lock, INT64_MAX);
    code = a->why.code;
    if (code != 0 && err) *err = a->why;
    weir__mutex_unlock(&a->lock);
    return code;
}

int weir__ask(struct weir__ask *a, const struct weir__question *q, struct weir__reply *out,
              struct weir_error *err)
{
    int rc;

    if (!write_question(a, q)) return weir__fail(err, WEIR_ETOOBIG, "the question is too long");
    weir__buf_clear(&a->in);
    a->sent = a->seen = a->head_len = 0;
    a->whole = a->over = false;
    a->why.code = 0;
    rc = weir__loop_post(weir__loops_at(a->loops, 0), &a->dial);
    assert(rc == 0); /* it goes on until weir__ask_close */
    rc = wait_for_end(a, err);
    if (rc != 0) return weir__wrap(err, rc, "%s", a->url);
    out->status = a->head.status;
    out->body = weir__bytes_of(a->in.at + a->head_len, a->in.len - a->head_len);
    if (out->body.len > a->length) out->body.len = (size_t)a->length;
    return 0;
}

/* ---- lives ---- */

/* How long the host and port behind "http://" are; 0: they are not, or something follows. */
static size_t host_length(const char *host)
{
    size_t len = strcspn(host, "/");

    if (len > HOST_MAX || strcspn(host, " @?#%\\\r\n\t") < len) return 0;
    return strcmp(host + len, "") == 0 || strcmp(host + len, "/") == 0 ? len : 0;
}

/* The usual port is added when there is none. */
static int set_address(struct weir__ask *a, const char *url, struct weir_error *err)
{
    bool tls = strncmp(url, "https://", 8) == 0, plain = strncmp(url, "http://", 7) == 0;
    size_t scheme = tls ? 8 : 7, len = tls || plain ? host_length(url + scheme) : 0;
    const char *colon;

    if (len == 0)
        return weir__fail(err, WEIR_EINVAL,
                          "'%.200s' is not http://HOST[:PORT] or https://HOST[:PORT]", url);
    snprintf(a->url, sizeof a->url, "%.*s", (int)(scheme + len), url);
    a->host = a->url + scheme;
    colon = strrchr(a->host, ':');
    if (colon && strchr(colon, ']')) colon = NULL; /* of an address */
    snprintf(a->address, sizeof a->address, "%s%s", a->host, colon ? "" : tls ? ":443" : ":80");
    return 0;
}

static int open_roads(struct weir__ask *a, struct weir_error *err)
{
    struct weir__loops_options one = {.count = 1};
    struct weir__tls_options client = {.client = true};
    int rc = weir__loops_start(&a->loops, &one, err);

    if (rc == 0 && strncmp(a->url, "https", 5) == 0)
        rc = weir__tls_context_new(&a->tls, &client, err);
    return rc;
}

int weir__ask_open(struct weir__ask **out, const char *url, struct weir_error *err)
{
    struct weir__ask *a = calloc(1, sizeof *a);
    int rc;

    *out = NULL;
    if (!a) return weir__fail(err, WEIR_ENOMEM, "out of memory for a question");
    weir__mutex_init(&a->lock);
    weir__cond_init(&a->changed);
    weir__buf_init(&a->out, WEIR__ASK_QUESTION_MAX);
    weir__buf_init(&a->in, WEIR__ASK_ANSWER_MAX);
    weir__post_init(&a->dial, dial, a);
    weir__timer_init(&a->timer, on_late, a);
    rc = set_address(a, url, err);
    if (rc == 0) rc = open_roads(a, err);
    if (rc != 0) {
        weir__ask_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

void weir__ask_close(struct weir__ask *a)
{
    if (!a) return;
    weir__loops_free(a->loops);
    weir__tls_context_free(a->tls);
    weir__buf_fini(&a->out);
    weir__buf_fini(&a->in);
    weir__cond_fini(&a->changed);
    weir__mutex_fini(&a->lock);
    free(a);
}

const char *weir__ask_url(const struct weir__ask *a)
{
    return a->url;
}
