/* printable.h - text of strangers, fit for a terminal and for one line of a log. */
#ifndef WEIR_BASE_PRINTABLE_H
#define WEIR_BASE_PRINTABLE_H

#include <stddef.h>

#include "base/bytes.h"

/* Copies UTF-8, with a NUL, as much as there is room for. What steers a terminal, hides text or turns
 * its direction is spelled out, \x1b or \u202e, and so are bytes that are no UTF-8. A backslash
 * stays as it is: nobody reads this back. Returns the length. */
size_t weir__printable(char *to, size_t room, struct weir__bytes text);

#endif
