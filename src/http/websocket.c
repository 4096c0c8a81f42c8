#include "http/websocket.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include "base/buf.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define FRAME_HEAD_MAX 14 /* with a mask */

/* ---- the welcome ---- */

static bool refuse(struct weir__http_refusal *r, unsigned status, const char *text)
{
    *r = (struct weir__http_refusal){status, text};
    return false;
}

static bool is_key(struct weir__bytes key)
{
    uint8_t raw[WEIR__WEBSOCKET_KEY_BYTES];

    return key.len == WEIR__WEBSOCKET_KEY_BYTES && key.at[WEIR__WEBSOCKET_KEY_BYTES - 1] == '=' &&
           key.at[WEIR__WEBSOCKET_KEY_BYTES - 2] == '=' &&
           EVP_DecodeBlock(raw, key.at, WEIR__WEBSOCKET_KEY_BYTES) ==
               WEIR__WEBSOCKET_KEY_BYTES / 4 * 3;
}

bool weir__websocket_accept(struct weir__bytes key, char out[WEIR__WEBSOCKET_ACCEPT_BYTES])
{
    uint8_t text[WEIR__WEBSOCKET_KEY_BYTES + sizeof GUID - 1], digest[SHA_DIGEST_LENGTH];

    memcpy(text, key.at, WEIR__WEBSOCKET_KEY_BYTES);
    memcpy(text + WEIR__WEBSOCKET_KEY_BYTES, GUID, sizeof GUID - 1);
    if (!EVP_Digest(text, sizeof text, digest, NULL, EVP_sha1(), NULL)) return false;
    EVP_EncodeBlock((unsigned char *)out, digest, sizeof digest);
    return true;
}

static const char *choose(const struct weir__http_request *q, const char *const *protocols)
{
    struct weir__bytes offered = weir__http_field(q, "sec-websocket-protocol");

    while (*protocols && !weir__http_has_token(offered, *protocols)) protocols++;
    return *protocols;
}

bool weir__websocket_welcome(const struct weir__http_request *q, const char *const *protocols,
                             struct weir__websocket_welcome *out, struct weir__http_refusal *r)
{
    struct weir__bytes version = weir__http_field(q, "sec-websocket-version");
    struct weir__bytes key = weir__http_field(q, "sec-websocket-key");

    if (q->method != WEIR__HTTP_GET || q->minor == 0 ||
        !weir__http_has_token(weir__http_field(q, "upgrade"), "websocket") ||
        !weir__http_has_token(weir__http_field(q, "connection"), "upgrade"))
        return refuse(r, 426, "A WebSocket is wanted here: GET with Upgrade: websocket.");
    if (version.len != 2 || memcmp(version.at, "13", 2) != 0)
        return refuse(r, 426, "Sec-WebSocket-Version must be 13.");
    if (!is_key(key)) return refuse(r, 400, "Sec-WebSocket-Key is not 16 bytes in base64.");
    out->protocol = choose(q, protocols);
    if (!out->protocol)
        return refuse(r, 400, "Sec-WebSocket-Protocol must have AMQPWSB10 or amqp.");
    if (!weir__websocket_accept(key, out->accept))
        return refuse(r, 500, "SHA-1 is not to be had here.");
    return true;
}

/* ---- frames ---- */

struct weir__websocket {
    struct wslay_event_context *frames;
    struct weir__rand mask; /* a client's */
    uint8_t in[WEIR__WEBSOCKET_INPUT_BYTES];
    size_t in_at, in_len;
    uint8_t payload[WEIR__WEBSOCKET_INPUT_BYTES];
    size_t payload_at, payload_len;
    struct weir__buf out;
    size_t out_at;
    bool binary;  /* the message in work is */
    bool passing; /* the frame in work is a part of it, not a control frame */
    bool broken;  /* wslay has given up */
    bool closing; /* we have said goodbye */
};

static ssize_t give_input(wslay_event_context_ptr frames, uint8_t *to, size_t room, int flags,
                          void *user)
{
    struct weir__websocket *w = user;
    size_t n = w->in_len - w->in_at;

    (void)flags;
    if (n == 0) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    if (n > room) n = room;
    memcpy(to, w->in + w->in_at, n);
    w->in_at += n;
    return (ssize_t)n;
}

static ssize_t take_output(wslay_event_context_ptr frames, const uint8_t *at, size_t len, int flags,
                           void *user)
{
    struct weir__websocket *w = user;

    (void)flags;
    if (weir__buf_add(&w->out, at, len)) return (ssize_t)len;
    wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static void begin_frame(wslay_event_context_ptr frames,
                        const struct wslay_event_on_frame_recv_start_arg *frame, void *user)
{
    struct weir__websocket *w = user;

    w->passing = false;
    if (wslay_is_ctrl_frame(frame->opcode)) return;
    if (frame->opcode != WSLAY_CONTINUATION_FRAME) w->binary = frame->opcode == WSLAY_BINARY_FRAME;
    w->passing = w->binary;
    if (w->binary) return;
    wslay_event_queue_close(frames, WSLAY_CODE_UNSUPPORTED_DATA, NULL, 0);
    wslay_event_shutdown_read(frames);
}

/* Never more than came from the wire since the payload was taken. */
static void take_chunk(wslay_event_context_ptr frames,
                       const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *user)
{
    struct weir__websocket *w = user;

    (void)frames;
    if (!w->passing) return;
    assert(chunk->data_length <= sizeof w->payload - w->payload_len);
    memcpy(w->payload + w->payload_len, chunk->data, chunk->data_length);
    w->payload_len += chunk->data_length;
}

static int make_mask(wslay_event_context_ptr frames, uint8_t *to, size_t len, void *user)
{
    struct weir__websocket *w = user;

    if (w->mask.fill(w->mask.self, to, len, NULL) == 0) return 0;
    wslay_event_set_error(frames, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static const struct wslay_event_callbacks callbacks = {
    .recv_callback = give_input,
    .send_callback = take_output,
    .genmask_callback = make_mask,
    .on_frame_recv_start_callback = begin_frame,
    .on_frame_recv_chunk_callback = take_chunk,
};

static int make_frames(struct weir__websocket *w, const struct weir__rand *mask)
{
    if (!mask) return wslay_event_context_server_init(&w->frames, &callbacks, w);
    w->mask = *mask;
    return wslay_event_context_client_init(&w->frames, &callbacks, w);
}

int weir__websocket_new(struct weir__websocket **out, const struct weir__rand *mask,
                        struct weir_error *err)
{
    struct weir__websocket *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w || make_frames(w, mask) != 0) {
        free(w);
        return weir__fail(err, WEIR_ENOMEM, "out of memory for a WebSocket");
    }
    wslay_event_config_set_no_buffering(w->frames, 1);
    wslay_event_config_set_max_recv_msg_length(w->frames, WEIR__WEBSOCKET_FRAME_MAX);
    weir__buf_init(&w->out, WEIR__WEBSOCKET_OUTPUT_MAX);
    *out = w;
    return 0;
}

void weir__websocket_free(struct weir__websocket *w)
{
    if (!w) return;
    wslay_event_context_free(w->frames);
    weir__buf_fini(&w->out);
    free(w);
}

/* ---- in ---- */

static size_t waiting(const struct weir__websocket *w)
{
    return w->out.len - w->out_at;
}

uint8_t *weir__websocket_input(struct weir__websocket *w, size_t *room)
{
    *room = 0;
    if (w->payload_len || weir__websocket_closed(w) || waiting(w) > WEIR__WEBSOCKET_OUTPUT_MAX / 2)
        return NULL;
    *room = sizeof w->in;
    return w->in;
}

void weir__websocket_received(struct weir__websocket *w, size_t bytes)
{
    assert(bytes <= sizeof w->in && !w->payload_len);
    w->in_len = bytes;
    if (wslay_event_recv(w->frames) != 0) w->broken = true;
    w->in_at = w->in_len = 0; /* what came behind a close is nothing to us */
}

struct weir__bytes weir__websocket_payload(const struct weir__websocket *w)
{
    return weir__bytes_of(w->payload + w->payload_at, w->payload_len - w->payload_at);
}

void weir__websocket_taken(struct weir__websocket *w, size_t bytes)
{
    assert(bytes <= w->payload_len - w->payload_at);
    w->payload_at += bytes;
    if (w->payload_at == w->payload_len) w->payload_at = w->payload_len = 0;
}

/* ---- out ---- */

/* What wslay has queued, as far as there is room. */
static void flush(struct weir__websocket *w)
{
    if (w->out_at) {
        memmove(w->out.at, w->out.at + w->out_at, waiting(w));
        w->out.len -= w->out_at;
        w->out_at = 0;
    }
    if (wslay_event_want_write(w->frames) && wslay_event_send(w->frames) != 0) w->broken = true;
}

size_t weir__websocket_send(struct weir__websocket *w, struct weir__bytes b)
{
    size_t n = b.len < WEIR__WEBSOCKET_MESSAGE_MAX ? b.len : WEIR__WEBSOCKET_MESSAGE_MAX;
    struct wslay_event_msg message = {WSLAY_BINARY_FRAME, b.at, n};

    if (n == 0 || weir__websocket_closed(w)) return 0;
    flush(w);
    if (waiting(w) + n + FRAME_HEAD_MAX > WEIR__WEBSOCKET_OUTPUT_MAX) return 0;
    if (wslay_event_queue_msg(w->frames, &message) != 0) return 0;
    flush(w);
    return n;
}

void weir__websocket_close(struct weir__websocket *w)
{
    if (w->closing) return;
    w->closing = true;
    wslay_event_queue_close(w->frames, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
}

bool weir__websocket_closed(const struct weir__websocket *w)
{
    return w->closing || w->broken || !wslay_event_get_read_enabled(w->frames);
}

struct weir__bytes weir__websocket_output(struct weir__websocket *w)
{
    flush(w);
    if (!waiting(w)) return weir__bytes_of(NULL, 0);
    return weir__bytes_of(w->out.at, w->out.len);
}

void weir__websocket_sent(struct weir__websocket *w, size_t bytes)
{
    assert(bytes <= waiting(w));
    w->out_at += bytes;
    if (waiting(w)) return;
    weir__buf_fini(&w->out); /* idle ones are small */
    w->out_at = 0;
}
