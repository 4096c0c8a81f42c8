/* json.h - an event as one line of strict JSON. */
#ifndef WEIR_CLI_JSON_H
#define WEIR_CLI_JSON_H

#include <stdio.h>

#include "weir/event.h"

/* {"partition":"3","sequence":41,"offset":"1000000000004711",
 *  "enqueued_time":"2026-01-31T08:30:00.125Z","key":"home-7","body":"...","properties":{...}}
 *
 * on one line, with its newline. key is null when there is none. A body that is not UTF-8 text is
 * "body_base64" instead. "body_type" stands before the body when it is not plain data: "value",
 * "sequence" or "unreadable". "system_properties":{...} comes last, when there are any. Properties
 * keep their kind: numbers, true, false, null and text; times are text like the above, UUIDs text,
 * binary and whatever JSON has no word for is base64. Bytes that are not UTF-8 in names and text
 * become U+FFFD. */
void weir__json_event(FILE *, const struct weir_event *);

/* Its members behind the partition, each with a comma before it: for who has more to say. */
void weir__json_members(FILE *, const struct weir_event *);

/* A string with its quotes. */
void weir__json_text(FILE *, struct weir_bytes);

#endif
