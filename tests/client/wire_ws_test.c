/* The contract inside a WebSocket, on the HTTP port. */
#include "client/wire_suite.h"

int main(void)
{
    return run_suite(false, true);
}
