/* http_client.c - an exchange: the loop dials, writes and reads; the caller waits for its end.
 *
 *   caller   writes the request > posts it ......................... waits > reads the answer
 *   loop                          dials > writes > reads > ends it   says so
 *
 * The exchange lies on the caller's stack: nothing of it may be touched after `over` was set. */
#include "client/http_client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "http/head.h"
#include "io/tcp.h"

#define READ_BYTES 16384u
#define LENGTH_DIGITS_MAX 10

struct exchange {
    const struct weir__http_client *client;
    struct weir__post dial;
    struct weir__timer timer;

    /* The loop's until it is over. */
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

static void fail_exchange(struct exchange *a, int code, const char *text)
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
static bool read_head(struct exchange *a)
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
static void look(struct exchange *a)
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
    struct exchange *a = owner;
    uint8_t *at = weir__buf_room(&a->in, READ_BYTES);

    *room = at ? READ_BYTES : 0;
    if (!at) fail_exchange(a, WEIR_ETOOBIG, "the answer is too long");
    return at;
}

static void on_received(void *owner, size_t bytes)
{
    struct exchange *a = owner;

    a->in.len += bytes;
    if (!a->whole) look(a);
}

static void on_ended(void *owner)
{
    struct exchange *a = owner;

    a->whole |= a->head_len && a->length == UINT64_MAX;
    if (!a->whole)
        fail_exchange(a, WEIR_EUNREACHABLE, "the connection ended before the answer did");
    else
        weir__tcp_abort(a->tcp, NULL);
}

static struct weir__bytes give_output(void *owner)
{
    struct exchange *a = owner;

    return weir__bytes_of(a->out.at + a->sent, a->out.len - a->sent);
}

static void on_sent(void *owner, size_t bytes)
{
    struct exchange *a = owner;

    a->sent += bytes;
}

/* The first reason counts; an exchange with the whole answer needs none. */
static void finish(struct exchange *a, const struct weir_error *why)
{
    weir__loop_timer_stop(a->client->loop, &a->timer);
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
    struct exchange *a = arg;
    char text[64];
    long long ms = a->client->timeout_ms;

    if (ms % 1000 == 0)
        snprintf(text, sizeof text, "no answer within %lld s", ms / 1000);
    else
        snprintf(text, sizeof text, "no answer within %lld ms", ms);
    fail_exchange(a, WEIR_EUNREACHABLE, text);
}

static void dial(void *arg)
{
    struct exchange *a = arg;
    struct weir__loop *loop = a->client->loop;
    struct weir__tcp_options options = {.address = a->client->address,
                                        .tls = a->client->secure ? a->client->tls : NULL};
    struct weir_error err;
    int rc = weir__tcp_connect(&a->tcp, loop, &options, &calls, a, &err);

    if (rc == 0)
        weir__loop_timer_start(loop, &a->timer, weir__loop_now_ms(loop) + a->client->timeout_ms);
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

static bool write_request(struct exchange *a, const struct weir__http_call *call)
{
    struct weir__buf *b = &a->out;
    const char *host = strstr(a->client->url, "://") + 3;
    char length[24];
    bool ok;

    snprintf(length, sizeof length, "%zu", call->body.len);
    ok = add_text(b, call->method) && add_text(b, " ") && add_text(b, call->path) &&
         add_text(b, " HTTP/1.0\r\n") && add_field(b, "Host", host) &&
         add_field(b, "Connection", "close") && add_field(b, "Content-Length", length);
    if (ok && call->body.at) ok = add_field(b, "Content-Type", "application/json");
    if (ok && call->token) ok = add_field(b, "Authorization", call->token);
    if (ok && call->only_new) ok = add_field(b, "If-None-Match", "*");
    return ok && add_text(b, "\r\n") &&
           (call->body.len == 0 || weir__buf_add(b, call->body.at, call->body.len));
}

static int wait_for_end(struct exchange *a, struct weir_error *err)
{
    int code, rc = weir__loop_post(a->client->loop, &a->dial);

    assert(rc == 0); /* the loop lives as long as its borrower */
    weir__mutex_lock(&a->lock);
    while (!a->over) weir__cond_wait(&a->changed, &a->lock, INT64_MAX);
    code = a->why.code;
    if (code != 0 && err) *err = a->why;
    weir__mutex_unlock(&a->lock);
    return code;
}

/* A change whose whole request went out may have been made, although nobody said so. */
static int judge(const struct exchange *a, const struct weir__http_call *call, int code,
                 struct weir_error *err)
{
    bool asks = strcmp(call->method, "GET") == 0;

    if (asks || code != WEIR_EUNREACHABLE || a->sent < a->out.len)
        return weir__wrap(err, code, "%s", a->client->url);
    if (err) err->code = WEIR_EUNKNOWN;
    return weir__wrap(err, WEIR_EUNKNOWN, "%s: whether it was done is unknown", a->client->url);
}

static void take_reply(struct exchange *a, struct weir__http_reply *out)
{
    out->bytes = a->in;
    weir__buf_init(&a->in, 0);
    out->status = a->head.status;
    out->body = weir__bytes_of(out->bytes.at + a->head_len, out->bytes.len - a->head_len);
    if (out->body.len > a->length) out->body.len = (size_t)a->length;
}

int weir__http_client_ask(const struct weir__http_client *client,
                          const struct weir__http_call *call, struct weir__http_reply *out,
                          struct weir_error *err)
{
    struct exchange a = {.client = client};
    int rc;

    *out = (struct weir__http_reply){0};
    weir__buf_init(&a.out, WEIR__HTTP_CLIENT_REQUEST_MAX);
    weir__buf_init(&a.in, WEIR__HTTP_CLIENT_ANSWER_MAX);
    weir__post_init(&a.dial, dial, &a);
    weir__timer_init(&a.timer, on_late, &a);
    weir__mutex_init(&a.lock);
    weir__cond_init(&a.changed);
    if (write_request(&a, call))
        rc = wait_for_end(&a, err);
    else
        rc = weir__fail(err, WEIR_ETOOBIG, "the request is too long");
    if (rc == 0)
        take_reply(&a, out);
    else
        rc = judge(&a, call, rc, err);
    weir__cond_fini(&a.changed);
    weir__mutex_fini(&a.lock);
    weir__buf_fini(&a.out);
    weir__buf_fini(&a.in);
    return rc;
}

void weir__http_reply_fini(struct weir__http_reply *r)
{
    weir__buf_fini(&r->bytes);
}

/* ---- where ---- */

/* How long the host and port behind "http://" are; 0: they are not, or something follows. */
static size_t host_length(const char *host)
{
    size_t len = strcspn(host, "/");

    if (len >= WEIR__HTTP_CLIENT_HOST_MAX || strcspn(host, " @?#%\\\r\n\t") < len) return 0;
    return strcmp(host + len, "") == 0 || strcmp(host + len, "/") == 0 ? len : 0;
}

/* The usual port is added when there is none. */
int weir__http_client_set_url(struct weir__http_client *c, const char *url, struct weir_error *err)
{
    bool plain = strncmp(url, "http://", 7) == 0;
    size_t scheme = plain ? 7 : 8, len;
    const char *host, *colon;

    c->secure = strncmp(url, "https://", 8) == 0;
    len = c->secure || plain ? host_length(url + scheme) : 0;
    if (len == 0)
        return weir__fail(err, WEIR_EINVAL,
                          "'%.200s' is not http://HOST[:PORT] or https://HOST[:PORT]", url);
    snprintf(c->url, sizeof c->url, "%.*s", (int)(scheme + len), url);
    host = c->url + scheme;
    colon = strrchr(host, ':');
    if (colon && strchr(colon, ']')) colon = NULL; /* of an address */
    snprintf(c->address, sizeof c->address, "%s%s", host, colon ? "" : c->secure ? ":443" : ":80");
    return 0;
}
