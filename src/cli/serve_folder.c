/* serve_folder.c - the folder that is served, which somebody else may have at the moment.
 *
 * A server that comes back after an outage often finds a short command there, like a 'weir send' of a
 * cron job, that took the folder because nobody served it. It waits for that one a little. Another
 * server does not go by itself, so it does not wait for that. */
#include <poll.h>

#include "base/thread.h"
#include "cli/folder.h"
#include "cli/serve.h"
#include "cli/serving.h"
#include "cli/stop.h"

#define LOCK_WAIT_MS 5000 /* for a short command to end */
#define LOCK_TRY_MS 50    /* between two tries */

static bool is_served(const char *dir)
{
    struct weir__serving sign;
    struct weir_error err;

    return weir__serving_read(dir, &sign, &err) == 0;
}

/* false: it is not worth another try. */
static bool wait_for_holder(const char *dir, int64_t deadline_ns, const struct weir__stop *stop)
{
    struct pollfd fd = {.fd = weir__stop_fd(stop), .events = POLLIN};

    if (weir__mono_ns() >= deadline_ns || weir__stop_asked(stop) || is_served(dir)) return false;
    poll(&fd, 1, LOCK_TRY_MS);
    return true;
}

static int open_when_free(struct weir__serve *s, const char *dir,
                          const struct weir__namespace_options *options,
                          const struct weir__stop *stop, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(LOCK_WAIT_MS);
    bool told = false;
    int rc;

    while ((rc = weir__namespace_open(&s->ns, dir, options, err)) == WEIR_ELOCKED &&
           wait_for_holder(dir, deadline_ns, stop)) {
        if (!told)
            weir__log_line(&s->warnings.logger, WEIR__WARN, "serve",
                           "%s; waiting up to %d s for its end", err->text, LOCK_WAIT_MS / 1000);
        told = true;
    }
    return rc;
}

int weir__serve_open_folder(struct weir__serve *s, const char *dir,
                            const struct weir__namespace_options *options,
                            const struct weir__stop *stop, struct weir_error *err)
{
    const char *doubt = weir__folder_doubt(dir);
    int rc = weir__folder_check(dir, err);

    if (doubt) weir__warn(&s->warnings, "%s", doubt);
    return rc == 0 ? open_when_free(s, dir, options, stop, err) : rc;
}
