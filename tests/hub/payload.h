/* payload.h - messages as a client sends them, put together byte by byte so that the room's own
 * writer is not asked to judge itself. */
#ifndef WEIR_TESTS_HUB_PAYLOAD_H
#define WEIR_TESTS_HUB_PAYLOAD_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define PAYLOAD_MAX 65536

struct payload {
    uint8_t at[PAYLOAD_MAX];
    size_t len;
};

static inline struct weir__bytes payload_bytes(const struct payload *p)
{
    return weir__bytes_of(p->at, p->len);
}

static inline void payload_raw(struct payload *p, const void *at, size_t len)
{
    assert(len <= sizeof p->at - p->len);
    memcpy(p->at + p->len, at, len);
    p->len += len;
}

/* message-annotations { x-opt-partition-key: key } */
static inline void payload_key(struct payload *p, const char *key)
{
    static const char name[] = "x-opt-partition-key";
    uint8_t name_len = sizeof name - 1, key_len = (uint8_t)strlen(key);
    const uint8_t head[] = {0x00, 0x53, 0x72,    0xc1, (uint8_t)(1 + 2 + name_len + 2 + key_len),
                            2,    0xa3, name_len};

    payload_raw(p, head, sizeof head);
    payload_raw(p, name, name_len);
    payload_raw(p, (const uint8_t[]){0xa1, key_len}, 2);
    payload_raw(p, key, key_len);
}

/* data section, short or long form */
static inline void payload_data(struct payload *p, const void *at, size_t len)
{
    const uint8_t small[] = {0x00, 0x53, 0x75, 0xa0, (uint8_t)len};
    const uint8_t large[] = {0x00,
                             0x53,
                             0x75,
                             0xb0,
                             (uint8_t)(len >> 24),
                             (uint8_t)(len >> 16),
                             (uint8_t)(len >> 8),
                             (uint8_t)len};

    if (len <= 255)
        payload_raw(p, small, sizeof small);
    else
        payload_raw(p, large, sizeof large);
    payload_raw(p, at, len);
}

/* A message whose body is "<text> <n>", empty properties before it as JavaScript has them. */
static inline void payload_event(struct payload *p, const char *text, int n)
{
    char body[2048];
    int len = snprintf(body, sizeof body, "%s %d", text, n);

    assert(len >= 0 && (size_t)len < sizeof body);
    payload_raw(p, (const uint8_t[]){0x00, 0x53, 0x73, 0x45}, 4);
    payload_data(p, body, (size_t)len);
}

/* A batch: an envelope with a key (NULL: none) and empty properties, and events. */
static inline void payload_batch(struct payload *p, const char *key, const char *text, int count)
{
    struct payload event;

    p->len = 0;
    if (key) payload_key(p, key);
    payload_raw(p, (const uint8_t[]){0x00, 0x53, 0x73, 0x45}, 4);
    for (int i = 0; i < count; i++) {
        event.len = 0;
        payload_event(&event, text, i);
        payload_data(p, event.at, event.len);
    }
}

#endif
