/* http_client.h - requests to an HTTP server, each on a connection of its own.
 *
 * The connection lives on a loop that the caller lends; the call waits for its end, timeout_ms at
 * the most. Requests are HTTP/1.0, so that an answer ends with its length or with the connection,
 * and never comes in chunks. Any number of threads may ask at a time. */
#ifndef WEIR_CLIENT_HTTP_CLIENT_H
#define WEIR_CLIENT_HTTP_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/tls.h"

#define WEIR__HTTP_CLIENT_ANSWER_MAX ((size_t)5 << 20) /* bytes, head and body */
#define WEIR__HTTP_CLIENT_REQUEST_MAX ((size_t)1 << 20)
#define WEIR__HTTP_CLIENT_HOST_MAX 260 /* of HOST:PORT, with brackets */

/* Where to ask. A plain value: it may be copied. */
struct weir__http_client {
    char url[WEIR__HTTP_CLIENT_HOST_MAX + 16];    /* https://HOST:PORT, as it was given */
    char address[WEIR__HTTP_CLIENT_HOST_MAX + 8]; /* HOST:PORT, to connect to */
    bool secure;                                  /* https */
    struct weir__loop *loop;                      /* borrowed, as tls is */
    struct weir__tls_context *tls;
    int64_t timeout_ms;
};

/* url is "http://HOST[:PORT]" or "https://HOST[:PORT]", copied; a slash may follow. WEIR_EINVAL:
 * it is not. The caller sets loop, tls (of https) and timeout_ms. */
int weir__http_client_set_url(struct weir__http_client *, const char *url, struct weir_error *);

struct weir__http_call {
    const char *method, *path; /* as they go over the wire */
    const char *token;         /* Authorization; NULL: none */
    bool only_new;             /* If-None-Match: * */
    struct weir__bytes body;   /* JSON; at is NULL: none */
};

struct weir__http_reply {
    unsigned status;
    struct weir__bytes body; /* lives until weir__http_reply_fini */
    struct weir__buf bytes;
};

/* WEIR_EUNREACHABLE: nobody is there, the answer broke off, or it did not come in time; when that
 * happens to a change that was sent, it is WEIR_EUNKNOWN. WEIR_EDENIED: the certificate is not
 * good. WEIR_ENOTSUP: what came is not HTTP. WEIR_ETOOBIG. The texts begin with the URL. Call fini
 * in any case. */
int weir__http_client_ask(const struct weir__http_client *, const struct weir__http_call *,
                          struct weir__http_reply *out, struct weir_error *);
void weir__http_reply_fini(struct weir__http_reply *);

#endif
