#include "client/weir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/connstr.h"

/* The one thing that belongs to a thread and to no object: how deep it is in completions. */
static _Thread_local unsigned completing;

void weir__completing_begin(void)
{
    completing++;
}

void weir__completing_end(void)
{
    completing--;
}

int weir__completing_refuse(const char *call, struct weir_error *err)
{
    if (completing == 0) return 0;
    return weir__fail(err, WEIR_EDEADLOCK, "%s inside a completion would wait for itself", call);
}

const char *weir_version(void)
{
    return WEIR_VERSION;
}

const char *weir_event_offset_text(const struct weir_event *e, char out[WEIR_OFFSET_TEXT_BYTES])
{
    snprintf(out, WEIR_OFFSET_TEXT_BYTES, "%" PRIu64, e->offset);
    return out;
}

int weir_open(struct weir **out, const char *where, const struct weir_options *options,
              struct weir_error *err)
{
    struct weir_options o;
    struct weir *w;
    int rc = weir__options_copy(&o, sizeof o, options, err);

    *out = NULL;
    if (rc != 0) return rc;
    if (!where || !*where) return weir__fail(err, WEIR_EINVAL, "opening: no folder was named");
    w = calloc(1, sizeof *w);
    if (!w) return weir__fail(err, WEIR_ENOMEM, "opening: no memory");
    if (weir__connstr_is(where))
        rc = weir__wire_open(&w->backend, where, &o, err);
    else
        rc = weir__folder_open(&w->backend, where, &o, err);
    if (rc != 0) {
        free(w);
        return rc;
    }
    *out = w;
    return 0;
}

int weir_space(struct weir *w, char out[WEIR_SPACE_BYTES], struct weir_error *err)
{
    int rc = weir__completing_refuse("weir_space", err);

    if (rc != 0) return rc;
    return w->backend->ops->space(w->backend, out, err);
}

int weir_close(struct weir *w, struct weir_error *err)
{
    unsigned users;
    int rc = weir__completing_refuse("weir_close", err);

    if (!w) return 0;
    if (rc != 0) return rc;
    users = atomic_load(&w->users);
    if (users > 0)
        return weir__fail(err, WEIR_EBUSY, "closing: %u producers and receivers are open", users);
    rc = w->backend->ops->close(w->backend, err);
    free(w);
    return rc;
}
