/* message.h - the sections of an AMQP 1.0 message.
 *
 * A message is a row of sections, each a descriptor (00 53 7x) and a value, by AMQP in this order:
 *
 *   70 header                  list     what senders and brokers agree on
 *   71 delivery-annotations    map      for the next hop only
 *   72 message-annotations     map      x-opt-partition-key, x-opt-offset and so on
 *   73 properties              list     message-id, content-type and eleven more
 *   74 application-properties  map      the user's own
 *   75 data                    binary   the body: one or many of these (null, as the JavaScript
 *                                       client writes it for no body, counts as empty),
 *   76 sequence                list     or of these,
 *   77 value                   any      or one of these; no body at all is let pass
 *   78 footer                  map
 *
 * Senders do not all keep to the order: rhea writes the footer before the body, Azure's Python client
 * its delivery-annotations last. Each section is taken once at any place; only the sections of a body
 * stand side by side.
 *
 * Events are kept as they came. Scanning finds the sections, composing puts the hub's annotations
 * among them for delivery, and neither copies nor looks at the body. */
#ifndef WEIR_AMQP_MESSAGE_H
#define WEIR_AMQP_MESSAGE_H

#include "amqp/codec.h"
#include "amqp/writer.h"
#include "base/error.h"

/* The message-format of a transfer that carries a batch of events; 0 is one event. */
#define WEIR__AMQP_FORMAT_BATCH 0x80013700u

enum weir__amqp_section {
    WEIR__AMQP_HEADER,
    WEIR__AMQP_DELIVERY_ANNOTATIONS,
    WEIR__AMQP_MESSAGE_ANNOTATIONS,
    WEIR__AMQP_PROPERTIES,
    WEIR__AMQP_APPLICATION_PROPERTIES,
    WEIR__AMQP_BODY, /* all sections of the body */
    WEIR__AMQP_FOOTER,
    WEIR__AMQP_SECTIONS
};

enum weir__amqp_body {
    WEIR__AMQP_BODY_NONE,
    WEIR__AMQP_BODY_DATA,
    WEIR__AMQP_BODY_SEQUENCE,
    WEIR__AMQP_BODY_VALUE
};

/* A section lies at [at, end), its value at [value, end). end is 0 when there is none. */
struct weir__amqp_span {
    uint32_t at, value, end;
};

struct weir__amqp_message {
    struct weir__bytes raw; /* borrowed */
    struct weir__amqp_span section[WEIR__AMQP_SECTIONS];
    uint32_t there;       /* a bit for each section that is there: 1u << WEIR__AMQP_HEADER ... */
    uint32_t before_body; /* those that were there when the body began */
    enum weir__amqp_body body;
    uint32_t body_count;     /* sections in the body */
    struct weir__bytes data; /* the first data section's content; at is not NULL when it is there */
};

enum weir__amqp_depth {
    WEIR__AMQP_SHALLOW, /* types and bounds of the sections, and that none comes twice */
    WEIR__AMQP_DEEP     /* also everything inside them, within the limits of codec.h, and the types
                           of the properties */
};

/* Finds the sections of one message. WEIR_EINVAL says what is wrong and at which byte. */
int weir__amqp_message_scan(struct weir__amqp_message *, struct weir__bytes raw,
                            enum weir__amqp_depth, struct weir_error *);

/* Finds the sections before the first that is this one or, by AMQP's order, a later one, and leaves
 * rest at what follows them, unread. A footer does not count as later than the body. */
int weir__amqp_message_scan_until(struct weir__amqp_message *, struct weir__bytes raw,
                                  enum weir__amqp_section, struct weir__amqp_cursor *rest,
                                  struct weir_error *);

/* Whether raw is a message, as a deep scan would find, for who needs nothing of it but the value of
 * its message-annotations; annotations->at is NULL when it has none. Several times as fast. */
int weir__amqp_message_check(struct weir__bytes raw, struct weir__bytes *annotations,
                             struct weir_error *);

/* Whether all sections are in their usual forms, and none of them is a header or annotations, so that
 * annotations can be put in front of them. Not whether they are good otherwise. */
bool weir__amqp_message_is_late(struct weir__bytes raw);

/* Walks the data sections of a message: the events of a batch, or the parts of a body. */
struct weir__amqp_batch_walk {
    struct weir__amqp_message envelope; /* its sections before the body; body_count: so far */
    struct weir__amqp_cursor rest;
};

/* Reads up to the first section of the body. */
int weir__amqp_batch_start(struct weir__amqp_batch_walk *, struct weir__bytes raw,
                           struct weir_error *);

/* The content of the next data section; out->at is NULL after the last. A body that is not data
 * is WEIR_EINVAL. */
int weir__amqp_batch_next(struct weir__amqp_batch_walk *, struct weir__bytes *out,
                          struct weir_error *);

/* The contents of sections that come next, up to max of them, as weir__amqp_batch_next gives them,
 * while nothing about them is unusual; how many they were. It may stop before any. */
uint32_t weir__amqp_batch_some(struct weir__amqp_batch_walk *, struct weir__bytes *out,
                               uint32_t max);

/* Passes over events, as weir__amqp_batch_next and weir__amqp_message_check would, while nothing in
 * them is unusual, and says how many they were. It may stop before any event. */
uint32_t weir__amqp_batch_pass(struct weir__amqp_batch_walk *);

/* The head of a data section, for who builds a batch; the content follows by the caller's hand.
 * Returns the head's length. */
#define WEIR__AMQP_DATA_HEAD_MAX 8
size_t weir__amqp_data_head(uint8_t to[WEIR__AMQP_DATA_HEAD_MAX], uint32_t content_bytes);

/* The properties section. A field that is null is absent. */
struct weir__amqp_properties {
    struct weir__amqp_value message_id; /* ulong, uuid, binary or string; correlation_id too */
    struct weir__amqp_value user_id;    /* binary */
    struct weir__amqp_value to;
    struct weir__amqp_value subject;
    struct weir__amqp_value reply_to;
    struct weir__amqp_value correlation_id;
    struct weir__amqp_value content_type; /* symbol, as content_encoding */
    struct weir__amqp_value content_encoding;
    struct weir__amqp_value absolute_expiry_time; /* timestamp, as creation_time */
    struct weir__amqp_value creation_time;
    struct weir__amqp_value group_id;
    struct weir__amqp_value group_sequence; /* uint */
    struct weir__amqp_value reply_to_group_id;
};

/* An annotation (a symbol) or an application property (a string) and its value. */
struct weir__amqp_pair {
    struct weir__bytes name;
    struct weir__amqp_value value;
};

/* What a message is built from; zeroed members are left out, data is always there. */
struct weir__amqp_content {
    const struct weir__amqp_properties *properties;
    const struct weir__amqp_pair *annotations;
    const struct weir__amqp_pair *application_properties;
    uint32_t annotation_count;
    uint32_t application_property_count;
    struct weir__bytes data;
};

/* Never less than what weir__amqp_message_write will write. */
size_t weir__amqp_message_bound(const struct weir__amqp_content *);

/* Writes one message. WEIR_EINVAL names the property that has a type it may not have; the writer
 * may then hold a part of the message. A writer's own failure shows when it is finished. */
int weir__amqp_message_write(struct weir__amqp_writer *, const struct weir__amqp_content *,
                             struct weir_error *);

/* The fields of the properties section; borrowed. No section gives no fields. out may be NULL, to
 * have them checked only. */
int weir__amqp_message_properties(const struct weir__amqp_message *,
                                  struct weir__amqp_properties *out, struct weir_error *);

/* The map that is an annotations, application-properties or footer section, to walk with
 * weir__amqp_items_pair or to ask with weir__amqp_map_find. No section is an empty map. */
struct weir__amqp_value weir__amqp_message_map(const struct weir__amqp_message *,
                                               enum weir__amqp_section);

/* What the hub adds to an event when it delivers it. Kept from one event of a stream to the next it
 * saves work. */
struct weir__amqp_stamp {
    int64_t sequence;
    int64_t enqueued_ms;
    uint64_t offset;                         /* a text on the wire */
    struct weir__bytes partition_key;        /* at NULL: none; the sender's own key wins */
    struct weir__bytes delivery_annotations; /* an encoded section, or empty */
    uint64_t digits_of;                      /* composing's own: the offset before, and its text */
    uint64_t digits[2];
};

#define WEIR__AMQP_STAMP_BYTES 176 /* the most that our annotations take, but for what is given */

/* Room enough to compose an event of stored_bytes with this stamp. */
static inline size_t weir__amqp_compose_bound(size_t stored_bytes,
                                              const struct weir__amqp_stamp *stamp)
{
    return stored_bytes + stamp->delivery_annotations.len + stamp->partition_key.len +
           WEIR__AMQP_STAMP_BYTES;
}

/* The event as a receiver gets it: the stamp's delivery annotations, message annotations with
 * x-opt-sequence-number-epoch, x-opt-sequence-number, x-opt-offset, x-opt-enqueued-time and the key at
 * the end (the sender's under the first four names are dropped), then the other sections untouched,
 * without the header. The sender's delivery annotations come before the message annotations, as AMQP
 * has it, unless they stood behind other sections: then they stay there. Those of the stamp follow
 * them, in one section.
 * to must not overlap stored. WEIR_EINVAL when those sections are broken, WEIR_ETOOBIG when room
 * is less than the bound. */
int weir__amqp_compose(struct weir__bytes stored, struct weir__amqp_stamp *, uint8_t *to,
                       size_t room, size_t *out_bytes, struct weir_error *);

#endif
