/* stored.h - a stored batch as it goes over a wire: a head, and the body as it lies in the log. The
 * head is drawn in stored.c; docs/decisions/0010 says why. Both ends are here, so that they agree.
 *
 * No locks and no I/O. */
#ifndef WEIR_HUB_STORED_H
#define WEIR_HUB_STORED_H

#include "log/log.h"

#define WEIR__STORED_CAPABILITY "weir:stored-batches"
#define WEIR__STORED_FORMAT 0x57454901u /* of a message: "WEI", version 1 */
#define WEIR__STORED_HEAD_BYTES 48u
#define WEIR__STORED_FACTS_BYTES 32u /* more, when the facts of the partition come with it */

/* What is newest in the partition. */
struct weir__stored_facts {
    int64_t last_sequence, last_offset, last_time_ms;
    int64_t known_ms; /* when that was so; 0: not told */
};

/* Whether it can go over the wire: its attributes are those of this version. */
bool weir__stored_can(const struct weir__log_view *);

/* Writes the head of a batch, behind which its body belongs; facts may be NULL. Returns the head's
 * length, which is as above. */
size_t weir__stored_head(uint8_t *to, const struct weir__log_view *,
                         const struct weir__stored_facts *facts);

/* Checks a whole payload, whoever sent it: lengths, counts and both checksums. WEIR_ECORRUPT, or
 * WEIR_EVERSION for attributes of a later version. */
int weir__stored_check(struct weir__bytes payload, struct weir_error *);

/* The batch in a payload that was checked. The body is borrowed; a view's producer is not told. */
void weir__stored_view(struct weir__bytes payload, struct weir__log_view *out);

/* Those of a payload that was checked; known_ms is 0 when it has none. */
struct weir__stored_facts weir__stored_facts(struct weir__bytes payload);

#endif
