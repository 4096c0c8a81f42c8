#include "client/token.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#define MAC_BYTES 32 /* of HMAC-SHA256 */
#define EXPIRY_BYTES 24

/* As encodeURIComponent does it; `to` has room for three times the text and a NUL. */
static void escape(char *to, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~!*'()";
    static const char hex[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (memchr(plain, c, sizeof plain - 1)) {
            *to++ = (char)c;
            continue;
        }
        *to++ = '%';
        *to++ = hex[c >> 4];
        *to++ = hex[c & 15];
    }
    *to = '\0';
}

int weir__token_make(char out[WEIR__ACCESS_TOKEN_MAX + 1], const char *resource,
                     const char *key_name, const char *key, int64_t expires_s,
                     struct weir_error *err)
{
    char sr[3 * WEIR__TOKEN_RESOURCE_MAX + 1], text[sizeof sr + EXPIRY_BYTES];
    char base64[WEIR__ACCESS_SIGNATURE_BYTES + 1], sig[3 * sizeof base64];
    char skn[3 * WEIR__RULE_NAME_MAX + 1];
    unsigned char mac[MAC_BYTES];
    unsigned mac_bytes = sizeof mac;
    int len;

    if (strlen(resource) > WEIR__TOKEN_RESOURCE_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "a token for a name of %zu bytes", strlen(resource));
    assert(strlen(key_name) <= WEIR__RULE_NAME_MAX);
    escape(sr, resource);
    escape(skn, key_name);
    len = snprintf(text, sizeof text, "%s\n%" PRId64, sr, expires_s);
    if (!HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text, (size_t)len, mac,
              &mac_bytes))
        return weir__fail(err, WEIR_EIO, "signing a token: OpenSSL cannot");
    EVP_EncodeBlock((unsigned char *)base64, mac, MAC_BYTES);
    escape(sig, base64);
    snprintf(out, WEIR__ACCESS_TOKEN_MAX + 1,
             "SharedAccessSignature sr=%s&sig=%s&se=%" PRId64 "&skn=%s", sr, sig, expires_s, skn);
    return 0;
}

int64_t weir__token_expiry(const char *token)
{
    const char *at = token;

    while ((at = strstr(at, "se=")) != NULL) {
        if (at > token && strchr(" &", at[-1])) return strtoll(at + 3, NULL, 10);
        at += 3;
    }
    return 0;
}
