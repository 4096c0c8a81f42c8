/* The contract inside a WebSocket with TLS around it. */
#include "client/wire_suite.h"

int main(void)
{
    return run_suite(true, true);
}
