/* letter.c - poison events go to a hub of their own.
 *
 * A dead letter is the event as it was, key and all, with what it failed with and where it was as
 * four more properties, so that who mends the reason can send it back. A body that is not plain bytes
 * (enum weir_body) becomes the bytes it is encoded with: they can be published, and nothing is lost. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "processor/state.h"

#define SEND_MS 2000 /* then it is tried again, after a pause; stop may wait for it */
#define ADDED 4

static struct weir_property property(const char *name, struct weir_value value)
{
    return (struct weir_property){weir_text(name), value};
}

int weir__letter_send(struct weir_partition *p, const struct weir_event *e,
                      const struct weir_error *why, struct weir_error *err)
{
    struct weir_processor *x = p->processor;
    struct weir_event letter = *e;
    size_t count = e->property_count;
    struct weir_property *all = calloc(count + ADDED, sizeof *all);
    int rc;

    if (!all) return weir__fail(err, WEIR_ENOMEM, "no memory for a dead letter");
    if (count > 0) memcpy(all, e->properties, count * sizeof *all);
    all[count++] = property("weir-error", weir_value_text(why->text));
    all[count++] = property("weir-hub", weir_value_text(x->hub));
    all[count++] = property("weir-partition", weir_value_int(p->id));
    all[count++] = property("weir-sequence", weir_value_int((int64_t)e->sequence));
    letter.body_type = WEIR_BODY_DATA;
    letter.properties = all;
    letter.property_count = (uint32_t)count;
    rc = weir_producer_send(x->options.dead_letters, &letter, 1, SEND_MS, NULL, err);
    free(all);
    if (rc != 0)
        weir__wrap(err, rc, "event %" PRIu64 " of partition %" PRIu32 " to the dead letters",
                   e->sequence, p->id);
    return rc;
}
