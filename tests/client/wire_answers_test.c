/* What a client makes of the answers of $management: every number and text, and every refusal. In
 * front of each answer come others that nobody waits for. */
#include "client/contract/place.h"

#include "client/blunt.h"

#define WIDE 255 /* handles of a session */
#define HANG_S 60
#define FACTS_MAX 6

struct fact {
    const char *name;
    const char *text; /* or the number */
    int64_t number;
};

struct answer {
    int64_t status;
    const char *condition, *description;
    struct fact facts[FACTS_MAX];
};

static _Atomic(const struct answer *) current;
static struct blunt *blunt;
static struct weir *w;

static struct weir__amqp_value text_value(const char *text)
{
    return weir__amqp_bytes(WEIR__AMQP_STRING, text, strlen(text));
}

/* The server's thread. */
static void tell(struct weir__amqp_writer *to)
{
    const struct answer *a = atomic_load(&current);
    uint32_t count = 2;
    size_t mark;

    weir__amqp_put_descriptor(to, 0x74);
    mark = weir__amqp_put_open(to);
    blunt_put(to, "status-code", weir__amqp_signed(WEIR__AMQP_INT, a->status));
    if (a->condition) blunt_put(to, "error-condition", text_value(a->condition)), count += 2;
    if (a->description) blunt_put(to, "status-description", text_value(a->description)), count += 2;
    weir__amqp_put_close(to, mark, WEIR__AMQP_MAP, count);
    weir__amqp_put_descriptor(to, 0x77);
    mark = weir__amqp_put_open(to);
    for (count = 0; count < FACTS_MAX && a->facts[count].name; count++) {
        const struct fact *f = &a->facts[count];
        blunt_put(to, f->name,
                  f->text ? text_value(f->text) : weir__amqp_signed(WEIR__AMQP_LONG, f->number));
    }
    weir__amqp_put_close(to, mark, WEIR__AMQP_MAP, 2 * count);
}

static int start(void **state)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    char text[256];

    (void)state;
    alarm(HANG_S);
    blunt = blunt_start(&(struct blunt_manners){.handle_max = WIDE, .tell = tell});
    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             blunt->address);
    return weir_open(&w, text, &o, &err);
}

static int stop(void **state)
{
    int rc = weir_close(w, &err);

    (void)state;
    if (atomic_load(&blunt->connections) != 1) rc = -1;
    blunt_stop(blunt);
    return rc;
}

static void partitions_are_read(void **state)
{
    static const struct {
        struct answer answer;
        struct weir_partition_info info;
    } cases[] = {
        {{200, NULL, NULL, {{0}}}, {.next_sequence = 1}},
        {{299,
          NULL,
          NULL,
          {{"begin_sequence_number", NULL, 1},
           {"last_enqueued_sequence_number", NULL, 8},
           {"last_enqueued_offset", "77", 0},
           {"last_enqueued_time_utc", NULL, 1700000000123}}},
         {1, 9, 77, 1700000000123}},
        {{200,
          NULL,
          NULL,
          {{"begin_sequence_number", NULL, -1},
           {"last_enqueued_sequence_number", NULL, -1},
           {"last_enqueued_offset", "-1", 0},
           {"last_enqueued_time_utc", NULL, 5}}},
         {0, 0, 0, 0}},
        {{200,
          NULL,
          NULL,
          {{"begin_sequence_number", NULL, 0},
           {"last_enqueued_sequence_number", NULL, 0},
           {"last_enqueued_offset", "9223372036854775807", 0},
           {"last_enqueued_time_utc", NULL, 5},
           {"is_partition_empty", NULL, 0}}},
         {0, 1, INT64_MAX, 5}},
        {{200,
          NULL,
          NULL,
          {{"begin_sequence_number", NULL, 2},
           {"last_enqueued_sequence_number", NULL, 8},
           {"last_enqueued_offset", "00000000000000000000012", 0}, /* as long as one may be */
           {"is_partition_empty", NULL, 1}}},
         {9, 9, 12, 0}},
        {{200, NULL, NULL, {{"last_enqueued_offset", "000000000000000000000012", 0}}},
         {.next_sequence = 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct weir_partition_info *want = &cases[i].info;
        struct weir_partition_info info;
        atomic_store(&current, &cases[i].answer);
        assert_ok(weir_partition_info(w, "h", 0, &info, &err));
        assert_int_equal(info.begin_sequence, want->begin_sequence);
        assert_int_equal(info.next_sequence, want->next_sequence);
        assert_int_equal(info.last_offset, want->last_offset);
        assert_int_equal(info.last_time_ms, want->last_time_ms);
    }
}

static void assert_hub(const struct answer *a, const char *name)
{
    struct weir_hub_info info;

    atomic_store(&current, a);
    assert_ok(weir_hub_info(w, "h", &info, &err));
    assert_string_equal(info.name, name);
    assert_int_equal(info.partitions, 4);
    assert_int_equal(info.created_ms, 1700000000123);
    assert_int_equal(info.groups, 2);
    assert_int_equal(info.retain_ms, -1);
    assert_int_equal(info.retain_bytes, 4096);
}

/* A name that no hub can have is none. */
static void hubs_are_read(void **state)
{
    static char longest[WEIR_NAME_BYTES], longer[WEIR_NAME_BYTES + 1];
    static const char *const names[] = {"", longest, longer};
    static struct answer answers[3];

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    memset(longer, 'x', sizeof longer - 1);
    for (int i = 0; i < 3; i++)
        answers[i] = (struct answer){200,
                                     NULL,
                                     NULL,
                                     {{"name", names[i], 0},
                                      {"partition_count", NULL, 4},
                                      {"created_at", NULL, 1700000000123},
                                      {"weir:group_count", NULL, 2},
                                      {"weir:retain_ms", NULL, -1},
                                      {"weir:retain_bytes", NULL, 4096}}};
    assert_hub(&answers[0], "");
    assert_hub(&answers[1], longest);
    assert_hub(&answers[2], "");
}

/* What cannot be cured is told at once, with the reason that was given. */
static void refusals_are_told(void **state)
{
    static const struct {
        struct answer answer;
        int code;
        const char *text;
    } cases[] = {
        {{404, NULL, NULL, {{0}}}, WEIR_ENOTFOUND, "amqp:not-found"},
        {{404, NULL, "no such hub", {{0}}}, WEIR_ENOTFOUND, "no such hub (amqp:not-found)"},
        {{401, NULL, "who?", {{0}}}, WEIR_EDENIED, "who? (amqp:unauthorized-access)"},
        {{300, "amqp:not-implemented", "", {{0}}}, WEIR_ENOTSUP, "amqp:not-implemented"},
        {{199, "amqp:not-allowed", "no", {{0}}}, WEIR_EINVAL, "no (amqp:not-allowed)"},
    };
    struct weir_receiver_options latest = {.size = sizeof latest,
                                           .position.from = WEIR_FROM_LATEST};
    char text[WEIR_ERROR_TEXT_BYTES];
    struct weir_receiver *r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_partition_info partition;
        struct weir_hub_info hub;
        atomic_store(&current, &cases[i].answer);
        assert_int_equal(weir_hub_info(w, "h", &hub, &err), cases[i].code);
        snprintf(text, sizeof text, "hub 'h': %s", cases[i].text);
        assert_string_equal(err.text, text);
        assert_int_equal(weir_partition_info(w, "h", 7, &partition, &err), cases[i].code);
        snprintf(text, sizeof text, "hub 'h', partition 7: %s", cases[i].text);
        assert_string_equal(err.text, text);
        assert_int_equal(weir_receiver_open(&r, w, "h", 7, &latest, &err), cases[i].code);
        assert_string_equal(err.text, text); /* it asks for the last event first */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_are_read),
        cmocka_unit_test(hubs_are_read),
        cmocka_unit_test(refusals_are_told),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
