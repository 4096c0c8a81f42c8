#include <stdio.h>

#include "base/clock.h"
#include "cli/exit.h"
#include "cli/serve.h"
#include "cli/trust.h"
#include "io/authority.h"

/* ---- certificates ---- */

/* "127.0.0.78:5671" without its port; "" when there is nothing like that. */
static const char *host_of(const char *listens, char out[64])
{
    size_t len = listens ? strcspn(listens, ":") : 0;

    snprintf(out, 64, "%.*s", len < 64 ? (int)len : 0, listens ? listens : "");
    return out;
}

/* With the addresses at which TLS is spoken. */
static int ensure_authority(const struct weir__serve *s, const char *dir,
                            struct weir__authority *out, struct weir_error *err)
{
    struct weir__clock clock = weir__clock_system();
    int64_t now_ms = clock.wall_ms(clock.self);
    char host[64];
    int rc = weir__authority_ensure_for(out, dir, host_of(s->o.amqps, host), now_ms, err);

    return rc == 0 ? weir__authority_ensure_for(out, dir, host_of(s->o.https, host), now_ms, err)
                   : rc;
}

/* The machine's own, which 'weir trust' makes known to clients. Without --amqps it is a courtesy:
 * what goes wrong with it does not keep the server from starting. */
static int use_authority(struct weir__serve *s, struct weir__authority *out, struct weir_error *err)
{
    char dir[WEIR__AUTHORITY_PATH_MAX];
    int rc = weir__trust_folder(s->o.authority, dir, err);

    if (rc == 0) rc = ensure_authority(s, dir, out, err);
    s->own_authority = rc == 0;
    if (rc == 0 || s->o.amqps_given || s->o.https) return rc;
    weir__warn(&s->warnings, "no TLS: %.400s", err->text);
    s->o.amqps = NULL;
    return 0;
}

static struct weir__tls_options tls_options(const struct weir__serve *s,
                                            const struct weir__authority *own)
{
    return (struct weir__tls_options){.certificate_file = s->o.certificate ? s->o.certificate
                                                                           : own->certificate_file,
                                      .key_file = s->o.certificate ? s->o.key : own->key_file,
                                      .authorities_file = s->o.client_ca,
                                      .ask_certificate = s->o.client_ca != NULL};
}

int weir__serve_open_tls(struct weir__serve *s, struct weir_error *err)
{
    struct weir__tls_options options;
    struct weir__authority authority;
    int rc = 0;

    if (!s->o.certificate != !s->o.key)
        return weir__fail(err, WEIR_EINVAL, "--tls-certificate and --tls-key belong together");
    if (!s->o.amqps && !s->o.https) return 0;
    if (!s->o.certificate) rc = use_authority(s, &authority, err);
    if (rc != 0 || (!s->o.amqps && !s->o.https)) return rc;
    options = tls_options(s, &authority);
    return weir__tls_context_new(&s->tls, &options, err);
}

int weir__serve_renew_tls(struct weir__serve *s, struct weir_error *err)
{
    char dir[WEIR__AUTHORITY_PATH_MAX];
    struct weir__tls_options options;
    struct weir__authority authority;
    int rc = 0;

    if (!s->o.certificate) rc = weir__trust_folder(s->o.authority, dir, err);
    if (rc == 0 && !s->o.certificate) rc = ensure_authority(s, dir, &authority, err);
    if (rc != 0) return rc;
    options = tls_options(s, &authority);
    return weir__tls_context_renew(s->tls, &options, err);
}

/* ---- ports ---- */

static bool is_about(const struct weir_error *err, const char *address)
{
    static const char before[] = "listening on ";
    size_t len = strlen(address);

    return strncmp(err->text, before, sizeof before - 1) == 0 &&
           strncmp(err->text + sizeof before - 1, address, len) == 0 &&
           err->text[sizeof before - 1 + len] == ':';
}

/* Whether the error is a default port that is taken: then it is gone without. */
static bool do_without(struct weir__serve *s, const char **address, bool given,
                       const struct weir_error *err)
{
    if (!*address || given || !is_about(err, *address)) return false;
    weir__warn(&s->warnings, "%s; going on without it", err->text);
    *address = NULL;
    return true;
}

int weir__serve_listen(struct weir__serve *s, struct weir_error *err)
{
    for (;;) { /* at most once for each port that can be done without */
        struct weir__server_options options = {
            .ns = s->ns,
            .amqp = s->o.amqp,
            .amqps = s->o.amqps,
            .http = s->o.http,
            .https = s->o.https,
            .tls = s->tls,
            .issuer = s->issuer.keys ? &s->issuer.policy : NULL,
            .issuer_keys = s->issuer.keys,
            .trace = s->o.trace,
            .events_only = s->o.events_only,
            .http_names = s->o.http_names.at,
            .http_name_count = s->o.http_names.count,
            .buffers = (size_t)s->o.buffers.value,
            .stranger_buffers = (size_t)s->o.stranger_buffers.value,
            .strangers_per_address = (unsigned)s->o.strangers_per_address.value,
            .connections_max = (unsigned)s->o.connections_max.value,
            .message_ms = (uint32_t)s->o.message_timeout.value,
            .logger = s->warnings.logger,
            .about = weir__serve_log_about};
        int rc = weir__server_start(&s->server, &options, err);

        if (rc != WEIR_EEXIST) return rc;
        if (!do_without(s, &s->o.amqps, s->o.amqps_given, err) &&
            !do_without(s, &s->o.http, s->o.http_given, err))
            return rc;
    }
}

int weir__serve_port_taken(const struct weir_error *err)
{
    fprintf(stderr,
            "weir: serve: %s%s; stop that process, or choose another port with --amqp, --amqps, "
            "--http or --https, like --amqp 127.0.0.1:5673 (port 0 picks a free one): the "
            "connection string that is printed then names it\n",
            err->text, strstr(err->text, "beam.smp") ? " (RabbitMQ runs in beam.smp)" : "");
    return WEIR__EXIT_FAILURE;
}
