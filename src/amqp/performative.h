/* performative.h - what frames say: the nine performatives, SASL's five, and what they contain.
 *
 * AMQP calls each a composite: a descriptor and a list of fields, each field with a name, a type,
 * perhaps a default, perhaps mandatory. All of that is one table in performative.c; reading,
 * writing and printing are three loops over it.
 *
 * A composite in memory is a row of values, one for each field, under the names of the
 * specification: c.open.max_frame_size.u. A field that is null is absent; reading puts defaults in
 * their place, writing leaves null as null and writes every field to the last, because clients in
 * use count on positions. Everything is borrowed. */
#ifndef WEIR_AMQP_PERFORMATIVE_H
#define WEIR_AMQP_PERFORMATIVE_H

#include "amqp/codec.h"
#include "amqp/writer.h"
#include "base/error.h"

enum weir__amqp_kind {
    WEIR__AMQP_OPEN,
    WEIR__AMQP_BEGIN,
    WEIR__AMQP_ATTACH,
    WEIR__AMQP_FLOW,
    WEIR__AMQP_TRANSFER,
    WEIR__AMQP_DISPOSITION,
    WEIR__AMQP_DETACH,
    WEIR__AMQP_END,
    WEIR__AMQP_CLOSE,
    WEIR__AMQP_SASL_MECHANISMS,
    WEIR__AMQP_SASL_INIT,
    WEIR__AMQP_SASL_CHALLENGE,
    WEIR__AMQP_SASL_RESPONSE,
    WEIR__AMQP_SASL_OUTCOME,
    WEIR__AMQP_ERROR,
    WEIR__AMQP_RECEIVED,
    WEIR__AMQP_ACCEPTED,
    WEIR__AMQP_REJECTED,
    WEIR__AMQP_RELEASED,
    WEIR__AMQP_MODIFIED,
    WEIR__AMQP_SOURCE,
    WEIR__AMQP_TARGET,
    WEIR__AMQP_COORDINATOR,
    WEIR__AMQP_KINDS
};

/* Sets of kinds, for "one of these is wanted here". */
#define WEIR__AMQP_KIND_SET(kind) (1u << (kind))
#define WEIR__AMQP_PERFORMATIVES (WEIR__AMQP_KIND_SET(WEIR__AMQP_CLOSE + 1) - 1)
#define WEIR__AMQP_SASL_FRAMES                                                                     \
    (WEIR__AMQP_KIND_SET(WEIR__AMQP_SASL_OUTCOME + 1) - 1 - WEIR__AMQP_PERFORMATIVES)
#define WEIR__AMQP_OUTCOMES                                                                        \
    (WEIR__AMQP_KIND_SET(WEIR__AMQP_ACCEPTED) | WEIR__AMQP_KIND_SET(WEIR__AMQP_REJECTED) |         \
     WEIR__AMQP_KIND_SET(WEIR__AMQP_RELEASED) | WEIR__AMQP_KIND_SET(WEIR__AMQP_MODIFIED))

#define WEIR__AMQP_FIELDS_MAX 14

struct weir__amqp_composite {
    enum weir__amqp_kind kind;
    union {
        struct weir__amqp_value field[WEIR__AMQP_FIELDS_MAX];
        struct {
            struct weir__amqp_value container_id, hostname, max_frame_size, channel_max,
                idle_time_out, outgoing_locales, incoming_locales, offered_capabilities,
                desired_capabilities, properties;
        } open;
        struct {
            struct weir__amqp_value remote_channel, next_outgoing_id, incoming_window,
                outgoing_window, handle_max, offered_capabilities, desired_capabilities, properties;
        } begin;
        struct {
            struct weir__amqp_value name, handle, role, snd_settle_mode, rcv_settle_mode, source,
                target, unsettled, incomplete_unsettled, initial_delivery_count, max_message_size,
                offered_capabilities, desired_capabilities, properties;
        } attach;
        struct {
            struct weir__amqp_value next_incoming_id, incoming_window, next_outgoing_id,
                outgoing_window, handle, delivery_count, link_credit, available, drain, echo,
                properties;
        } flow;
        struct {
            struct weir__amqp_value handle, delivery_id, delivery_tag, message_format, settled,
                more, rcv_settle_mode, state, resume, aborted, batchable;
        } transfer;
        struct {
            struct weir__amqp_value role, first, last, settled, state, batchable;
        } disposition;
        struct {
            struct weir__amqp_value handle, closed, error;
        } detach;
        struct {
            struct weir__amqp_value error;
        } end, close, rejected;
        struct {
            struct weir__amqp_value mechanisms;
        } sasl_mechanisms;
        struct {
            struct weir__amqp_value mechanism, initial_response, hostname;
        } sasl_init;
        struct {
            struct weir__amqp_value code, additional_data;
        } sasl_outcome;
        struct {
            struct weir__amqp_value condition, description, info;
        } error;
        struct {
            struct weir__amqp_value address, durable, expiry_policy, timeout, dynamic,
                dynamic_node_properties, distribution_mode, filter, default_outcome, outcomes,
                capabilities;
        } source;
        struct {
            struct weir__amqp_value address, durable, expiry_policy, timeout, dynamic,
                dynamic_node_properties, capabilities;
        } target;
    };
};

/* Role as the wire says it: true is the receiver. */
#define WEIR__AMQP_SENDER false
#define WEIR__AMQP_RECEIVER true

/* Settle modes of senders and receivers. */
enum { WEIR__AMQP_SEND_UNSETTLED, WEIR__AMQP_SEND_SETTLED, WEIR__AMQP_SEND_MIXED };
enum { WEIR__AMQP_RECEIVE_FIRST, WEIR__AMQP_RECEIVE_SECOND };

/* A composite of this kind with every field null. */
void weir__amqp_composite_init(struct weir__amqp_composite *, enum weir__amqp_kind);

/* Reads the composite at the cursor, one of a set of kinds, and everything within it is examined.
 * WEIR_ECORRUPT: these bytes are no composite (the condition amqp:decode-error). WEIR_EINVAL: a
 * field has a wrong type or is missing (amqp:invalid-field); the text names it. */
int weir__amqp_composite_read(struct weir__amqp_cursor *, uint32_t set,
                              struct weir__amqp_composite *out, struct weir_error *);

/* The same for a composite that is a field of another: a source, an error, a state. */
int weir__amqp_composite_of(const struct weir__amqp_value *, uint32_t set,
                            struct weir__amqp_composite *out, struct weir_error *);

/* Writes descriptor and all fields. */
void weir__amqp_composite_write(struct weir__amqp_writer *, const struct weir__amqp_composite *);

/* Writes into the caller's memory and gives the value that can be a field of another composite;
 * null when there is not enough room. */
struct weir__amqp_value weir__amqp_composite_value(const struct weir__amqp_composite *, uint8_t *to,
                                                   size_t room);

/* "attach", and the name of one of its fields; for messages and dumps. */
const char *weir__amqp_kind_name(enum weir__amqp_kind);
unsigned weir__amqp_kind_fields(enum weir__amqp_kind);
const char *weir__amqp_field_name(enum weir__amqp_kind, unsigned field);

#endif
