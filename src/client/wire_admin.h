/* wire_admin.h - hubs, groups and rules behind a connection string, by the HTTP administration of
 * weir serve (server/admin.c and keys.c have the paths and the JSON). Azure has nothing like it.
 *
 *   wire_admin.c        where HTTP is; a request with its token; refusals
 *   wire_admin_hub.c    requests about hubs, orphans and groups
 *   wire_admin_rule.c   and about rules
 *
 * HTTP is asked at the option admin; without it, inside a WebSocket, where that is; else at the
 * host of the connection string and the port that the server told when $cbs was attached:
 *
 *   client   attach $cbs, desired-capabilities weir:administration
 *   server   attach, properties { weir:http: PORT, weir:https: PORT }     0: not served
 *
 * A connection with TLS uses HTTP with TLS and nothing else. A server that does not know the
 * capability is not weir serve: WEIR_ENOTSUP. */
#ifndef WEIR_CLIENT_WIRE_ADMIN_H
#define WEIR_CLIENT_WIRE_ADMIN_H

#include "client/http_client.h"
#include "client/json_fields.h"
#include "client/wire.h"

#define WEIR__ADMIN_BODY_MAX ((size_t)512 << 10)

/* "/$weir/hubs/HUB/keys/RULE?..." */
struct weir__admin_path {
    const char *hub;   /* NULL: the namespace */
    const char *what;  /* "groups", "keys", "orphans"; NULL: the hub itself, or all hubs */
    const char *name;  /* of a group or a rule; NULL: all */
    const char *query; /* "?..."; NULL: none */
};

struct weir__admin_reply {
    struct weir__http_reply http;
    char url[WEIR__HTTP_CLIENT_HOST_MAX + 16]; /* of the server that gave it */
};

/* One request; path and token of the call are made here. 0: it was answered with success. Call fini
 * in any case. */
int weir__admin_ask(struct weir__wire *, const struct weir__http_call *,
                    const struct weir__admin_path *, struct weir__admin_reply *,
                    struct weir_error *);
void weir__admin_reply_fini(struct weir__admin_reply *);

/* The same for an answer that has nothing to tell. */
int weir__admin_order(struct weir__wire *, const struct weir__http_call *,
                      const struct weir__admin_path *, struct weir_error *);

/* Reads the object of an answer. WEIR_ENOTSUP: it is not understood. */
int weir__admin_read(const struct weir__admin_reply *, const struct weir__json_field *, void *out,
                     struct weir_error *);

/* The answer lacks what it must have. Returns WEIR_ENOTSUP. */
int weir__admin_strange(const struct weir__admin_reply *, struct weir_error *);

/* Asks for {"name":[OBJECT,...]}, reads each object into out (size bytes) and shows it. What show
 * returns ends the list when it is not 0, and is returned. An object that check, which may be NULL,
 * finds to be WEIR_EINVAL is not understood. */
struct weir__admin_list {
    const char *name;
    const struct weir__json_field *fields;
    void *out;
    size_t size;
    int (*check)(const void *out, struct weir_error *);
    int (*show)(const void *out, void *user);
    void *user;
};
int weir__admin_list(struct weir__wire *, const struct weir__admin_path *,
                     const struct weir__admin_list *, struct weir_error *);

/* JSON of a request. What does not fit is left out, and weir__admin_ask refuses it. */
struct weir__admin_body {
    struct weir__buf bytes;
    bool cut;
};
void weir__admin_body_init(struct weir__admin_body *);
__attribute__((format(printf, 2, 3))) void weir__admin_put(struct weir__admin_body *,
                                                           const char *fmt, ...);
void weir__admin_quote(struct weir__admin_body *, const char *text);
/* Sends it: WEIR_ETOOBIG when it was cut. */
int weir__admin_send(struct weir__wire *, struct weir__http_call *, struct weir__admin_body *,
                     const struct weir__admin_path *, struct weir__admin_reply *,
                     struct weir_error *);

/* The calls of backend.h. */
int weir__admin_hub_create(struct weir__backend *, const char *hub, const struct weir_hub_options *,
                           struct weir_error *);
int weir__admin_hub_update(struct weir__backend *, const char *hub, const struct weir_hub_changes *,
                           struct weir_error *);
int weir__admin_hub_delete(struct weir__backend *, const char *hub, struct weir_error *);
int weir__admin_hub_adopt(struct weir__backend *, uint64_t id, const char *hub,
                          struct weir_error *);
int weir__admin_orphan_list(struct weir__backend *, int (*fn)(const struct weir_orphan *, void *),
                            void *user, struct weir_error *);
int weir__admin_hub_list(struct weir__backend *, int (*fn)(const struct weir_hub_info *, void *),
                         void *user, struct weir_error *);
int weir__admin_hub_stats(struct weir__backend *, const char *hub, struct weir_hub_stats *,
                          struct weir_error *);
int weir__admin_group_create(struct weir__backend *, const char *hub, const char *group,
                             struct weir_error *);
int weir__admin_group_delete(struct weir__backend *, const char *hub, const char *group,
                             struct weir_error *);
int weir__admin_group_list(struct weir__backend *, const char *hub,
                           int (*fn)(const char *group, void *), void *user, struct weir_error *);
int weir__admin_rule_create(struct weir__backend *, const char *hub, struct weir_rule *,
                            struct weir_error *);
int weir__admin_rule_delete(struct weir__backend *, const char *hub, const char *rule,
                            struct weir_error *);
int weir__admin_rule_rotate(struct weir__backend *, const char *hub, const char *rule,
                            enum weir_key, const char *text, struct weir_error *);
int weir__admin_rule_renew(struct weir__backend *, const char *hub, const char *rule,
                           struct weir_rule *out, struct weir_error *);
int weir__admin_rule_list(struct weir__backend *, const char *hub,
                          int (*fn)(const struct weir_rule *, void *), void *user,
                          struct weir_error *);

extern const struct weir__admin_ops weir__wire_admin;

/* Where HTTP is, as far as the options and the connection string say. */
int weir__wire_admin_open(struct weir__wire *, const struct weir_options *, struct weir_error *);

#endif
