/* json.h - reads a JSON text (RFC 8259, UTF-8) token by token: no tree, no allocation.
 *
 * Strict: no comments, no trailing commas, no bare words; a byte order mark in front is passed
 * over, as editors leave one. Names that stand twice in an object are the caller's business.
 *
 * Limits, each with a WEIR_EINVAL that says so: objects and arrays in each other, and the bytes of
 * one string or number. A string with a NUL in it is refused unless the caller allows it: text ends
 * there for whoever reads it as C does. */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include "base/bytes.h"
#include "base/error.h"

#define WEIR__JSON_DEPTH_MAX 32u
#define WEIR__JSON_TEXT_MAX 1024u

enum weir__json_token {
    WEIR__JSON_END, /* of the text; comes again when asked again */
    WEIR__JSON_OBJECT,
    WEIR__JSON_OBJECT_END,
    WEIR__JSON_ARRAY,
    WEIR__JSON_ARRAY_END,
    WEIR__JSON_NAME, /* of a member: its value is next */
    WEIR__JSON_TEXT,
    WEIR__JSON_NUMBER, /* as it is written */
    WEIR__JSON_TRUE,
    WEIR__JSON_FALSE,
    WEIR__JSON_NULL
};

struct weir__json {
    struct weir__bytes in;
    size_t at;
    size_t began; /* where the last token begins */
    unsigned depth;
    int expect;                         /* the reader's own */
    char open[WEIR__JSON_DEPTH_MAX];    /* '{' and '[' that are not closed yet */
    char text[WEIR__JSON_TEXT_MAX + 1]; /* of the last NAME, TEXT or NUMBER, with a NUL */
    size_t text_len;
    char *lent; /* NULL: text is used */
    size_t lent_max;
    bool takes_nul; /* the caller's: strings may have NULs in them; text_len counts */
    bool is_line;   /* the caller's: the text is one line, so that errors name the column only */
};

void weir__json_init(struct weir__json *, struct weir__bytes in); /* borrowed */

/* For longer strings: they are put here instead of into text, up to size - 1 bytes. Borrowed. */
void weir__json_lend(struct weir__json *, char *room, size_t size);

/* The next token. WEIR_EINVAL: "line 3, column 14: ..."; nothing may be read after it. */
int weir__json_next(struct weir__json *, enum weir__json_token *out, struct weir_error *);

/* Passes over the value that begins with the token that was read last. */
int weir__json_skip(struct weir__json *, enum weir__json_token, struct weir_error *);

/* Where the last token begins, from 1; columns count characters. */
void weir__json_place(const struct weir__json *, unsigned *line, unsigned *column);

#endif
