/* source_wire.h - the contract of sources over a plain connection to `weir serve`. */
#ifndef WEIR_TESTS_CONTRACT_SOURCE_WIRE_H
#define WEIR_TESTS_CONTRACT_SOURCE_WIRE_H

#include "contract/source.h"

#include "client/wire_place.h"

int contract_open(void **state)
{
    if (place_start() != 0) return -1;
    return place_open((struct weir **)state, NULL);
}

int contract_close(void **state)
{
    int rc = weir_close(*state, &err);

    return place_stop() != 0 ? -1 : rc;
}

/* Two servers on one machine are two places: the port tells them apart. */
static void a_space_has_its_host_and_port(void **state)
{
    char space[WEIR_SPACE_BYTES];
    const char *port = strrchr(place.serve.amqp, ':');

    assert_ok(weir_space(*state, space, &err));
    assert_string_equal(strrchr(space, ':'), port);
    assert_non_null(strstr(place_string(NULL), space));
}

static int run_wire_sources(void)
{
    const struct CMUnitTest own[] = {SOURCE_TEST(a_space_has_its_host_and_port)};
    int failed = run_sources();

    return cmocka_run_group_tests(own, NULL, NULL) + failed;
}

#endif
