/* parse_event.h - a line of JSON as an event: what weir__json_event prints, read back. */
#ifndef WEIR_CLI_PARSE_EVENT_H
#define WEIR_CLI_PARSE_EVENT_H

#include "base/bytes.h"
#include "base/error.h"
#include "weir/event.h"

#define WEIR__PARSE_PROPERTIES_MAX 64u

/* An event and what it points to. Zeroed at first; may be used for one line after the other. */
struct weir__parsed_event {
    struct weir_event event;
    struct weir_property properties[WEIR__PARSE_PROPERTIES_MAX];
    struct weir_system_properties system;
    char *text; /* of strings, one behind another */
    size_t text_max;
};

/* {"body":"..."} is enough; "body_base64" instead, "key", "properties" and "system_properties" may be
 * there. What the hub itself gives (partition, sequence, offset, enqueued_time) is passed over. The
 * line is not needed afterwards. WEIR_EINVAL says what is wrong with it; WEIR_ENOMEM. */
int weir__parse_event(struct weir__parsed_event *, struct weir__bytes line, struct weir_error *);
void weir__parse_event_fini(struct weir__parsed_event *);

#endif
