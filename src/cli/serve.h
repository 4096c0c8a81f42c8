/* serve.h - what the files of weir serve share.
 *
 *   serve.c         the command: options, and the order of things
 *   serve_folder.c  the folder, which somebody else may have at the moment
 *   serve_log.c     the log on standard error
 *   serve_key.c     the first key, and where the well-known one may be used
 *   serve_ports.c   certificates and ports, and what to do when one is taken
 *   serve_issuer.c  the issuer whose tokens are accepted, too
 *   serve_reload.c  SIGHUP: certificates and other files are read again
 *   serve_ready.c   what is said when clients can come: printed, and in the folder */
#ifndef WEIR_CLI_SERVE_H
#define WEIR_CLI_SERVE_H

#include "cli/args.h"
#include "cli/connection.h"
#include "cli/serve_log.h"
#include "cli/wanted.h"
#include "cli/warning.h"
#include "io/tls.h"
#include "server/server.h"

#define WEIR__SERVE_AMQP "127.0.0.1:5672"
#define WEIR__SERVE_AMQPS "127.0.0.1:5671"
#define WEIR__SERVE_HTTP "127.0.0.1:5300"
#define WEIR__SERVE_RULE WEIR__CONNECTION_RULE
#define WEIR__SERVE_DEVELOPMENT_KEY WEIR__CONNECTION_DEVELOPMENT_KEY
#define WEIR__SERVE_MEMORY_BYTES ((uint64_t)512 << 20)

struct weir__stop;

struct weir__serve_options {
    struct weir__common common;
    struct weir__args_list hubs, http_names;
    const char *amqp, *amqps, *http, *https; /* all but amqp: NULL when there shall be none */
    const char *certificate, *key, *authority, *client_ca, *config;
    const char *issuer, *jwks, *audience, *role_claim; /* all NULL without an issuer */
    struct weir__args_list roles;
    const char *log_format, *log_level;
    struct weir__args_number memory_max;
    struct weir__args_number buffers, stranger_buffers, strangers_per_address, connections_max;
    struct weir__args_number message_timeout;
    bool in_memory, json, trace, events_only, allow_development_key;
    bool amqps_given, http_given; /* not the default: it must be had */
};

struct weir__serve_issuer {
    struct weir__jwt_issuer policy;
    struct weir__jwks *keys; /* NULL: there is no issuer */
    struct weir__jwt_role roles[WEIR__ARGS_LIST_MAX];
    char *role_texts[WEIR__ARGS_LIST_MAX]; /* what they are made of */
};

struct weir__serve {
    struct weir__serve_options o;
    struct weir__wanted wanted;
    struct weir__warnings warnings;
    struct weir__serve_log log;
    struct weir__namespace *ns;
    struct weir__tls_context *tls;
    struct weir__serve_issuer issuer;
    bool own_authority; /* that of the local authority */
    bool sign_missing;
    struct weir__server *server;
    struct weir__rule rule;                /* whose key clients are told */
    char rule_hub[WEIR__HUB_NAME_MAX + 1]; /* "": it is the namespace's */
    int64_t began_ns;
};

/* Opens the folder as s->ns. WEIR_ELOCKED: another server has it, or somebody who did not end within a
 * few seconds or before a stop was asked for. */
int weir__serve_open_folder(struct weir__serve *, const char *dir,
                            const struct weir__namespace_options *, const struct weir__stop *,
                            struct weir_error *);

/* Makes the first rule of a folder without any, and chooses the one to tell clients. WEIR_EDENIED:
 * the well-known key is good in this folder, and others could reach us. */
int weir__serve_choose_key(struct weir__serve *, struct weir_error *);

/* The certificate for amqps and https, if there is to be one. */
int weir__serve_open_tls(struct weir__serve *, struct weir_error *);

/* Reads it again, for who connects from now on. On error the old one stays. */
int weir__serve_renew_tls(struct weir__serve *, struct weir_error *);

/* The options of the issuer, without its file. false: the command is over, with *out_exit. */
bool weir__serve_read_issuer(struct weir__serve *, int *out_exit);
/* Reads its keys; again, for every token and every connection from now on. On error the old ones
 * stay. */
int weir__serve_open_issuer(struct weir__serve *, struct weir_error *);
int weir__serve_renew_issuer(struct weir__serve *, struct weir_error *);
void weir__serve_free_issuer(struct weir__serve *);

/* After SIGHUP: reads again what lies in files, and says what came of it. */
void weir__serve_reload(struct weir__serve *);
void weir__serve_notify(struct weir__serve *, const char *state);

/* Listens. A default port that is taken is gone without and warned of, but for AMQP's. */
int weir__serve_listen(struct weir__serve *, struct weir_error *);

/* Says what to do about a port that is taken, and returns the exit code. */
int weir__serve_port_taken(const struct weir_error *);

void weir__serve_print_ready(const struct weir__serve *);

/* By which commands on the folder find the server that has it; see serving.h. sign_missing: it could
 * not be written; the first time with a warning. */
void weir__serve_put_up_sign(struct weir__serve *);
void weir__serve_take_down_sign(const struct weir__serve *);

#endif
