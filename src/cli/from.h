/* from.h - a position as it is written on a command line. */
#ifndef WEIR_CLI_FROM_H
#define WEIR_CLI_FROM_H

#include "weir/receiver.h"

/* earliest, latest, offset:X, sequence:N or time:T (see when.h). */
bool weir__from_parse(const char *text, struct weir_position *out);

#endif
