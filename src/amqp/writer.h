/* writer.h - writing AMQP 1.0 values, each in its smallest form.
 *
 * A writer fills the caller's memory, or appends to a struct weir__buf and lets it grow. The first
 * failure (no room, a number too large for its type) sticks; finish reports it once. A buf must not
 * be used between append and finish. */
#ifndef WEIR_AMQP_WRITER_H
#define WEIR_AMQP_WRITER_H

#include "amqp/codec.h"
#include "base/buf.h"
#include "base/error.h"

/* The most that a value's constructor, size and count take. */
#define WEIR__AMQP_VALUE_HEAD_MAX 9

struct weir__amqp_writer {
    uint8_t *start; /* of the memory; with a buf, of the buf */
    uint8_t *at;
    uint8_t *end;
    struct weir__buf *buf; /* NULL: the memory is the caller's and does not grow */
    size_t first;          /* where in the memory our bytes begin */
    int code;              /* 0 or why writing stopped */
    const char *why;
};

void weir__amqp_writer_init(struct weir__amqp_writer *, void *to, size_t room);
void weir__amqp_writer_append(struct weir__amqp_writer *, struct weir__buf *);

/* Gives what was written, and with a buf makes it part of it. WEIR_ETOOBIG when the memory did not
 * suffice, WEIR_EINVAL when a value cannot be written: a buf is then as long as it was. */
int weir__amqp_writer_finish(struct weir__amqp_writer *, struct weir__bytes *out,
                             struct weir_error *);

/* Any value. The bytes of a list, map, array or described value are copied as they are. */
void weir__amqp_put(struct weir__amqp_writer *, struct weir__amqp_value);

/* Bytes that are encoded already. */
void weir__amqp_put_raw(struct weir__amqp_writer *, struct weir__bytes);

/* A descriptor: 00 and a ulong. The value it describes is put next. */
void weir__amqp_put_descriptor(struct weir__amqp_writer *, uint64_t code);

/* A list or map around what is put between open and close; count is the number of items, for a
 * map the keys and the values. The mark that open returns goes to close. */
size_t weir__amqp_put_open(struct weir__amqp_writer *);
void weir__amqp_put_close(struct weir__amqp_writer *, size_t mark, enum weir__amqp_type,
                          uint32_t count);

/* An array of strings, of symbols or of binaries. */
void weir__amqp_put_array(struct weir__amqp_writer *, enum weir__amqp_type,
                          const struct weir__bytes *items, uint32_t count);

#endif
