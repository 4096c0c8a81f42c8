/* web.h - HTTP on the server: who answers which request, and how.
 *
 *   web.c      a connection: requests in, answers out, one after the other
 *   routes.c   the table: method, path, the right that is needed, who answers; and who may come in
 *   pages.c    browsers on this machine: whose pages are answered
 *   answer.c   what an answer is made of; errors in Azure's form
 *   health.c   /health, /livez, /readyz
 *   metrics.c  /metrics
 *   rest.c     POST /HUB/messages and its kin
 *   admin.c    /$weir/hubs ..., keys.c /$weir/keys ...: administration, with a Manage token
 *   upgrade.c  /$servicebus/websocket: AMQP inside a WebSocket
 *
 * A request is answered on its connection's loop; or on the server's worker, when the answer may
 * have to wait for the disk; or when the log says that something is durable. Large bodies of events
 * have a worker of their own: many of them delay neither /health nor administration. While somebody
 * else has a request its connection reads nothing.
 *
 * Limits, each with its answer:
 *
 *   WEIR__WEB_BODY_MAX    bytes of a request's body: 413
 *   budget.h              of all that is held: 503
 *   WEIR__WEB_ANSWER_MAX  of an answer: 500
 *   and those of http/http.h: heads, time, bytes that wait for a client that does not read */
#ifndef WEIR_SERVER_WEB_H
#define WEIR_SERVER_WEB_H

#include "base/buf.h"
#include "http/http.h"
#include "http/websocket.h"
#include "server/state.h"

#define WEIR__WEB_BODY_MAX ((size_t)2 << 20)
#define WEIR__WEB_ANSWER_MAX ((size_t)4 << 20)
#define WEIR__WEB_STARS_MAX 2
#define WEIR__WEB_NAME_MAX 256   /* bytes of a segment of a path */
#define WEIR__WEB_RETRY_TEXT "4" /* seconds: Retry-After of a busy server, as Azure has it */

struct weir__visit;

/* ---- answers ---- */

struct weir__answer {
    unsigned status; /* 0: there is none yet */
    const char *type;
    struct weir__buf body;
    bool incomplete;       /* the body has reached its limit, or there was no memory */
    const char *challenge; /* WWW-Authenticate; NULL: none */
    bool retry;            /* Retry-After */
    unsigned allow;        /* Allow: a set of 1 << enum weir__http_method; 0: none */
    struct weir__websocket_welcome welcome; /* of status 101 */
};

__attribute__((format(printf, 2, 3))) void weir__answer_add(struct weir__answer *, const char *fmt,
                                                            ...);
/* A string of JSON, with its quotes. Bytes that are not ASCII become '?'. */
void weir__answer_quote(struct weir__answer *, const char *text);

/* The whole answer, with a body that was written before or none. */
void weir__answer_json(struct weir__visit *, unsigned status);
void weir__answer_empty(struct weir__visit *, unsigned status);

/* An error: <Error><Code>...</Code><Detail>...</Detail></Error>, as Azure says it; below /$weir the
 * same two as JSON, as everything there is. Replaces what was written. With 503 it says when to come
 * again. */
__attribute__((format(printf, 3, 4))) void weir__answer_error(struct weir__visit *, unsigned status,
                                                              const char *fmt, ...);

/* The same by the code of a failure. Failures of our own are told without their details, which go
 * to the log. */
void weir__answer_failure(struct weir__visit *, const struct weir_error *);

/* ---- routes ---- */

enum weir__route_scope {
    WEIR__SCOPE_OPEN,      /* anybody */
    WEIR__SCOPE_LOCAL,     /* anybody on this machine; others as the next */
    WEIR__SCOPE_NAMESPACE, /* a token of the namespace with the right */
    WEIR__SCOPE_HUB        /* one of the hub that is the path's first star, or of the namespace */
};

enum weir__route_place {
    WEIR__ON_LOOP,
    WEIR__ON_WORKER, /* it may wait for the disk */
    WEIR__ON_EITHER  /* the bodies' worker takes large ones, which take long to read */
};

struct weir__route {
    enum weir__http_method method;
    const char *path; /* segments; '*' stands for any one */
    enum weir__route_scope scope;
    unsigned right; /* besides Manage */
    enum weir__route_place place;
    /* false: the answer comes later, by weir__visit_return. */
    bool (*answer)(struct weir__visit *);
};

/* Finds the route of a request and whether it is allowed. false: there is an answer instead. */
bool weir__route_find(struct weir__visit *);
/* Whether it still is, when rules have changed since. false likewise. */
bool weir__route_allowed(struct weir__visit *);

/* pages.c: whether it comes from this machine, and whether whoever wrote it may ask. false: there is
 * an answer instead, and a line of the log. */
bool weir__visit_is_local(const struct weir__visit *);
bool weir__page_allowed(struct weir__visit *);

/* How each route answers; those on the worker return true. */
bool weir__health_answer(struct weir__visit *);
bool weir__livez_answer(struct weir__visit *);
bool weir__metrics_answer(struct weir__visit *);
bool weir__rest_answer(struct weir__visit *);
bool weir__upgrade_answer(struct weir__visit *);
bool weir__admin_list_hubs(struct weir__visit *);
bool weir__admin_show_hub(struct weir__visit *);
bool weir__admin_put_hub(struct weir__visit *);
bool weir__admin_change_hub(struct weir__visit *);
bool weir__admin_delete_hub(struct weir__visit *);
bool weir__admin_list_orphans(struct weir__visit *);
bool weir__admin_list_groups(struct weir__visit *);
bool weir__admin_show_group(struct weir__visit *);
bool weir__admin_put_group(struct weir__visit *);
bool weir__admin_delete_group(struct weir__visit *);
bool weir__keys_list(struct weir__visit *);
bool weir__keys_show(struct weir__visit *);
bool weir__keys_put(struct weir__visit *);
bool weir__keys_rotate(struct weir__visit *);
bool weir__keys_delete(struct weir__visit *);

/* ---- visits: connections and the request in work ---- */

struct weir__visit {
    struct weir__server *server;
    uint64_t id; /* for the log */
    struct weir__loop *loop;
    struct weir__tcp *tcp; /* NULL: it has ended */
    struct weir__http *http;
    struct weir__timer timer;
    struct weir__post job;           /* for a worker */
    struct weir__post back;          /* from a worker or the log */
    struct weir__post again;         /* of its own loop */
    struct weir__visit *next, *prev; /* on its loop */
    bool held;                       /* room was asked for and refused */
    bool away;                       /* somebody else has it; it is not freed before it returns */
    struct weir__timer retry;        /* its route is asked once more */
    int64_t busy_ms;                 /* since when it is; 0: it was not yet */
    bool stopping;
    struct weir__account account;   /* of what it holds in memory */
    struct weir__newcomer stranger; /* until it has shown a good token */

    const struct weir__http_request *request; /* NULL: none is in work */
    const struct weir__route *route;
    uint64_t rights_seen; /* the server's rights, when the route was allowed */
    char star[WEIR__WEB_STARS_MAX][WEIR__WEB_NAME_MAX + 1];
    struct weir__buf body;
    struct weir__answer answer;

    /* With the log or a worker: rest.c's. */
    void (*returned)(struct weir__visit *); /* on the loop, before the answer is sent; or NULL */
    struct weir__hub *hub;
    size_t unflushed;
    int rc;
    struct weir_error why;
};

/* The hub that the path names; NULL: none. */
const char *weir__visit_hub(const struct weir__visit *);

/* If-None-Match: *, which asks to make what is not there and to change nothing else. */
bool weir__visit_only_new(const struct weir__visit *);

/* On the loop: its route is asked again soon, and there is no answer yet. false: it was asked for
 * WEIR__SERVER_BUSY_MS already, or there is no time. */
bool weir__visit_retry(struct weir__visit *);

/* Its client has shown a good token. */
void weir__visit_trust(struct weir__visit *);

/* From any thread, once, by whoever has it: it goes on, on its loop. */
void weir__visit_return(struct weir__visit *);

/* The listener's accepted. */
bool weir__visit_accept(void *server, struct weir__tcp *);
/* On its loop: closes it when what it asked for is answered. */
void weir__visit_stop(struct weir__visit *);

/* upgrade.c: the connection speaks AMQP inside a WebSocket from here on. head is what is still to be
 * written in HTTP, rest what came behind it; both are copied. */
bool weir__upgrade_open(struct weir__server *, struct weir__tcp *, struct weir__bytes head,
                        struct weir__bytes rest);

#endif
