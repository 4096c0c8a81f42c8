/* serve_reload.c - SIGHUP: what lies in files is read again, and nobody is disconnected.
 *
 *   --tls-certificate, --tls-key, --tls-client-ca, or the local authority's   for new connections
 *   --jwks                                                                for every connection
 *   --config                                                                hubs and groups that are new
 *
 * Each stands for itself: what is bad stays as it was, and a line of the log says why. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "cli/config.h"
#include "cli/serve.h"

#define STATE_BYTES 64

static int read_config(struct weir__serve *s, struct weir_error *err)
{
    struct weir__wanted *wanted = calloc(1, sizeof *wanted);
    int rc;

    if (!wanted) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    rc = weir__config_read(s->o.config, wanted, &s->warnings, err);
    if (rc == 0) rc = weir__wanted_make(wanted, s->ns, err);
    weir__wanted_fini(wanted);
    free(wanted);
    return rc;
}

static bool has_tls(const struct weir__serve *s)
{
    return s->tls != NULL;
}

static bool has_issuer(const struct weir__serve *s)
{
    return s->issuer.keys != NULL;
}

static bool has_config(const struct weir__serve *s)
{
    return s->o.config != NULL;
}

static const struct {
    const char *what;
    bool (*there)(const struct weir__serve *);
    int (*read)(struct weir__serve *, struct weir_error *);
} files[] = {
    {"the certificate", has_tls, weir__serve_renew_tls},
    {"the issuer's key set", has_issuer, weir__serve_renew_issuer},
    {"the configuration", has_config, read_config},
};

void weir__serve_reload(struct weir__serve *s)
{
    const struct weir__logger *log = &s->warnings.logger;
    char state[STATE_BYTES];
    struct weir_error err;

    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, weir__mono_ns() / 1000);
    weir__serve_notify(s, state);
    weir__log_line(log, WEIR__INFO, "serve", "SIGHUP: files are read again");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (!files[i].there(s)) continue;
        if (files[i].read(s, &err) == 0)
            weir__log_line(log, WEIR__INFO, "serve", "%s was read again", files[i].what);
        else
            weir__log_line(log, WEIR__ERROR, "serve", "%s stays as it was: %s", files[i].what,
                           err.text);
    }
    weir__serve_notify(s, "READY=1");
}
