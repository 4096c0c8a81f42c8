/* websocket.h - either side of a WebSocket (RFC 6455), with no I/O in it: how a server lets one in
 * (how a client asks for it is in knock.h), and the stream of bytes inside its binary messages.
 * Frames are wslay's.
 *
 *     to = weir__websocket_input(w, &room);    where to read into; no room: do not read now
 *     weir__websocket_received(w, n);          n bytes landed there
 *     got = weir__websocket_payload(w);        what they carried
 *     weir__websocket_taken(w, n);             n bytes of it were taken
 *     weir__websocket_send(w, bytes);          one message, as far as there is room
 *     out = weir__websocket_output(w);         what to write
 *     weir__websocket_sent(w, n);              n bytes of it were written
 *
 * Where messages and frames begin and end has no meaning for what is inside, and nothing waits for
 * the end of one. What the codec does by itself: pings are answered, a close is answered, and what
 * RFC 6455 forbids (a client's frames without a mask, a server's with one, reserved bits, control
 * frames in pieces or too long), a message of text, and a frame above WEIR__WEBSOCKET_FRAME_MAX end
 * the stream with a close that says so by its code, where wslay gives it one. */
#ifndef WEIR_HTTP_WEBSOCKET_H
#define WEIR_HTTP_WEBSOCKET_H

#include "base/error.h"
#include "base/rand.h"
#include "http/head.h"

#define WEIR__WEBSOCKET_FRAME_MAX (64u << 20) /* passes through, is never held: 1009 */
#define WEIR__WEBSOCKET_INPUT_BYTES 4096u     /* of the wire, at once */
#define WEIR__WEBSOCKET_MESSAGE_MAX 65536u    /* of what we send, at once */
#define WEIR__WEBSOCKET_OUTPUT_MAX                                                                 \
    (96u << 10)                         /* waiting; with more than half of it we read no more */
#define WEIR__WEBSOCKET_KEY_BYTES 24    /* base64 of 16 random bytes */
#define WEIR__WEBSOCKET_ACCEPT_BYTES 29 /* base64 of SHA-1, with a NUL */

/* The answer to a request that wants to become a WebSocket. */
struct weir__websocket_welcome {
    char accept[WEIR__WEBSOCKET_ACCEPT_BYTES]; /* Sec-WebSocket-Accept */
    const char *protocol;                      /* the first of `protocols` that was offered */
};

/* protocols ends with NULL; the client must offer one of them. false: refused, 400, or 426 when
 * the request is no upgrade or of another version. */
bool weir__websocket_welcome(const struct weir__http_request *, const char *const *protocols,
                             struct weir__websocket_welcome *out, struct weir__http_refusal *);

/* The Sec-WebSocket-Accept of a key, which has WEIR__WEBSOCKET_KEY_BYTES. false: libcrypto has no
 * SHA-1. */
bool weir__websocket_accept(struct weir__bytes key, char out[WEIR__WEBSOCKET_ACCEPT_BYTES]);

struct weir__websocket;

/* mask is where a client takes its frames' masks from, copied; NULL: this is the server. */
int weir__websocket_new(struct weir__websocket **out, const struct weir__rand *mask,
                        struct weir_error *);
void weir__websocket_free(struct weir__websocket *); /* NULL is fine */

/* There is room when the payload was taken, and while the peer reads what we say to it. */
uint8_t *weir__websocket_input(struct weir__websocket *, size_t *room);
void weir__websocket_received(struct weir__websocket *, size_t bytes);

/* Borrowed until the next call of received or taken. */
struct weir__bytes weir__websocket_payload(const struct weir__websocket *);
void weir__websocket_taken(struct weir__websocket *, size_t bytes);

/* Returns how many bytes went into a message: all, up to WEIR__WEBSOCKET_MESSAGE_MAX; or none, when
 * there is no room, or after a close. */
size_t weir__websocket_send(struct weir__websocket *, struct weir__bytes);

/* Says goodbye, once: nothing can be sent after it. */
void weir__websocket_close(struct weir__websocket *);

/* Nothing more will come, and nothing can be sent: the peer closed it or made a mistake, or we
 * closed it. Write what is left of the output. */
bool weir__websocket_closed(const struct weir__websocket *);

struct weir__bytes weir__websocket_output(struct weir__websocket *);
void weir__websocket_sent(struct weir__websocket *, size_t bytes);

#endif
