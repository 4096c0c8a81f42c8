/* frame_fuzz.c - any bytes as frames, and their bodies as composites.
 *
 * A frame is read the same with any number of bytes behind it, and not before its last byte. What
 * reads as a composite can be written, and is the same when it is read again. */
#include "fuzz.h"

#include <stdlib.h>

#include "amqp/engine.h"
#include "amqp/frame.h"

#define FRAME_MAX 65536
#define LINE_BYTES 300
#define ALL_KINDS (WEIR__AMQP_KIND_SET(WEIR__AMQP_KINDS) - 1)

/* Writes a composite and reads it again. Reading puts defaults in the place of null, so what is
 * written is not always what was read; but from here on it stays. */
static void write_and_read(const struct weir__amqp_composite *c, struct weir__buf *buf,
                           struct weir__amqp_composite *again)
{
    struct weir__amqp_writer w;
    struct weir__amqp_cursor in;

    weir__amqp_writer_append(&w, buf);
    weir__amqp_composite_write(&w, c);
    ORACLE(weir__amqp_writer_finish(&w, NULL, NULL) == 0);
    in = weir__amqp_cursor_of(weir__buf_bytes(buf));
    ORACLE(weir__amqp_composite_read(&in, WEIR__AMQP_KIND_SET(c->kind), again, NULL) == 0);
    ORACLE(in.at == in.end && again->kind == c->kind);
}

static void try_composite(struct weir__bytes body)
{
    struct weir__amqp_cursor in = weir__amqp_cursor_of(body);
    struct weir__amqp_composite c, second, third;
    struct weir_error err = {0};
    struct weir__buf a, b;
    int rc = weir__amqp_composite_read(&in, ALL_KINDS, &c, &err);

    if (rc != 0) {
        ORACLE((rc == WEIR_ECORRUPT || rc == WEIR_EINVAL) && err.text[0]);
        return;
    }
    ORACLE(c.kind < WEIR__AMQP_KINDS && in.at <= in.end);
    weir__buf_init(&a, 2 * body.len + 256);
    weir__buf_init(&b, 2 * body.len + 256);
    write_and_read(&c, &a, &second);
    write_and_read(&second, &b, &third);
    ORACLE(a.len == b.len && memcmp(a.at, b.at, a.len) == 0);
    weir__buf_fini(&a);
    weir__buf_fini(&b);
}

static void try_dump(struct weir__bytes frame)
{
    char line[LINE_BYTES];

    for (size_t room = 1; room <= LINE_BYTES; room += LINE_BYTES - 1) {
        size_t len = weir__amqp_dump(frame, line, room);
        ORACLE(len < room && line[len] == '\0' && !memchr(line, '\n', len));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__bytes b = weir__bytes_of(at, len);
    struct weir__amqp_frame f, short_f;
    const char *why = NULL;

    try_composite(b);
    while (weir__amqp_frame_read(b, FRAME_MAX, &f, &why) == WEIR__AMQP_FRAME_WHOLE) {
        struct weir__bytes one = weir__bytes_of(b.at, f.size);
        ORACLE(f.size >= WEIR__AMQP_FRAME_HEAD && f.size <= b.len);
        ORACLE(f.body.at + f.body.len == b.at + f.size);
        ORACLE(weir__amqp_frame_read(one, f.size, &short_f, &why) == WEIR__AMQP_FRAME_WHOLE);
        one.len--;
        ORACLE(weir__amqp_frame_read(one, f.size, &short_f, &why) == WEIR__AMQP_FRAME_PART);
        one.len++;
        try_dump(one);
        try_composite(f.body);
        b.at += f.size;
        b.len -= f.size;
    }
    try_dump(b);
    return 0;
}
