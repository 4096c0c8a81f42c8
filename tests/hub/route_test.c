#include "hub/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir__bytes text(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

/* Values of Azure's own implementation (JavaScript, .NET and Java agree). */
static void published_table(void **state)
{
    static const uint32_t counts[] = {2, 3, 4, 8, 32};
    static const struct {
        const char *key;
        int hash;
        uint32_t partition[5];
    } rows[] = {
        {"", 0, {0, 0, 0, 0, 0}},
        {"a", -16220, {0, 2, 0, 4, 28}},
        {"ab", 2093, {1, 2, 1, 5, 13}},
        {"abc", -14161, {1, 1, 1, 1, 17}},
        {"abcd", 23398, {0, 1, 2, 6, 6}},
        {"alphabet", -23478, {0, 0, 2, 6, 22}},
        {"TheBestParitionEver", -29062, {0, 1, 2, 6, 6}},
        {"TheWorstParitionEver", -29251, {1, 1, 3, 3, 3}},
        {"123456789012", 21621, {1, 0, 1, 5, 21}},
        {"1234567890123", 7770, {0, 0, 2, 2, 26}},
        {"h\xc3\xa9llo", 17041, {1, 1, 1, 1, 17}},
        {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", -23353, {1, 1, 1, 1, 25}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weir__route_hash(text(rows[i].key)), rows[i].hash);
        for (size_t c = 0; c < 5; c++)
            assert_int_equal(weir__route_key(text(rows[i].key), counts[c]), rows[i].partition[c]);
    }
}

static void official_unit_vectors(void **state)
{
    static const struct {
        const char *key;
        uint32_t count, partition;
    } keys[] = {{"alphabet", 3, 0},
                {"alphabet", 11, 4},
                {"TheBestParitionEver", 4, 2},
                {"TheWorstParitionEver", 15, 1},
                {"7", 4, 3}};
    static const struct {
        const char *key;
        int hash;
    } hashes[] = {{"7", -15263},         {"7149583486996073602", 12977},
                  {"FWfAT", -22341},     {"sOdeEAsyQoEuEFPGerWO", -6503},
                  {"!c*_!I@1^c", 15372}, {"p4*!jioeO/z-!-;w:dh", -3104},
                  {"$0cb", 26269},       {"-4189260826195535198", 453}};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(weir__route_key(text(keys[i].key), keys[i].count), keys[i].partition);
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++)
        assert_int_equal(weir__route_hash(text(hashes[i].key)), hashes[i].hash);
}

/* The bytes end where the allocation ends, so that reading one too many is seen. */
static void every_length_stays_inside(void **state)
{
    (void)state;
    for (size_t len = 1; len < 40; len++) {
        uint8_t *at = malloc(len);
        assert_non_null(at);
        memset(at, (int)len, len);
        for (uint32_t count = 1; count <= 1024; count += 31)
            assert_true(weir__route_key(weir__bytes_of(at, len), count) < count);
        free(at);
    }
}

static void turns_go_round(void **state)
{
    struct weir__route_turn turn = {0};

    (void)state;
    for (uint32_t i = 0; i < 10; i++) assert_int_equal(weir__route_next(&turn, 4), i % 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_table),
        cmocka_unit_test(official_unit_vectors),
        cmocka_unit_test(every_length_stays_inside),
        cmocka_unit_test(turns_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
