/* tls.h - TLS by OpenSSL over a socket that does not block.
 *
 * TLS 1.2 and newer, no renegotiation, no compression. A session has no buffers of its own beyond
 * those that OpenSSL gives back when they are empty, so that idle connections are small: records go
 * straight from and to the socket. */
#ifndef WEIR_IO_TLS_H
#define WEIR_IO_TLS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"

struct weir__tls_context;
struct weir__tls;

#define WEIR__TLS_SUBJECT_MAX 256
#define WEIR__TLS_NAME_MAX 257 /* bytes of a common name in UTF-8, with its NUL */

/* PEM, from a file or, when that is NULL, from memory. Zero means none. Everything is copied. */
struct weir__tls_options {
    bool client;
    const char *certificate_file; /* the chain, own certificate first; a server needs one */
    struct weir__bytes certificate;
    const char *key_file;
    struct weir__bytes key;
    const char *authorities_file; /* whom we trust; a client's default is what the system trusts */
    struct weir__bytes authorities;
    bool ask_certificate; /* server: clients may show a certificate; one that is not good fails */
    bool trust_anyone;    /* client: accept any certificate. For tests */
};

/* May be shared by all threads. */
int weir__tls_context_new(struct weir__tls_context **out, const struct weir__tls_options *,
                          struct weir_error *);
/* New certificates, keys and authorities for sessions that begin from now on; those that are there
 * go on. On error everything stays as it is. Any thread. */
int weir__tls_context_renew(struct weir__tls_context *, const struct weir__tls_options *,
                            struct weir_error *);
void weir__tls_context_free(struct weir__tls_context *); /* NULL is fine; after its sessions */

/* How a call on a socket went. */
enum weir__flow {
    WEIR__FLOW_MOVED, /* some bytes, or the handshake is done */
    WEIR__FLOW_WAIT,  /* not now; weir__tls_wants_write tells what to wait for */
    WEIR__FLOW_ENDED, /* the peer has said its last byte */
    WEIR__FLOW_FAILED /* the error was filled */
};

/* fd is borrowed and must not block. name is whom a client wants to talk to, a host name or an
 * address: it is sent and verified. */
int weir__tls_new(struct weir__tls **out, struct weir__tls_context *, int fd, const char *name,
                  struct weir_error *);
void weir__tls_free(struct weir__tls *); /* NULL is fine */

enum weir__flow weir__tls_handshake(struct weir__tls *, struct weir_error *);
enum weir__flow weir__tls_read(struct weir__tls *, uint8_t *to, size_t room, size_t *got,
                               struct weir_error *);
/* After WAIT, come again with the same bytes, more of them if you like, anywhere in memory. */
enum weir__flow weir__tls_write(struct weir__tls *, struct weir__bytes, size_t *put,
                                struct weir_error *);
/* Tells the peer that these were all; MOVED when it is said. */
enum weir__flow weir__tls_end(struct weir__tls *, struct weir_error *);

bool weir__tls_wants_write(const struct weir__tls *); /* the last call waits for room to write */
bool weir__tls_pending(const struct weir__tls *);     /* there is more to read before the socket */

/* The subject of the peer's verified certificate, as RFC 2253 writes it, cut where room ends; false
 * when it showed none. */
bool weir__tls_subject(const struct weir__tls *, char *to, size_t room);

/* Whom that certificate is for: the one common name of its subject. until_s is when it runs out,
 * seconds since 1970. false: there is no verified certificate, or not exactly one name in it. */
struct weir__tls_identity {
    char name[WEIR__TLS_NAME_MAX];
    int64_t until_s;
};
bool weir__tls_identify(const struct weir__tls *, struct weir__tls_identity *);

#endif
