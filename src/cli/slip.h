/* slip.h - what was meant by a word that does not exist. */
#ifndef WEIR_CLI_SLIP_H
#define WEIR_CLI_SLIP_H

#define WEIR__SLIP_BYTES 64 /* of a word; longer ones are like no other */
#define WEIR__SLIP_MAX 2u   /* with more slips it is another word */

/* How many letters must be changed, put in, left out or swapped with their neighbour to make one of
 * the other. */
unsigned weir__slip_distance(const char *a, const char *b);

#endif
