/* base64url.h - bytes from base64 with the URL alphabet (RFC 4648, section 5), as JSON Web Tokens
 * have it: A-Z a-z 0-9 - _, without padding. */
#ifndef WEIR_BASE_BASE64URL_H
#define WEIR_BASE_BASE64URL_H

#include <stdbool.h>

#include "base/bytes.h"

/* Bytes that so many characters stand for, at most. */
#define WEIR__BASE64URL_BYTES(chars) ((chars) / 4 * 3 + 2)

/* Decodes into out, which has `room` bytes; *len is how many they are. false: a character outside
 * the alphabet, padding, a length or left-over bits that no encoder writes, or too little room. So
 * every sequence of bytes has exactly one text. */
bool weir__base64url_decode(struct weir__bytes in, uint8_t *out, size_t room, size_t *len);

#endif
