/* The contract of sources over a connection that carries events one by one. */
#include "contract/source_wire.h"

int main(void)
{
    place.serve.events_only = true;
    return run_wire_sources();
}
