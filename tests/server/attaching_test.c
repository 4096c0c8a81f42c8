/* attaching_test.c - who comes, and the links that are refused: what is said to the client and to the
 * log, word for word. */
#include "server/links.h"
#include "support/allocs.h"

#define FOUR "xxxx"
#define SIXTEEN FOUR FOUR FOUR FOUR
#define X64 SIXTEEN SIXTEEN SIXTEEN SIXTEEN
#define X200 X64 X64 X64 FOUR FOUR
#define X255 X64 X64 X64 SIXTEEN SIXTEEN SIXTEEN FOUR FOUR FOUR "xxx"
#define NOT_FOUND(what)                                                                            \
    "The messaging entity 'sb://" what "' could not be found. To know more visit "                 \
    "https://aka.ms/sbResourceMgrExceptions."
#define SHAPES                                                                                     \
    "Invalid EventHub address. It must be either of the following. Sender: <EventHubName>. "       \
    "Partition Sender: <EventHubName>/Partitions/<PartitionNumber>. Partition Receiver: "          \
    "<EventHubName>/ConsumerGroups/<ConsumerGroupName>/Partitions/<PartitionNumber>."
#define PLACE "eh1/ConsumerGroups/$Default/Partitions/1"

/* Another client with these options comes instead of the first. */
static void come_again(struct scene *s, struct weir__amqp_options theirs)
{
    struct weir__amqp_options ours = {.mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_MSSBCBS) |
                                                    WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN) |
                                                    WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_ANONYMOUS)};

    weir__amqp_free(s->c.engine);
    weir__amqp_free(s->client);
    memset(s->c.host, 0, sizeof s->c.host);
    s->lines[0] = '\0';
    theirs.client = true;
    assert_int_equal(weir__amqp_new(&s->client, &theirs, NULL), 0);
    assert_int_equal(weir__amqp_new(&s->c.engine, &ours, NULL), 0);
    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    talk(s);
}

static void let_in(struct scene *s, unsigned rights)
{
    struct weir__claim claim = {.rights = rights, .expires_s = INT64_MAX};

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
}

static void expect_refusal(struct scene *s, const char *condition, const char *text)
{
    assert_int_equal(s->detached, 1);
    s->detached = 0;
    assert_string_equal(s->condition, condition);
    assert_string_equal(s->text, text);
}

/* ---- who comes ---- */

/* The name by which the client found us is in the texts; one that is too long is cut. */
static void our_name_is_what_the_client_calls_us(void **state)
{
    static const struct {
        const char *name, *hub, *group;
    } rows[] = {
        {"h", NOT_FOUND("h/eh2"), "The messaging entity 'h:eventhub:eh1|g' could not be found."},
        {"ns.example", NOT_FOUND("ns.example/eh2"),
         "The messaging entity 'ns.example:eventhub:eh1|g' could not be found."},
        {X255, NOT_FOUND(X255 "/eh2"),
         "The messaging entity '" X255 ":eventhub:eh1|g' could not be found."},
        {X255 "y", NOT_FOUND(X255 "/eh2"),
         "The messaging entity '" X255 ":eventhub:eh1|g' could not be found."},
    };
    struct scene *s = *state;

    let_in(s, WEIR__RIGHTS_ALL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        come_again(s, (struct weir__amqp_options){.hostname = rows[i].name});
        attach(s, WEIR__AMQP_SENDER, "s", "eh2", NULL, (struct weir__amqp_terms){0});
        expect_refusal(s, "amqp:not-found", rows[i].hub);
        attach(s, WEIR__AMQP_RECEIVER, "r", "eh1/ConsumerGroups/g/Partitions/0", NULL,
               (struct weir__amqp_terms){0});
        expect_refusal(s, "amqp:not-found", rows[i].group);
    }
}

static void a_key_is_enough(void **state)
{
    struct weir__rule rule = {.name = "till", .rights = WEIR__RIGHT_SEND, .key = {"k1", "k2"}};
    static const struct {
        const char *user, *password, *line;
        bool let_in;
    } rows[] = {
        {"till", "k1", "?: logged in\n", true},
        {"till", "k2", "?: logged in\n", true},
        {"till", "k3", "?: refused: there is no access rule 'till' with this key\n", false},
        {"tills", "k1", "?: refused: there is no access rule 'tills' with this key\n", false},
        {X64, "k1", "?: refused: there is no access rule '" X64 "' with this key\n", false},
        {X64 "y", "k1", "?: refused: there is no access rule '" X64 "' with this key\n", false},
    };
    struct scene *s = *state;

    assert_int_equal(weir__namespace_rule_add(s->world.ns, NULL, &rule, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir__claims_fini(&s->c.claims);
        s->c.trusted = false;
        come_again(s, (struct weir__amqp_options){.mechanisms =
                                                      WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                                  .user = rows[i].user,
                                                  .password = rows[i].password});
        assert_string_equal(s->lines, rows[i].line);
        assert_int_equal(s->c.trusted, rows[i].let_in);
        assert_int_equal(s->c.claims.count, rows[i].let_in);
        assert_int_equal(weir__amqp_closed(s->client), !rows[i].let_in);
    }
}

/* A client that will show its token later, or says nothing, comes in, and has no rights yet. */
static void anybody_may_come_in(void **state)
{
    static const enum weir__amqp_mechanism with[] = {WEIR__AMQP_MSSBCBS, WEIR__AMQP_ANONYMOUS};
    struct scene *s = *state;

    for (int i = 0; i < 2; i++) {
        come_again(s, (struct weir__amqp_options){.mechanisms = WEIR__AMQP_MECHANISM_SET(with[i])});
        assert_false(weir__amqp_closed(s->client));
        assert_false(s->c.trusted);
        attach(s, WEIR__AMQP_SENDER, "s", "eh1", NULL, (struct weir__amqp_terms){0});
        expect_refusal(s, "amqp:unauthorized-access",
                       "Unauthorized access. 'Send' claim(s) are required to perform this "
                       "operation.");
    }
}

/* Whatever it shows later. */
static void who_logs_in_is_logged_once(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 2; i++) {
        weir__connection_trust(&s->c);
        assert_true(s->c.trusted);
        assert_string_equal(s->lines, "?: logged in\n");
    }
}

/* ---- links that are refused ---- */

static void an_address_is_of_something(void **state)
{
    static const struct {
        bool role;
        const char *address, *condition, *text;
    } rows[] = {
        {WEIR__AMQP_RECEIVER, "eh1", "amqp:not-found", NOT_FOUND("localhost/eh1")},
        {WEIR__AMQP_RECEIVER, "Partitions", "amqp:not-found", NOT_FOUND("localhost/Partitions")},
        {WEIR__AMQP_RECEIVER, "eh1/Partition", "amqp:not-found",
         NOT_FOUND("localhost/eh1/Partition")},
        {WEIR__AMQP_RECEIVER, "eh1-Partitions", "amqp:not-found",
         NOT_FOUND("localhost/eh1-Partitions")},
        {WEIR__AMQP_RECEIVER, "e/Partitions", "com.microsoft:argument-error", SHAPES},
        {WEIR__AMQP_SENDER, "eh1/a/pARTITIONS", "com.microsoft:argument-error", SHAPES},
        {WEIR__AMQP_SENDER, PLACE, "amqp:not-found", NOT_FOUND("localhost/" PLACE)},
        {WEIR__AMQP_SENDER, X200, "amqp:not-found", NOT_FOUND("localhost/" X200)},
        {WEIR__AMQP_SENDER, X200 "y", "amqp:not-found", NOT_FOUND("localhost/" X200)},
    };
    struct scene *s = *state;

    let_in(s, WEIR__RIGHTS_ALL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        attach(s, rows[i].role, "l", rows[i].address, NULL, (struct weir__amqp_terms){0});
        expect_refusal(s, rows[i].condition, rows[i].text);
    }
}

/* A coordinator of transactions. */
static void a_target_without_an_address(void **state)
{
    static const uint8_t coordinator[] = {0x00, 0x53, 0x30, 0x45};
    struct weir__amqp_cursor at =
        weir__amqp_cursor_of(weir__bytes_of(coordinator, sizeof coordinator));
    struct weir__amqp_terms terms = {.name = weir__bytes_of("l", 1), .role = WEIR__AMQP_SENDER};
    struct weir__amqp_link *link;
    struct scene *s = *state;

    let_in(s, WEIR__RIGHTS_ALL);
    assert_true(weir__amqp_read(&at, &terms.target));
    assert_int_equal(weir__amqp_attach(s->session, &terms, &link, NULL), 0);
    talk(s);
    assert_int_equal(s->detached, 1);
    assert_string_equal(s->condition, "amqp:not-implemented");
    assert_string_equal(s->text, "a link without an address: coordinator does not belong here");
}

/* A receiver's own end without an address is repeated, for uAMQP; both are for a lost place. */
static void which_ends_a_refusal_repeats(void **state)
{
    static const struct {
        bool role;
        const char *address, *own;
        bool source, target;
    } rows[] = {
        {WEIR__AMQP_SENDER, "eh2", NULL, false, false},
        {WEIR__AMQP_RECEIVER, "eh2", NULL, false, true},
        {WEIR__AMQP_RECEIVER, "eh2", "", false, true},
        {WEIR__AMQP_RECEIVER, "eh2", "x", false, false},
        {WEIR__AMQP_RECEIVER, PLACE, NULL, true, true},
        {WEIR__AMQP_RECEIVER, PLACE, "x", true, true},
    };
    struct weir__receiver *owner;
    struct weir__hub *hub;
    struct scene *s = *state;

    let_in(s, WEIR__RIGHTS_ALL);
    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    assert_int_equal(weir__receiver_attach(&owner, hub,
                                           &(struct weir__receiver_options){.group = "$Default",
                                                                            .partition = 1,
                                                                            .epoch = 1,
                                                                            .credit = 1},
                                           NULL),
                     0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s->source = s->target = !rows[i].target;
        attach(s, rows[i].role, "l", rows[i].address, rows[i].own, (struct weir__amqp_terms){0});
        assert_int_equal(s->detached, i + 1);
        if (s->source != rows[i].source || s->target != rows[i].target)
            fail_msg("%zu: source %d, target %d", i, s->source, s->target);
    }
    weir__receiver_close(owner);
    weir__hub_release(hub);
}

/* Each, for who has logged in; of the others only some, and how many more. */
static void a_refusal_is_logged(void **state)
{
#define LINE "?: link 'some name' refused: " NOT_FOUND("localhost/eh2") "\n"
    struct scene *s = *state;

    for (int i = 0; i < WEIR__SERVER_REFUSALS_MAX + 2; i++) {
        s->lines[0] = '\0';
        attach(s, WEIR__AMQP_RECEIVER, "some name", "eh2", NULL, (struct weir__amqp_terms){0});
        assert_string_equal(s->lines, i < WEIR__SERVER_REFUSALS_MAX ? LINE : "");
    }
    s->c.trusted = true;
    attach(s, WEIR__AMQP_RECEIVER, "some name", "eh2", NULL, (struct weir__amqp_terms){0});
    assert_string_equal(s->lines, LINE);
#undef LINE
}

/* Answers the client's wishes, without memory for the at-th allocation; whether there was one. */
static bool answer_without(struct scene *s, uint64_t at)
{
    bool failed = false;

    carry(s->client, s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event)) {
        bool is_attach = s->c.event.type == WEIR__AMQP_EVENT_ATTACH;
        if (is_attach) allocs_fail(at);
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
        if (is_attach) failed = allocs_failed();
        allocs_fail(0);
    }
    talk(s);
    return failed;
}

/* Wherever memory ends, the link is refused, and nothing of it is left; or there was enough. */
static void no_memory_for_a_link(void **state)
{
    static const struct {
        bool role;
        const char *address;
    } rows[] = {{WEIR__AMQP_SENDER, "eh1"}, {WEIR__AMQP_RECEIVER, "$management"}};
    struct scene *s = *state;
    char name[16];

    let_in(s, WEIR__RIGHTS_ALL);
    attach(s, WEIR__AMQP_SENDER, "first", "eh1", NULL, (struct weir__amqp_terms){0}); /* opens it */
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t at = 1;
        for (bool failed = true; failed; at++) {
            snprintf(name, sizeof name, "%u.%u", i, (unsigned)at);
            ask_link(s, rows[i].role, name, rows[i].address, NULL, (struct weir__amqp_terms){0});
            failed = answer_without(s, at);
            assert_int_equal(s->detached, failed);
            assert_int_equal(atomic_load(&s->server.links), 1 + i + !failed);
            if (failed) assert_string_equal(s->condition, WEIR__COND_SERVER_BUSY);
            s->detached = 0;
        }
        assert_true(at > 2);
    }
}

/* Whoever says goodbye is told nothing more; why it went is for the log, if it says so. */
static void a_client_that_closes_is_done(void **state)
{
    const struct weir__amqp_error error = weir__amqp_error_of("amqp:internal-error", "it broke");
    struct scene *s = *state;

    assert_false(s->c.closing);
    s->c.trusted = true;
    weir__amqp_close(s->client, &error);
    talk(s);
    assert_true(s->c.closing);
    assert_true(weir__amqp_closed(s->c.engine));
    assert_string_equal(s->lines, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(our_name_is_what_the_client_calls_us),
        TEST(a_key_is_enough),
        TEST(anybody_may_come_in),
        TEST(who_logs_in_is_logged_once),
        TEST(an_address_is_of_something),
        TEST(a_target_without_an_address),
        TEST(which_ends_a_refusal_repeats),
        TEST(a_refusal_is_logged),
        TEST(no_memory_for_a_link),
        TEST(a_client_that_closes_is_done),
    };

    return cmocka_run_group_tests_name("attaching", tests, NULL, NULL);
}
