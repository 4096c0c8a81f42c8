/* remote.h - the hubs and keys of a running weir serve, by its administration over HTTP (see
 * server/admin.c and keys.c). The calls are those of weir/hub.h, with the same errors; Azure has
 * nothing like it.
 *
 * A connection string says where AMQP is. HTTP is at the same host:
 *
 *   AMQP                        HTTP, unless somebody says otherwise
 *   plain                       http, port 5300
 *   with TLS                    https, port 8443
 *   inside a WebSocket          where that is */
#ifndef WEIR_CLI_REMOTE_H
#define WEIR_CLI_REMOTE_H

#include "cli/connection.h"
#include "weir/weir.h"

struct weir__remote;

/* admin is the URL of HTTP; NULL: as above. WEIR_EINVAL: one of them is malformed, and the text says
 * which part. Nobody is called yet. */
int weir__remote_open(struct weir__remote **out, const char *connect, const char *admin,
                      struct weir_error *);
void weir__remote_close(struct weir__remote *); /* NULL is fine */

/* Besides the errors of hub.h: WEIR_EUNREACHABLE; WEIR_EDENIED, whose text names the right that is missing; WEIR_ENOTSUP when what answers there is not weir serve. */
int weir__remote_hub_create(struct weir__remote *, const char *hub, const struct weir_hub_options *,
                            struct weir_hub_info *out, struct weir_error *);
int weir__remote_hub_update(struct weir__remote *, const char *hub, const struct weir_hub_changes *,
                            struct weir_error *);
int weir__remote_hub_delete(struct weir__remote *, const char *hub, struct weir_error *);
int weir__remote_hub_adopt(struct weir__remote *, uint64_t id, const char *hub,
                           struct weir_error *);
/* WEIR_ENOTFOUND: the server is of a release that tells of none. */
int weir__remote_orphan_list(struct weir__remote *, int (*fn)(const struct weir_orphan *, void *),
                             void *user, struct weir_error *);
int weir__remote_hub_list(struct weir__remote *, int (*fn)(const struct weir_hub_info *, void *),
                          void *user, struct weir_error *);

/* One hub, its groups, and of its statistics what it keeps. *out_kept: whether that was told. */
int weir__remote_hub_show(struct weir__remote *, const char *hub, struct weir_hub_info *out,
                          struct weir_hub_stats *stats, bool *out_kept,
                          int (*group_fn)(const char *group, void *), void *user,
                          struct weir_error *);

/* Keys are told when they are made and never again: the string has the first one. The rules of a
 * list have none. */
int weir__remote_rule_create(struct weir__remote *, const char *hub, const struct weir_rule *,
                             char out[WEIR__CONNECTION_BYTES], struct weir_error *);
/* The first key becomes the second, and a new first one is made. */
int weir__remote_rule_rotate(struct weir__remote *, const char *hub, const char *rule,
                             char out[WEIR__CONNECTION_BYTES], struct weir_error *);
int weir__remote_rule_delete(struct weir__remote *, const char *hub, const char *rule,
                             struct weir_error *);
int weir__remote_rule_list(struct weir__remote *, const char *hub,
                           int (*fn)(const struct weir_rule *, void *), void *user,
                           struct weir_error *);

#endif
