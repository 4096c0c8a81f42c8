/* holder.h - which process listens on a port, as far as this system tells. */
#ifndef WEIR_IO_HOLDER_H
#define WEIR_IO_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "rabbitmq (pid 4242)"; false when it cannot be known. */
bool weir__holder_of_port(unsigned port, char *to, size_t room);

#endif
