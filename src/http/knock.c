#include "http/knock.h"

#include <openssl/evp.h>
#include <stdio.h>

#define KEY_RAW_BYTES 16

static int make_key(struct weir__knock *k, const struct weir__rand *rand,
                    char key[WEIR__WEBSOCKET_KEY_BYTES + 1], struct weir_error *err)
{
    uint8_t raw[KEY_RAW_BYTES];
    int rc = rand->fill(rand->self, raw, sizeof raw, err);

    if (rc != 0) return rc;
    EVP_EncodeBlock((unsigned char *)key, raw, sizeof raw);
    if (weir__websocket_accept(weir__bytes_of(key, WEIR__WEBSOCKET_KEY_BYTES), k->accept)) return 0;
    return weir__fail(err, WEIR_ENOTSUP, "a WebSocket needs SHA-1, which is not to be had here");
}

static bool add_text(struct weir__buf *to, const char *text)
{
    return weir__buf_add(to, text, strlen(text));
}

static bool add_protocols(struct weir__buf *to, const char *const *protocols)
{
    bool added = add_text(to, *protocols);

    while (*++protocols) added = added && add_text(to, ", ") && add_text(to, *protocols);
    return added;
}

int weir__knock_write(struct weir__knock *k, const struct weir__knock_options *o,
                      const struct weir__rand *rand, struct weir__buf *out, struct weir_error *err)
{
    char key[WEIR__WEBSOCKET_KEY_BYTES + 1], head[WEIR__KNOCK_REQUEST_MAX];
    size_t before = out->len, most = out->max - before;
    int rc, len;

    *k = (struct weir__knock){.protocols = o->protocols};
    rc = make_key(k, rand, key, err);
    if (rc != 0) return rc;
    if (most > WEIR__KNOCK_REQUEST_MAX) most = WEIR__KNOCK_REQUEST_MAX;
    if (!weir__buf_room(out, most))
        return weir__fail(err, WEIR_ENOMEM, "no memory to ask for a WebSocket");
    len = snprintf(head, sizeof head,
                   "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Protocol: ",
                   o->path, o->host, key);
    if (len > 0 && (size_t)len < sizeof head && weir__buf_add(out, head, (size_t)len) &&
        add_protocols(out, o->protocols) && add_text(out, "\r\n\r\n") &&
        out->len - before <= WEIR__KNOCK_REQUEST_MAX)
        return 0;
    return weir__fail(err, WEIR_EINVAL, "the request for a WebSocket is too long");
}

/* ---- the answer ---- */

static bool is_text(struct weir__bytes b, const char *text)
{
    return b.at && b.len == strlen(text) && memcmp(b.at, text, b.len) == 0;
}

static int deny(struct weir_error *err, const char *why)
{
    return weir__fail(err, WEIR_EUNREACHABLE, "the answer is no WebSocket's: %s", why);
}

/* Names of protocols are compared to the letter. */
static bool choose_protocol(struct weir__knock *k, const struct weir__http_answer *a)
{
    struct weir__bytes chosen = weir__http_answer_field(a, "sec-websocket-protocol");
    const char *const *p = k->protocols;

    while (*p && !is_text(chosen, *p)) p++;
    k->protocol = *p;
    return *p;
}

static int judge(struct weir__knock *k, const struct weir__http_answer *a, struct weir_error *err)
{
    if (a->status != 101)
        return weir__fail(err, WEIR_EUNREACHABLE, "asked for a WebSocket, it says %u %s", a->status,
                          weir__http_status_text(a->status));
    if (!weir__http_has_token(weir__http_answer_field(a, "upgrade"), "websocket"))
        return deny(err, "no Upgrade: websocket");
    if (!weir__http_has_token(weir__http_answer_field(a, "connection"), "upgrade"))
        return deny(err, "no Connection: Upgrade");
    if (!is_text(weir__http_answer_field(a, "sec-websocket-accept"), k->accept))
        return deny(err, "Sec-WebSocket-Accept is not the one of our key");
    if (weir__http_answer_field(a, "sec-websocket-extensions").at)
        return deny(err, "it uses an extension, and we offered none");
    if (!choose_protocol(k, a)) return deny(err, "it speaks none of the protocols that we offered");
    return 0;
}

int weir__knock_read(struct weir__knock *k, struct weir__bytes got, size_t *used,
                     struct weir_error *err)
{
    struct weir__http_refusal refusal;
    struct weir__http_answer answer;
    size_t len;

    *used = 0;
    if (!weir__http_head_end(got.at, got.len, &k->seen, &len, &refusal))
        return deny(err, refusal.text);
    if (len > WEIR__KNOCK_ANSWER_MAX || (len == 0 && got.len >= WEIR__KNOCK_ANSWER_MAX))
        return deny(err, "its head is too long");
    if (len == 0) return 0;
    if (!weir__http_answer_parse(&answer, got.at, len, &refusal)) return deny(err, refusal.text);
    *used = len;
    return judge(k, &answer, err);
}
