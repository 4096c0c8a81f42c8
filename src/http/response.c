#include <inttypes.h>
#include <stdio.h>

#include "http/state.h"

#define LINE_MAX 128    /* of what the codec itself writes */
#define HEAD_BYTES 256U /* of a response, besides the owner's fields */

static void add_text(struct weir__buf *b, const char *text)
{
    weir__buf_add(b, text, strlen(text));
}

/* Bytes that were written make room; what the codec says by itself always has some. */
static size_t output_room(struct weir__http *h)
{
    size_t used;

    if (h->out_at) {
        memmove(h->out.at, h->out.at + h->out_at, h->out.len - h->out_at);
        h->out.len -= h->out_at;
        h->out_at = 0;
    }
    used = h->out.len;
    return used < h->limits.output_bytes ? h->limits.output_bytes - used : 0;
}

struct weir__bytes weir__http_output(struct weir__http *h)
{
    if (!h->out.len) return weir__bytes_of(NULL, 0);
    return weir__bytes_of(h->out.at + h->out_at, h->out.len - h->out_at);
}

void weir__http_sent(struct weir__http *h, size_t bytes)
{
    h->out_at += bytes;
    if (h->out_at == h->out.len) h->out_at = h->out.len = 0;
}

void weir__http_say_refusal(struct weir__http *h)
{
    char head[HEAD_BYTES];

    if (h->responding || h->skipping) return; /* too late: the end says enough */
    snprintf(head, sizeof head,
             "HTTP/1.1 %u %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n",
             h->refusal.status, weir__http_status_text(h->refusal.status),
             strlen(h->refusal.text) + 1);
    add_text(&h->out, head);
    add_text(&h->out, h->refusal.text);
    add_text(&h->out, "\n");
}

void weir__http_say_continue(struct weir__http *h)
{
    h->continued = true;
    add_text(&h->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* Whether the connection can go on behind a response that is given now. What remains of the body
 * must be known to be little, and known to come. */
static bool can_go_on(const struct weir__http *h)
{
    const struct weir__http_request *q = &h->request;

    if (!q->keep_alive) return false;
    if (h->state >= WEIR__HTTP_AT_END) return true;
    if (q->expects_continue && !h->continued) return false;
    return h->state == WEIR__HTTP_AT_BODY && h->left <= h->limits.skip_bytes;
}

static bool has_name(struct weir__bytes name, const char *text)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.at[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != (uint8_t)text[i]) return false;
    }
    return text[name.len] == '\0';
}

/* How long they are; 0: one of them is not as it should be, or is for the codec to say. */
static size_t measure_fields(const struct weir__http_response *r)
{
    size_t sum = 1;

    for (size_t i = 0; i < r->field_count; i++) {
        const struct weir__http_field *f = &r->fields[i];
        if (!weir__http_is_name(f->name) || !weir__http_is_value(f->value) ||
            has_name(f->name, "content-length") || has_name(f->name, "transfer-encoding") ||
            (has_name(f->name, "connection") && r->status != 101))
            return 0;
        sum += f->name.len + f->value.len + strlen(": \r\n");
    }
    return sum;
}

static void write_fields(struct weir__http *h, const struct weir__http_response *r)
{
    for (size_t i = 0; i < r->field_count; i++) {
        weir__buf_add(&h->out, r->fields[i].name.at, r->fields[i].name.len);
        add_text(&h->out, ": ");
        weir__buf_add(&h->out, r->fields[i].value.at, r->fields[i].value.len);
        add_text(&h->out, "\r\n");
    }
}

/* How the body is delimited, and what becomes of the connection. */
static void write_framing(struct weir__http *h, const struct weir__http_response *r)
{
    bool empty = r->status == 204 || r->status == 304;
    char line[LINE_MAX];

    if (!empty && h->chunked) {
        add_text(&h->out, "Transfer-Encoding: chunked\r\n");
    } else if (!empty && r->length != WEIR__HTTP_CHUNKED) {
        snprintf(line, sizeof line, "Content-Length: %" PRIu64 "\r\n", r->length);
        add_text(&h->out, line);
    }
    if (h->close)
        add_text(&h->out, "Connection: close\r\n");
    else if (h->request.minor == 0)
        add_text(&h->out, "Connection: keep-alive\r\n");
    h->bare = empty || h->request.method == WEIR__HTTP_HEAD;
}

static int check_response(struct weir__http *h, const struct weir__http_response *r,
                          struct weir_error *err)
{
    size_t fields = measure_fields(r);

    if (weir__http_closed(h) || h->state == WEIR__HTTP_UPGRADED)
        return weir__fail(err, WEIR_ECLOSED, "HTTP: the connection is closed");
    if (h->state == WEIR__HTTP_AT_HEAD || h->responding || h->skipping)
        return weir__fail(err, WEIR_EINVAL, "HTTP: there is no request to answer");
    if (r->status < 101 || r->status > 999 || (r->status < 200 && r->status != 101) ||
        (r->status == 101 && h->state < WEIR__HTTP_AT_END))
        return weir__fail(err, WEIR_EINVAL, "HTTP: status %u is no answer", r->status);
    if (!fields) return weir__fail(err, WEIR_EINVAL, "HTTP: a field that must not be there");
    if (fields + HEAD_BYTES > h->limits.output_bytes)
        return weir__fail(err, WEIR_ETOOBIG, "HTTP: the fields are too long");
    if (fields + HEAD_BYTES > output_room(h) || !weir__buf_room(&h->out, fields + HEAD_BYTES))
        return weir__fail(err, WEIR_EBUSY, "HTTP: the output is full");
    return 0;
}

int weir__http_respond(struct weir__http *h, const struct weir__http_response *r,
                       struct weir_error *err)
{
    char line[LINE_MAX];
    int rc = check_response(h, r, err);

    if (rc != 0) return rc;
    h->responding = true;
    h->upgrade = r->status == 101;
    h->chunked = r->length == WEIR__HTTP_CHUNKED && h->request.minor == 1;
    h->close = r->close || !can_go_on(h) || (r->length == WEIR__HTTP_CHUNKED && !h->chunked);
    h->response_left = r->length;
    snprintf(line, sizeof line, "HTTP/1.1 %u %s\r\n", r->status, weir__http_status_text(r->status));
    add_text(&h->out, line);
    write_fields(h, r);
    if (!h->upgrade) write_framing(h, r);
    if (h->upgrade) h->bare = true;
    add_text(&h->out, "\r\n");
    return 0;
}

int weir__http_write(struct weir__http *h, struct weir__bytes piece, struct weir_error *err)
{
    char line[LINE_MAX] = "";
    size_t more = piece.len + (h->chunked ? 24 : 0);

    if (weir__http_closed(h))
        return weir__fail(err, WEIR_ECLOSED, "HTTP: the connection is closed");
    if (!h->responding || piece.len > h->response_left)
        return weir__fail(err, WEIR_EINVAL, "HTTP: more body than was said");
    if (!piece.len) return 0;
    if (!h->bare && more > h->limits.output_bytes)
        return weir__fail(err, WEIR_ETOOBIG, "HTTP: a piece of %zu bytes", piece.len);
    if (!h->bare && (more > output_room(h) || !weir__buf_room(&h->out, more)))
        return weir__fail(err, WEIR_EBUSY, "HTTP: the output is full");
    if (h->response_left != WEIR__HTTP_CHUNKED) h->response_left -= piece.len;
    if (h->bare) return 0;
    if (h->chunked) snprintf(line, sizeof line, "%zx\r\n", piece.len);
    add_text(&h->out, line);
    weir__buf_add(&h->out, piece.at, piece.len);
    if (h->chunked) add_text(&h->out, "\r\n");
    return 0;
}

int weir__http_finish(struct weir__http *h, struct weir_error *err)
{
    bool short_of = h->response_left && h->response_left != WEIR__HTTP_CHUNKED;

    if (weir__http_closed(h))
        return weir__fail(err, WEIR_ECLOSED, "HTTP: the connection is closed");
    if (!h->responding) return weir__fail(err, WEIR_EINVAL, "HTTP: no response has begun");
    if (h->chunked && !h->bare) {
        if (!weir__buf_room(&h->out, 5)) return weir__fail(err, WEIR_EBUSY, "HTTP: out of memory");
        add_text(&h->out, "0\r\n\r\n");
    }
    /* A body that is too short can only be told by the end of the connection. After HEAD nobody
     * waits for it. */
    if (short_of && !h->bare) h->close = true;
    weir__http_answered(h);
    if (short_of && !h->bare) return weir__fail(err, WEIR_EINVAL, "HTTP: less body than was said");
    return 0;
}

int weir__http_reply(struct weir__http *h, unsigned status, const char *type,
                     struct weir__bytes body, struct weir_error *err)
{
    struct weir__http_field field = weir__http_field_of("Content-Type", type ? type : "");
    struct weir__http_response r = {.status = status,
                                    .length = body.len,
                                    .fields = &field,
                                    .field_count = type ? 1 : 0};
    size_t needed = body.len + HEAD_BYTES + HEAD_BYTES + field.value.len;
    int rc;

    if (needed > h->limits.output_bytes)
        return weir__fail(err, WEIR_ETOOBIG, "HTTP: a body of %zu bytes", body.len);
    if (needed > output_room(h) || !weir__buf_room(&h->out, needed))
        return weir__fail(err, WEIR_EBUSY, "HTTP: the output is full");
    rc = weir__http_respond(h, &r, err);
    if (rc == 0) rc = weir__http_write(h, body, err);
    return rc == 0 ? weir__http_finish(h, err) : rc;
}
