/* selector.h - where a receiver wants to begin, as clients write it: one comparison of one
 * annotation.
 *
 *   amqp.annotation.x-opt-offset > '-1'
 *   amqp.annotation.x-opt-offset >'123'              no space, as C++ has it
 *   amqp.annotation.x-opt-sequence-number >= 123     no quotes, as .NET has it
 *   amqp.annotation.x-opt-enqueued-time > '1700000000000'
 *   amqp.annotation.x-opt-offset > '@latest'
 *   amqp.annotation.x-opt-offset > ''                before the first: C++, before it has seen one
 *
 * Pure. */
#ifndef WEIR_SERVER_SELECTOR_H
#define WEIR_SERVER_SELECTOR_H

#include "hub/position.h"

#define WEIR__SELECTOR_BYTES_MAX 512

/* WEIR_EINVAL names what was expected, and where. */
int weir__selector_parse(struct weir__bytes text, struct weir__position *out, struct weir_error *);

#endif
