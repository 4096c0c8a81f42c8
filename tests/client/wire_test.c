/* The contract over a plain connection. */
#include "client/wire_suite.h"

int main(void)
{
    return run_suite(false, false);
}
