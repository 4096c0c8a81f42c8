/* The contract of sources over a connection that carries stored batches. */
#include "contract/source_wire.h"

int main(void)
{
    return run_wire_sources();
}
