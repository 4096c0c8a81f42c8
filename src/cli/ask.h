/* ask.h - questions to an HTTP server, one after the other, each on a connection of its own.
 *
 * A call waits, WEIR__ASK_MS at the most. Questions are HTTP/1.0, so that an answer ends with its
 * length or with the connection, and never comes in chunks. */
#ifndef WEIR_CLI_ASK_H
#define WEIR_CLI_ASK_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"

#define WEIR__ASK_MS 15000u
#define WEIR__ASK_ANSWER_MAX ((size_t)5 << 20) /* bytes, head and body */
#define WEIR__ASK_QUESTION_MAX ((size_t)1 << 20)

struct weir__ask;

/* url is "http://HOST[:PORT]" or "https://HOST[:PORT]", copied; a slash may follow. WEIR_EINVAL:
 * it is not. Nobody is called yet. */
int weir__ask_open(struct weir__ask **out, const char *url, struct weir_error *);
void weir__ask_close(struct weir__ask *); /* NULL is fine */

const char *weir__ask_url(const struct weir__ask *);

struct weir__question {
    const char *method, *path; /* as they go over the wire */
    const char *token;         /* Authorization; NULL: none */
    bool only_new;             /* If-None-Match: * */
    const char *body;          /* JSON; NULL: none */
};

struct weir__reply {
    unsigned status;
    struct weir__bytes body; /* lives until the next question */
};

/* WEIR_EUNREACHABLE: nobody is there, the answer broke off, or it did not come in time. WEIR_EDENIED:
 * the certificate is not good. WEIR_ENOTSUP: what came is not HTTP. WEIR_ETOOBIG. */
int weir__ask(struct weir__ask *, const struct weir__question *, struct weir__reply *out,
              struct weir_error *);

#endif
