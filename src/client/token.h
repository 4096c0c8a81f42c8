/* token.h - shared-access signatures: tokens by which somebody who knows a key shows it to nobody.
 *
 *   SharedAccessSignature sr=RESOURCE&sig=SIGNATURE&se=EXPIRY&skn=KEYNAME
 *
 * The signature is the HMAC-SHA256, by the key's own text, of the escaped resource, a newline and
 * the expiry in seconds since 1970; in base64, escaped. Checking them is hub/access.h. */
#ifndef WEIR_CLIENT_TOKEN_H
#define WEIR_CLIENT_TOKEN_H

#include "hub/access.h"

#define WEIR__TOKEN_RESOURCE_MAX 768 /* bytes, of which each may become three */

/* WEIR_ETOOBIG: the resource is longer than that. */
int weir__token_make(char out[WEIR__ACCESS_TOKEN_MAX + 1], const char *resource,
                     const char *key_name, const char *key, int64_t expires_s, struct weir_error *);

/* When a token ends, in seconds since 1970; 0: it does not say so. */
int64_t weir__token_expiry(const char *token);

#endif
