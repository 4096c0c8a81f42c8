/* The contract over a plain connection to a server that delivers events one by one. */
#include "client/wire_suite.h"

int main(void)
{
    place.serve.events_only = true;
    return run_suite(false, false);
}
