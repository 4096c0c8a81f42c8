/* The contract over TLS, with a certificate of the server's own authority. */
#include "client/wire_suite.h"

int main(void)
{
    return run_suite(true, false);
}
