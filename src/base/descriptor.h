/* descriptor.h - descriptors 0, 1 and 2 belong to the program, also when it has closed them.
 *
 * The kernel gives the lowest free number, so in a program that was started without standard output
 * the next file would be number 1, and what the program prints would be written into it. */
#ifndef WEIR_BASE_DESCRIPTOR_H
#define WEIR_BASE_DESCRIPTOR_H

/* The same file under a number above 2, closed on exec; -1 stays -1. On failure it is closed, and
 * errno says why. */
int weir__descriptor_move(int fd);

#define WEIR__DESCRIPTORS_STANDARD 3

/* For libraries that open by themselves: while these are held, nobody is given 0, 1 or 2. */
struct weir__descriptors_held {
    int fd[WEIR__DESCRIPTORS_STANDARD];
    int count;
};

void weir__descriptors_hold(struct weir__descriptors_held *);
void weir__descriptors_release(struct weir__descriptors_held *);

#endif
