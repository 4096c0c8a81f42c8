#include "http/http.h"

#include <assert.h>
#include <stdlib.h>

#include "http/state.h"

#define READ_BYTES 4096      /* room that is offered at least, where there is so much */
#define SIZE_LINE_MAX 18     /* sixteen digits and CR LF */
#define REQUEST_LINE_MORE 32 /* of a request line, besides the target */
#define REST_MS 1000         /* idle, and the buffers are given back */
#define METHOD_LOOK_BYTES 8  /* of a request, to see that it is one */
#define OUTPUT_MORE 1024     /* for what the codec says by itself */

static uint32_t number_or(uint32_t given, uint32_t otherwise)
{
    return given ? given : otherwise;
}

int weir__http_new(struct weir__http **out, const struct weir__http_limits *given,
                   struct weir_error *err)
{
    static const struct weir__http_limits none;
    const struct weir__http_limits *l = given ? given : &none;
    struct weir__http *h = calloc(1, sizeof *h);

    *out = h;
    if (!h) return weir__fail(err, WEIR_ENOMEM, "HTTP: out of memory");
    h->limits = (struct weir__http_limits){
        .head_bytes = number_or(l->head_bytes, 16384),
        .target_bytes = number_or(l->target_bytes, 8192),
        .window_bytes = number_or(l->window_bytes, 16384),
        .output_bytes = number_or(l->output_bytes, 262144),
        .skip_bytes = number_or(l->skip_bytes, 65536),
        .body_bytes = l->body_bytes ? l->body_bytes : 1048576,
        .head_ms = number_or(l->head_ms, 10000),
        .idle_ms = number_or(l->idle_ms, 60000),
        .body_rate = number_or(l->body_rate, 1024),
    };
    weir__buf_init(&h->in, (size_t)h->limits.head_bytes + h->limits.window_bytes);
    weir__buf_init(&h->out, (size_t)h->limits.output_bytes + OUTPUT_MORE);
    return 0;
}

void weir__http_free(struct weir__http *h)
{
    if (!h) return;
    weir__buf_fini(&h->in);
    weir__buf_fini(&h->out);
    free(h);
}

static size_t available(const struct weir__http *h)
{
    return h->in.len - h->at;
}

/* Bytes that were taken make room. */
static void close_gap(struct weir__http *h)
{
    if (h->at == h->head_len) return;
    memmove(h->in.at + h->head_len, h->in.at + h->at, available(h));
    h->in.len -= h->at - h->head_len;
    h->at = h->head_len;
}

uint8_t *weir__http_input(struct weir__http *h, size_t *room)
{
    size_t left;
    uint8_t *to;

    *room = 0;
    if (h->state >= WEIR__HTTP_REFUSED || h->no_more) return NULL;
    close_gap(h);
    left = h->in.max - h->in.len;
    to = left ? weir__buf_room(&h->in, left < READ_BYTES ? left : READ_BYTES) : NULL;
    if (to) *room = h->in.cap - h->in.len;
    return to;
}

void weir__http_received(struct weir__http *h, size_t bytes)
{
    assert(bytes <= h->in.cap - h->in.len);
    h->in.len += bytes;
}

void weir__http_ended(struct weir__http *h)
{
    h->no_more = true;
}

/* Each step looks at what is there in its state. */
enum step {
    AGAIN, /* the state has changed, or something was taken */
    WAIT,
    EVENT /* was filled */
};

static enum step refuse(struct weir__http *h, unsigned status, const char *text)
{
    h->refusal = (struct weir__http_refusal){status, text};
    weir__http_say_refusal(h);
    h->state = WEIR__HTTP_REFUSED;
    return AGAIN;
}

static enum step refuse_as_said(struct weir__http *h)
{
    return refuse(h, h->refusal.status, h->refusal.text);
}

/* One empty line may stand before a request: some clients send one behind a body. */
static bool skip_empty_line(struct weir__http *h)
{
    const uint8_t *at;

    if (h->rested || h->seen || !available(h)) return true;
    at = h->in.at;
    if (at[0] != '\r') return true;
    if (available(h) < 2) return false;
    if (at[1] != '\n') return true;
    h->at += 2;
    h->rested = true;
    close_gap(h);
    return true;
}

static void begin_body(struct weir__http *h)
{
    h->left = h->request.length;
    h->body_bytes = 0;
    h->state = h->request.chunked ? WEIR__HTTP_AT_SIZE
               : h->left          ? WEIR__HTTP_AT_BODY
                                  : WEIR__HTTP_AT_END;
}

/* Told by the first bytes alone, so that it does not depend on how they came. */
static bool line_too_long(const uint8_t *head, size_t there, size_t target_max)
{
    size_t max = target_max + REQUEST_LINE_MORE;

    return there > max && !memchr(head, '\n', max + 1);
}

static enum step accept_head(struct weir__http *h, const uint8_t *head, size_t len,
                             struct weir__http_event *ev)
{
    struct weir__http_head_limits limits = {h->limits.target_bytes, h->limits.body_bytes};

    if (!weir__http_head_parse(&h->request, head, len, &limits, &h->refusal))
        return refuse_as_said(h);
    h->at += len;
    h->head_len = h->at;
    h->requests++;
    begin_body(h);
    ev->type = WEIR__HTTP_EVENT_REQUEST;
    ev->request = &h->request;
    return EVENT;
}

/* A request borrows from the buffer, which may grow now and not again until it is answered. */
static bool make_room(struct weir__http *h)
{
    return h->in.cap == h->in.max || weir__buf_room(&h->in, h->in.max - h->in.len);
}

/* AMQP, TLS and others begin with bytes that no method has, and wait for an answer. */
static bool speaks_other(const uint8_t *head, size_t there)
{
    for (size_t i = 0; i < there && i < METHOD_LOOK_BYTES; i++) {
        if (head[i] == '\r' || head[i] == '\n') return false;
        if (head[i] < ' ' || head[i] > '~') return true;
    }
    return false;
}

static enum step step_head(struct weir__http *h, struct weir__http_event *ev)
{
    size_t len, there;
    const uint8_t *head;

    assert(h->at == 0); /* what was taken is gone */
    if (!skip_empty_line(h) || !available(h)) return WAIT;
    head = h->in.at;
    there = available(h) < h->limits.head_bytes ? available(h) : h->limits.head_bytes;
    if (speaks_other(head, there)) return refuse(h, 400, "HTTP is spoken here");
    if (line_too_long(head, there, h->limits.target_bytes))
        return refuse(h, 414, "the target is too long");
    if (!weir__http_head_end(head, there, &h->seen, &len, &h->refusal)) return refuse_as_said(h);
    if (len && !make_room(h)) return refuse(h, 503, "out of memory");
    if (len) return accept_head(h, h->in.at, len, ev);
    return there < h->limits.head_bytes ? WAIT : refuse(h, 431, "the head is too long");
}

/* Whoever expects "100 Continue" gets it when the owner waits for the body. */
static enum step wait_for_body(struct weir__http *h)
{
    if (h->request.expects_continue && !h->continued && !h->responding && !h->body_bytes)
        weir__http_say_continue(h);
    return WAIT;
}

/* What is there of the body or of the chunk. */
static enum step take_bytes(struct weir__http *h, struct weir__http_event *ev,
                            enum weir__http_state then)
{
    size_t n = available(h);

    if (!n) return wait_for_body(h);
    if (n > h->left) n = (size_t)h->left;
    ev->type = WEIR__HTTP_EVENT_BODY;
    ev->bytes = weir__bytes_of(h->in.at + h->at, n);
    h->at += n;
    h->left -= n;
    h->body_bytes += n;
    if (!h->left) h->state = then;
    return h->skipping ? AGAIN : EVENT;
}

static enum step step_body(struct weir__http *h, struct weir__http_event *ev)
{
    return take_bytes(h, ev, WEIR__HTTP_AT_END);
}

static enum step step_chunk(struct weir__http *h, struct weir__http_event *ev)
{
    return take_bytes(h, ev, WEIR__HTTP_AT_CHUNK_END);
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The size of a chunk is hexadecimal and alone on its line: extensions are nobody's need, and a
 * place where programs differ. */
static enum step step_size(struct weir__http *h, struct weir__http_event *ev)
{
    const uint8_t *at = h->in.at + h->at;
    size_t n = available(h), i = 0;
    uint64_t size = 0;

    (void)ev;
    if (!n) return wait_for_body(h);
    for (; i < n && i < SIZE_LINE_MAX - 2 && hex_value(at[i]) >= 0; i++)
        size = size << 4 | (uint64_t)hex_value(at[i]);
    if (i < n && (i == 0 || at[i] != '\r')) return refuse(h, 400, "the size of a chunk is not one");
    if (i + 1 < n && at[i + 1] != '\n') return refuse(h, 400, "the size of a chunk is not one");
    if (i + 1 >= n) return WAIT;
    if (size > h->limits.body_bytes - h->body_bytes) return refuse(h, 413, "the body is too large");
    h->at += i + 2;
    h->left = size;
    h->state = size ? WEIR__HTTP_AT_CHUNK : WEIR__HTTP_AT_TRAILER;
    h->seen = 0;
    return AGAIN;
}

static enum step step_chunk_end(struct weir__http *h, struct weir__http_event *ev)
{
    const uint8_t *at = h->in.at + h->at;
    size_t n = available(h);

    (void)ev;
    if ((n > 0 && at[0] != '\r') || (n > 1 && at[1] != '\n'))
        return refuse(h, 400, "a chunk is longer than it said");
    if (n < 2) return WAIT;
    h->at += 2;
    h->state = WEIR__HTTP_AT_SIZE;
    return AGAIN;
}

static enum step step_trailer(struct weir__http *h, struct weir__http_event *ev)
{
    size_t len, max = h->limits.window_bytes / 2;
    uint8_t *at = h->in.at + h->at;
    size_t there = available(h) < max ? available(h) : max;

    (void)ev;
    if (!weir__http_head_end(at, there, &h->seen, &len, &h->refusal)) return refuse_as_said(h);
    if (!len && there == max) return refuse(h, 431, "the trailer is too long");
    if (!len) return WAIT;
    if (!weir__http_trailer_check(at, len, &h->refusal)) return refuse_as_said(h);
    h->at += len;
    h->state = WEIR__HTTP_AT_END;
    return AGAIN;
}

/* The next request, if there is to be one. */
static void begin_request(struct weir__http *h)
{
    h->head_len = 0;
    close_gap(h);
    h->seen = 0;
    h->rested = h->skipping = h->continued = false;
    h->state = WEIR__HTTP_AT_HEAD;
}

static enum step step_end(struct weir__http *h, struct weir__http_event *ev)
{
    if (h->skipping) {
        begin_request(h);
        return AGAIN;
    }
    h->state = WEIR__HTTP_ANSWERING;
    ev->type = WEIR__HTTP_EVENT_END;
    return EVENT;
}

static enum step step_refused(struct weir__http *h, struct weir__http_event *ev)
{
    h->state = WEIR__HTTP_CLOSED;
    ev->type = WEIR__HTTP_EVENT_REFUSED;
    ev->refusal = h->refusal;
    return EVENT;
}

static enum step step_none(struct weir__http *h, struct weir__http_event *ev)
{
    (void)h;
    (void)ev;
    return WAIT;
}

static enum step (*const steps[WEIR__HTTP_STATES])(struct weir__http *,
                                                   struct weir__http_event *) = {
    [WEIR__HTTP_AT_HEAD] = step_head,
    [WEIR__HTTP_AT_BODY] = step_body,
    [WEIR__HTTP_AT_SIZE] = step_size,
    [WEIR__HTTP_AT_CHUNK] = step_chunk,
    [WEIR__HTTP_AT_CHUNK_END] = step_chunk_end,
    [WEIR__HTTP_AT_TRAILER] = step_trailer,
    [WEIR__HTTP_AT_END] = step_end,
    [WEIR__HTTP_ANSWERING] = step_none,
    [WEIR__HTTP_REFUSED] = step_refused,
    [WEIR__HTTP_CLOSED] = step_none,
    [WEIR__HTTP_UPGRADED] = step_none,
};

bool weir__http_next(struct weir__http *h, struct weir__http_event *ev)
{
    enum step step;

    *ev = (struct weir__http_event){.type = WEIR__HTTP_EVENT_REQUEST};
    do {
        step = steps[h->state](h, ev);
    } while (step == AGAIN);
    /* What it waits for will never come. */
    if (step == WAIT && h->no_more && h->state < WEIR__HTTP_ANSWERING) h->state = WEIR__HTTP_CLOSED;
    return step == EVENT;
}

void weir__http_answered(struct weir__http *h)
{
    h->responding = false;
    if (h->upgrade)
        h->state = WEIR__HTTP_UPGRADED;
    else if (h->close)
        h->state = WEIR__HTTP_CLOSED;
    else if (h->state == WEIR__HTTP_ANSWERING)
        begin_request(h);
    else
        h->skipping = true;
}

bool weir__http_closed(const struct weir__http *h)
{
    return h->state == WEIR__HTTP_REFUSED || h->state == WEIR__HTTP_CLOSED;
}

bool weir__http_upgraded(const struct weir__http *h)
{
    return h->state == WEIR__HTTP_UPGRADED;
}

struct weir__bytes weir__http_rest(const struct weir__http *h)
{
    if (!available(h)) return weir__bytes_of(NULL, 0);
    return weir__bytes_of(h->in.at + h->at, available(h));
}

size_t weir__http_buffered(const struct weir__http *h)
{
    return h->in.cap + h->out.cap;
}

size_t weir__http_memory(const struct weir__http *h)
{
    return sizeof *h + h->in.cap + h->out.cap;
}

/* Time. */

/* A window full of bytes that the owner has not taken stops the client's clock. */
static enum weir__http_phase phase_of(const struct weir__http *h)
{
    if (h->state == WEIR__HTTP_AT_HEAD) return available(h) ? WEIR__HTTP_IN_HEAD : WEIR__HTTP_IDLE;
    if (h->state < WEIR__HTTP_AT_END && available(h) < h->limits.window_bytes)
        return WEIR__HTTP_IN_BODY;
    return WEIR__HTTP_NOT_TIMED;
}

static void rest(struct weir__http *h)
{
    if (!h->in.len) weir__buf_fini(&h->in);
    if (!h->out.len) weir__buf_fini(&h->out);
}

static int64_t tick_idle(struct weir__http *h, int64_t spent_ms)
{
    if (spent_ms >= h->limits.idle_ms) h->state = WEIR__HTTP_CLOSED;
    if (spent_ms < REST_MS) return REST_MS;
    rest(h);
    return h->limits.idle_ms;
}

static int64_t tick_body(struct weir__http *h, int64_t spent_ms)
{
    int64_t over_ms = spent_ms - h->limits.head_ms;

    if (over_ms < 0) return h->limits.head_ms;
    if (h->body_bytes < (uint64_t)over_ms * h->limits.body_rate / 1000)
        refuse(h, 408, "the body comes too slowly");
    return spent_ms + 1000;
}

int64_t weir__http_tick(struct weir__http *h, int64_t now_ms)
{
    enum weir__http_phase phase = phase_of(h);
    int64_t spent_ms, next_ms = 0;

    if (phase != h->phase || h->requests != h->phase_request) h->phase_ms = now_ms;
    h->phase = phase;
    h->phase_request = h->requests;
    spent_ms = now_ms - h->phase_ms;
    switch (phase) {
    case WEIR__HTTP_NOT_TIMED: return INT64_MAX;
    case WEIR__HTTP_IDLE: next_ms = tick_idle(h, spent_ms); break;
    case WEIR__HTTP_IN_BODY: next_ms = tick_body(h, spent_ms); break;
    case WEIR__HTTP_IN_HEAD:
        next_ms = h->limits.head_ms;
        if (spent_ms >= next_ms) refuse(h, 408, "the head comes too slowly");
        break;
    }
    return weir__http_closed(h) ? INT64_MAX : h->phase_ms + next_ms;
}
