#include "cli/from.h"

#include "base/clock.h"
#include "cli/args.h"
#include "cli/when.h"

static bool parse_number(const char *text, int64_t *out)
{
    uint64_t number;

    if (!weir__args_number(text, &number)) return false;
    *out = (int64_t)number;
    return true;
}

/* A point in time, or "-1h": so long ago. */
static bool parse_time(const char *text, int64_t *out)
{
    struct weir__clock clock = weir__clock_system();
    uint64_t ago;

    if (*text != '-') return weir__when_parse(text, out);
    if (!weir__args_duration(text + 1, &ago)) return false;
    *out = clock.wall_ms(clock.self) - (int64_t)ago;
    return true;
}

struct form {
    const char *word;
    enum weir_from from;
    bool (*parse)(const char *text, int64_t *out); /* NULL: nothing follows */
};

static const struct form forms[] = {
    {"earliest", WEIR_FROM_EARLIEST, NULL},      {"latest", WEIR_FROM_LATEST, NULL},
    {"offset:", WEIR_FROM_OFFSET, parse_number}, {"sequence:", WEIR_FROM_SEQUENCE, parse_number},
    {"time:", WEIR_FROM_TIME, parse_time},
};

bool weir__from_parse(const char *text, struct weir_position *out)
{
    *out = (struct weir_position){0};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t len = strlen(forms[i].word);
        if (strncmp(text, forms[i].word, len) != 0) continue;
        out->from = forms[i].from;
        return forms[i].parse ? forms[i].parse(text + len, &out->value) : text[len] == '\0';
    }
    return false;
}
