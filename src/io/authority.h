/* authority.h - a certificate authority of one person's machine, made on first use, so that TLS to
 * localhost works without anybody's help.
 *
 * It can vouch for localhost, 127.0.0.0/8 and ::1 only: that is written into its certificate
 * (critical name constraints, no further authorities below it), so whoever trusts it, or steals its
 * key, trusts or can imitate nothing else. Its certificate is valid for ten years, the server's for
 * WEIR__AUTHORITY_SERVER_DAYS; the server's is made anew, for the same key, when fewer than
 * WEIR__AUTHORITY_RENEW_DAYS are left.
 *
 * A file that is there but is not what it should be is never written over: that is an error which
 * names the file. */
#ifndef WEIR_IO_AUTHORITY_H
#define WEIR_IO_AUTHORITY_H

#include <stdint.h>

#include "base/error.h"

#define WEIR__AUTHORITY_PATH_MAX 1024 /* with its NUL */
#define WEIR__AUTHORITY_DAYS 3650
#define WEIR__AUTHORITY_SERVER_DAYS 397
#define WEIR__AUTHORITY_RENEW_DAYS 30
#define WEIR__AUTHORITY_LOCK_MS 10000 /* how long another process may be at it: WEIR_ELOCKED */

struct weir__authority {
    char ca_file[WEIR__AUTHORITY_PATH_MAX];          /* what clients have to trust; PEM, as are: */
    char certificate_file[WEIR__AUTHORITY_PATH_MAX]; /* the server's */
    char key_file[WEIR__AUTHORITY_PATH_MAX];         /* and its key */
    char name[64];                                   /* "Weir local authority 1A2B3C4D" */
    char fingerprint[96];                            /* of ca_file: SHA-256, "AB:CD:..." */
    int64_t ca_until_ms, certificate_until_ms;       /* Unix time */
};

/* Makes what is missing in the folder dir, and the folder, and renews what is near its end; any
 * number of processes may do so at once. now_ms is Unix time, weir__clock's wall_ms. WEIR_ECORRUPT:
 * a file is not what it should be. WEIR_EDENIED: others can read a key, or write to the folder. */
int weir__authority_ensure(struct weir__authority *out, const char *dir, int64_t now_ms,
                           struct weir_error *);
/* The same for a server at `address`, which the server's certificate names as well if it is one of
 * 127.0.0.0/8. A new one is made for that, which keeps the addresses of the old. NULL: as above. */
int weir__authority_ensure_for(struct weir__authority *out, const char *dir, const char *address,
                               int64_t now_ms, struct weir_error *);

/* What is there; makes and changes nothing. WEIR_ENOTFOUND: nobody has made it. A server
 * certificate that has run out is not an error: see certificate_until_ms. */
int weir__authority_look(struct weir__authority *out, const char *dir, int64_t now_ms,
                         struct weir_error *);

#endif
