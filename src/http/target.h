/* target.h - the parts of a request's target: segments of its path, words of its query. Pure. */
#ifndef WEIR_HTTP_TARGET_H
#define WEIR_HTTP_TARGET_H

#include <stdbool.h>

#include "base/bytes.h"

/* Takes the next segment off a path, without its slash: "/a/b" gives "a" and leaves "/b". false:
 * there is none. One slash at the end of a path means nothing. */
bool weir__http_take_segment(struct weir__bytes *path, struct weir__bytes *out);

/* Undoes %XX, once, into a text. false: a broken escape, a NUL, or more than room - 1 bytes. */
bool weir__http_unescape(struct weir__bytes, char *out, size_t room);

/* The value of the first word of a query with that name, not decoded; empty when it has none.
 * false: no such word. */
bool weir__http_find_query(struct weir__bytes query, const char *name, struct weir__bytes *out);

#endif
