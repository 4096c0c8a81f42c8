/* right.h - the names of rights, as the administration's JSON and the command line have them. */
#ifndef WEIR_HUB_RIGHT_H
#define WEIR_HUB_RIGHT_H

struct weir__right_name {
    const char *name; /* NULL behind the last */
    unsigned right;   /* of enum weir__right */
};

/* "send", "listen", "manage": in the order in which they are written. */
extern const struct weir__right_name weir__right_names[];

#endif
