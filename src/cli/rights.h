/* rights.h - rights as the command line has them: "send,listen". */
#ifndef WEIR_CLI_RIGHTS_H
#define WEIR_CLI_RIGHTS_H

#include <stdbool.h>

/* A set of enum weir__right; false: something else stands there. */
bool weir__rights_parse(const char *text, unsigned *out);

#endif
