/* What $cbs and $management answer, without a wire: the same calls that desk.c makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/state.h"
#include "support/allocs.h"
#include "support/tempdir.h"

/* Made by Microsoft's JavaScript client for sb://localhost/eh1, good until second 1700000000. */
#define TOKEN                                                                                      \
    "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                         \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey"
#define END (char *)NULL /* of the names and values given to ask */
#define SAS "servicebus.windows.net:sastoken"

struct scene {
    char dir[TEMPDIR_BYTES];
    int64_t now_ms;
    struct weir__server server;
    struct weir__connection connection;
    struct weir__buf pairs, body;
    struct weir__amqp_writer writer;
    struct weir__request request;
    struct weir__refusal refusal;
    struct weir__amqp_value reply;
};

static int64_t tell_time(void *self)
{
    return ((struct scene *)self)->now_ms;
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir__rule rule = {"RootManageSharedAccessKey", WEIR__RIGHTS_ALL, {"SAS_KEY_VALUE", ""}};
    struct weir__hub_config hub = {.name = "eh1", .partitions = 3};

    assert_int_equal(tempdir_make(s->dir), 0);
    assert_int_equal(weir__namespace_open(&s->server.ns, s->dir, NULL, NULL), 0);
    assert_int_equal(weir__namespace_rule_add(s->server.ns, NULL, &rule, NULL), 0);
    assert_int_equal(weir__namespace_hub_create(s->server.ns, &hub, NULL), 0);
    s->now_ms = INT64_C(1699999000000);
    s->server.clock = (struct weir__clock){.wall_ms = tell_time, .mono_ms = tell_time, .self = s};
    weir__mutex_init(&s->server.lock);
    weir__report_init(&s->server);
    s->connection.server = &s->server;
    snprintf(s->connection.host, sizeof s->connection.host, "localhost");
    assert_int_equal(weir__amqp_new(&s->connection.engine, &(struct weir__amqp_options){0}, NULL),
                     0);
    weir__buf_init(&s->pairs, 65536);
    weir__buf_init(&s->body, 65536);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__amqp_free(s->connection.engine);
    weir__mutex_fini(&s->server.lock);
    weir__claims_fini(&s->connection.claims);
    assert_int_equal(weir__namespace_close(s->server.ns, NULL), 0);
    weir__buf_fini(&s->pairs);
    weir__buf_fini(&s->body);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

static struct weir__amqp_value text(const char *t)
{
    return weir__amqp_bytes(WEIR__AMQP_STRING, t, strlen(t));
}

/* Asks with application properties: names and texts in turn, NULL ends them. */
static int ask(struct scene *s, weir__request_fn answer, const char *body, ...)
{
    struct weir__amqp_cursor at;
    uint32_t count = 0;
    const char *t;
    va_list args;
    size_t mark;
    int rc;

    s->pairs.len = s->body.len = 0;
    weir__amqp_writer_append(&s->writer, &s->pairs);
    mark = weir__amqp_put_open(&s->writer);
    va_start(args, body);
    for (; (t = va_arg(args, const char *)); count++) weir__amqp_put(&s->writer, text(t));
    va_end(args);
    weir__amqp_put_close(&s->writer, mark, WEIR__AMQP_MAP, count);
    assert_int_equal(weir__amqp_writer_finish(&s->writer, NULL, NULL), 0);
    at = weir__amqp_cursor_of(weir__buf_bytes(&s->pairs));
    s->request = (struct weir__request){.connection = &s->connection};
    assert_true(weir__amqp_read(&at, &s->request.properties));
    if (body) s->request.body = text(body);
    s->refusal = (struct weir__refusal){{0}, NULL};
    weir__amqp_writer_append(&s->writer, &s->body);
    rc = answer(&s->request, &s->writer, &s->refusal);
    if (rc == 0) rc = weir__amqp_writer_finish(&s->writer, NULL, &s->refusal.why);
    at = weir__amqp_cursor_of(weir__buf_bytes(&s->body));
    s->reply = (struct weir__amqp_value){0};
    if (rc == 0 && s->body.len) assert_true(weir__amqp_read(&at, &s->reply));
    return rc;
}

static int put_token(struct scene *s, const char *token, const char *audience)
{
    return ask(s, weir__cbs_answer, token, "operation", "put-token", "type", SAS, "name", audience,
               END);
}

static struct weir__amqp_value field(struct scene *s, const char *name, enum weir__amqp_type type)
{
    struct weir__amqp_value v;

    assert_true(weir__amqp_map_find(&s->reply, name, &v));
    assert_int_equal(v.type, type);
    return v;
}

static void assert_text(struct weir__amqp_value v, const char *want)
{
    assert_int_equal(v.bytes.len, strlen(want));
    assert_memory_equal(v.bytes.at, want, v.bytes.len);
}

static void a_good_token(void **state)
{
    struct scene *s = *state;

    assert_int_equal(put_token(s, TOKEN, "sb://localhost:5672/eh1/Partitions/1"), 0);
    assert_true(s->connection.trusted);
    assert_int_equal(s->connection.claims.count, 1);
    assert_string_equal(s->connection.claims.at[0]->path, "eh1/Partitions/1");
    assert_int_equal(s->connection.claims.at[0]->expires_s, 1700000000);
    assert_int_equal(s->connection.claims.at[0]->rights, WEIR__RIGHTS_ALL);
}

/* With the key that signed the token its claim is worth nothing any more. */
static void a_claim_rests_on_its_key(void **state)
{
    struct scene *s = *state;
    const struct weir__access_path path = {.text = "eh1"};
    const struct weir__claim_kept *claim;

    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    claim = s->connection.claims.at[0];
    assert_int_equal(weir__namespace_rights(s->server.ns, &claim->basis, &path), WEIR__RIGHTS_ALL);
    assert_int_equal(weir__namespace_rule_rotate(s->server.ns, NULL, "RootManageSharedAccessKey",
                                                 WEIR__KEY_PRIMARY, "other", NULL),
                     0);
    assert_int_equal(weir__namespace_rights(s->server.ns, &claim->basis, &path), 0);
}

/* An audience has no escapes, whether or not they could be undone. */
static void a_claim_is_for_what_was_said(void **state)
{
    static const char *const paths[] = {"eh1/%31", "eh1/%zz", "eh1/Partitions%2F1"};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char audience[64];
        snprintf(audience, sizeof audience, "sb://localhost/%s", paths[i]);
        assert_int_equal(put_token(s, TOKEN, audience), 0);
        assert_int_equal(s->connection.claims.count, 1);
        assert_string_equal(s->connection.claims.at[0]->path, paths[i]);
        weir__claims_fini(&s->connection.claims);
    }
}

static void bad_tokens(void **state)
{
    struct scene *s = *state;

    assert_false(s->connection.refused);
    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh2"), WEIR_EDENIED);
    assert_true(s->connection.refused);
    assert_non_null(strstr(s->refusal.why.text, "InvalidAudience: "));
    assert_string_equal(s->refusal.condition, WEIR__COND_AUTH_FAILED);
    assert_int_equal(put_token(s, "nonsense", "sb://localhost/eh1"), WEIR_EDENIED);
    assert_non_null(strstr(s->refusal.why.text, "MalformedToken: "));
    assert_int_equal(put_token(s, NULL, "sb://localhost/eh1"), WEIR_EDENIED);
    assert_string_equal(s->refusal.why.text, "MalformedToken: The body has no token.");
    assert_string_equal(s->refusal.condition, WEIR__COND_AUTH_FAILED);
    s->now_ms = INT64_C(1700000000000);
    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), WEIR_EDENIED);
    assert_string_equal(s->refusal.why.text, "ExpiredToken: The token is expired. Expiration time: "
                                             "'2023-11-14 22:13:20Z'");
    assert_false(s->connection.trusted);
    assert_int_equal(s->connection.claims.count, 0);
}

/* The token is good, so its client is known; but there is nothing that it could be for. */
static void a_token_for_a_hub_that_is_gone(void **state)
{
    struct scene *s = *state;

    assert_int_equal(weir__namespace_hub_delete(s->server.ns, "eh1", NULL), 0);
    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), WEIR_ENOTFOUND);
    assert_string_equal(s->refusal.why.text,
                        "The messaging entity 'sb://localhost/eh1' could not be found. To know "
                        "more visit https://aka.ms/sbResourceMgrExceptions.");
    assert_null(s->refusal.condition);
    assert_true(s->connection.trusted);
    assert_false(s->connection.refused);
    assert_int_equal(s->connection.claims.count, 0);
    assert_int_equal(atomic_load(&s->server.logins_refused), 0);
}

static void other_kinds_of_tokens(void **state)
{
    static const char *const types[] = {"jwu", "jw", "servicebus.windows.net:sastokem", ""};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char want[256];

        snprintf(want, sizeof want,
                 "InvalidToken: Tokens of type '%s' are not accepted here; use a connection string "
                 "with a shared access key.",
                 types[i]);
        assert_int_equal(ask(s, weir__cbs_answer, TOKEN, "operation", "put-token", "type", types[i],
                             "name", "sb://localhost/eh1", END),
                         WEIR_EDENIED);
        assert_string_equal(s->refusal.why.text, want);
        assert_string_equal(s->refusal.condition, WEIR__COND_AUTH_FAILED);
    }
    assert_int_equal(ask(s, weir__cbs_answer, TOKEN, "operation", "put-tokem", END), WEIR_EINVAL);
    assert_string_equal(s->refusal.why.text, "Invalid command 'put-tokem'.");
    assert_int_equal(ask(s, weir__cbs_answer, "a.b.c", "operation", "put-token", "type", "jwt",
                         "name", "sb://localhost/eh1", END),
                     WEIR_EDENIED);
    assert_string_equal(s->refusal.condition, WEIR__COND_AUTH_FAILED);
    assert_int_equal(ask(s, weir__cbs_answer, TOKEN, "operation", "delete-token", END),
                     WEIR_EINVAL);
    assert_string_equal(s->refusal.condition, WEIR__AMQP_COND_NOT_ALLOWED);
}

static void a_hub_has_exact_types(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_items items;
    struct weir__amqp_value ids, id;

    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "EH1",
                         "type", "com.microsoft:eventhub", "security_token", TOKEN, END),
                     0);
    assert_true(s->connection.trusted);
    assert_int_equal(s->reply.type, WEIR__AMQP_MAP);
    assert_int_equal(s->reply.count, 12);
    assert_text(field(s, "name", WEIR__AMQP_STRING), "eh1");
    assert_text(field(s, "type", WEIR__AMQP_STRING), "com.microsoft:eventhub");
    assert_true(field(s, "created_at", WEIR__AMQP_TIMESTAMP).i > 0);
    assert_int_equal(field(s, "partition_count", WEIR__AMQP_INT).i, 3);
    assert_int_equal(field(s, "georeplication_factor", WEIR__AMQP_INT).i, 1);
    ids = field(s, "partition_ids", WEIR__AMQP_ARRAY);
    assert_int_equal(ids.count, 3);
    weir__amqp_items_init(&items, &ids);
    for (int i = 0; i < 3; i++) {
        assert_true(weir__amqp_items_next(&items, &id));
        assert_int_equal(id.type, WEIR__AMQP_STRING);
        assert_text(id, (char[]){(char)('0' + i), 0});
    }
}

static void an_empty_partition_has_exact_types(void **state)
{
    struct scene *s = *state;

    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:partition", "partition", "2", END),
                     0);
    assert_int_equal(s->reply.count, 20);
    assert_text(field(s, "name", WEIR__AMQP_STRING), "eh1");
    assert_text(field(s, "type", WEIR__AMQP_STRING), "com.microsoft:partition");
    assert_text(field(s, "partition", WEIR__AMQP_STRING), "2");
    assert_int_equal(field(s, "begin_sequence_number", WEIR__AMQP_LONG).i, -1);
    assert_int_equal(field(s, "begin_sequence_number_epoch", WEIR__AMQP_INT).i, -1);
    assert_int_equal(field(s, "last_enqueued_sequence_number", WEIR__AMQP_LONG).i, -1);
    assert_int_equal(field(s, "last_enqueued_sequence_number_epoch", WEIR__AMQP_INT).i, -1);
    assert_text(field(s, "last_enqueued_offset", WEIR__AMQP_STRING), "-1");
    assert_int_equal(field(s, "last_enqueued_time_utc", WEIR__AMQP_TIMESTAMP).i,
                     INT64_C(-62135596800000));
    assert_int_equal(field(s, "is_partition_empty", WEIR__AMQP_BOOL).u, 1);
}

/* Nobody is known by a bad token, and nothing else is said. */
static void a_bad_token_of_a_question_is_none(void **state)
{
    struct scene *s = *state;

    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:eventhub", "security_token", "nonsense", END),
                     WEIR_EDENIED);
    assert_false(s->connection.trusted);
    assert_int_equal(s->body.len, 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:partition", "partition", "3", "security_token",
                         TOKEN, END),
                     WEIR_EINVAL);
    assert_true(s->connection.trusted);
    assert_int_equal(s->body.len, 0);
    assert_int_equal(s->connection.claims.count, 0); /* it was for this question */
}

static void what_is_not_there(void **state)
{
    struct scene *s = *state;

    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:partition", "partition", "3", END),
                     WEIR_EINVAL);
    assert_string_equal(s->refusal.condition, WEIR__COND_RANGE);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:partition", END),
                     WEIR_EINVAL);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh2",
                         "type", "com.microsoft:eventhub", END),
                     WEIR_EDENIED);
    assert_string_equal(s->refusal.why.text, "Unauthorized access. 'Manage,Send,Listen' claim(s) "
                                             "are required to perform this operation.");
    assert_null(s->refusal.condition);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh%31",
                         "type", "com.microsoft:eventhub", END),
                     WEIR_EDENIED); /* a name has no escapes */
    assert_int_equal(atomic_load(&s->server.logins_refused), 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:eventhub", "security_token", "nonsense", END),
                     WEIR_EDENIED);
    assert_string_equal(s->refusal.condition, WEIR__COND_AUTH_FAILED);
    assert_int_equal(atomic_load(&s->server.logins_refused), 1);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:eventhuB", END),
                     WEIR_EINVAL);
    assert_string_equal(s->refusal.why.text, "Invalid type 'com.microsoft:eventhuB'.");
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "REA", END), WEIR_EINVAL);
    assert_string_equal(s->refusal.why.text, "Invalid command 'REA'.");
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "WRITE", "name", "eh1",
                         "type", "com.microsoft:eventhub", END),
                     WEIR_EINVAL);
    assert_string_equal(s->refusal.why.text, "Invalid command 'WRITE'.");
}

/* The longest name there may be is read whole; its own token is asked for before it is looked for. */
static void the_longest_name(void **state)
{
    struct scene *s = *state;
    char name[WEIR__HUB_NAME_MAX + 1];
    struct weir__hub_config hub = {.partitions = 11};
    struct weir__claim claim = {.rights = WEIR__RIGHT_LISTEN, .expires_s = INT64_MAX};
    struct weir__amqp_value ids, id;
    struct weir__amqp_items items;

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    hub.name = name;
    assert_int_equal(weir__namespace_hub_create(s->server.ns, &hub, NULL), 0);
    assert_int_equal(weir__claims_add(&s->connection.claims, &claim, 0, NULL), 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", name,
                         "type", "com.microsoft:eventhub", END),
                     0);
    assert_text(field(s, "name", WEIR__AMQP_STRING), name);
    ids = field(s, "partition_ids", WEIR__AMQP_ARRAY);
    assert_int_equal(ids.count, 11);
    weir__amqp_items_init(&items, &ids);
    for (int i = 0; i < 11; i++) assert_true(weir__amqp_items_next(&items, &id));
    assert_text(id, "10");
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", name,
                         "type", "com.microsoft:partition", "partition", "10", END),
                     0);
    assert_text(field(s, "partition", WEIR__AMQP_STRING), "10");
}

/* What our own client asks for beside; retention is as it is in force. */
static void a_hub_tells_more_to_our_own_client(void **state)
{
    struct scene *s = *state;

    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:eventhub", "weir:details", "yes", END),
                     0);
    assert_int_equal(s->reply.count, 18);
    assert_int_equal(field(s, "weir:group_count", WEIR__AMQP_INT).i, 1);
    assert_int_equal(field(s, "weir:retain_ms", WEIR__AMQP_LONG).i, 604800000);
    assert_int_equal(field(s, "weir:retain_bytes", WEIR__AMQP_LONG).i, 0);
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                         "type", "com.microsoft:eventhub", "weir:details", "", END),
                     0);
    assert_int_equal(s->reply.count, 12);
}

/* What a client sent is quoted up to 64 bytes; names that are too long are nobody's. */
static void long_words_are_cut(void **state)
{
#define WORD "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
    static const char *const words[] = {WORD, WORD "x"};
    struct scene *s = *state;
    char name[WEIR__HUB_NAME_MAX + 2], digits[64];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(s, weir__cbs_answer, TOKEN, "operation", &WORD[1], END), WEIR_EINVAL);
        assert_int_equal(strlen(s->refusal.why.text), strlen("Invalid command ''.") + 63);
        assert_int_equal(ask(s, weir__cbs_answer, TOKEN, "operation", words[i], END), WEIR_EINVAL);
        assert_string_equal(s->refusal.why.text, "Invalid command '" WORD "'.");
        assert_int_equal(ask(s, weir__cbs_answer, TOKEN, "operation", "put-token", "type", words[i],
                             END),
                         WEIR_EDENIED);
        assert_string_equal(s->refusal.why.text,
                            "InvalidToken: Tokens of type '" WORD "' are not accepted here; use a "
                            "connection string with a shared access key.");
        assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "type",
                             words[i], END),
                         WEIR_EINVAL);
        assert_string_equal(s->refusal.why.text, "Invalid type '" WORD "'.");
        assert_string_equal(s->refusal.condition, WEIR__AMQP_COND_NOT_ALLOWED);
    }
    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", name,
                         "type", "com.microsoft:eventhub", END),
                     WEIR_EDENIED);
    for (size_t len = WEIR__ADDRESS_PARTITION_MAX; len < sizeof digits; len++) {
        memset(digits, '0', len);
        digits[len] = '\0';
        assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                             "type", "com.microsoft:partition", "partition", digits, END),
                         WEIR_EINVAL);
    }
}

/* Wherever memory ends, the client is told, and nothing is half said. */
static void no_memory_for_an_answer(void **state)
{
    struct scene *s = *state;
    bool failed = true, told = false;

    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    for (uint64_t at = 1; failed; at++) {
        int rc;
        allocs_fail(at);
        rc = ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1", "type",
                 "com.microsoft:eventhub", END);
        failed = allocs_failed();
        allocs_fail(0);
        assert_int_equal(rc != 0, failed);
        assert_int_equal(s->refusal.why.code, rc);
        told |= rc == WEIR_ENOMEM && !strcmp(s->refusal.why.text, "out of memory for a reply");
    }
    assert_true(told);
}

static void a_partition_with_events(void **state)
{
    struct scene *s = *state;
    static const uint8_t message[] = {0, 0x53, 0x75, 0xa0, 1, 'x'};
    struct weir__log_receipt receipt;
    struct weir__batch batch;
    struct weir__hub *hub;
    char offset[24];

    assert_int_equal(put_token(s, TOKEN, "sb://localhost/eh1"), 0);
    assert_int_equal(weir__batch_of_payload(&batch, 0, weir__bytes_of(message, sizeof message), 0,
                                            NULL),
                     0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__namespace_use(s->server.ns, "eh1", &hub, NULL), 0);
        assert_int_equal(weir__hub_publish_wait(hub, &batch, 2, NULL, INT64_MAX, &receipt, NULL),
                         0);
        weir__hub_release(hub);
        assert_int_equal(ask(s, weir__management_answer, NULL, "operation", "READ", "name", "eh1",
                             "type", "com.microsoft:partition", "partition", "2", END),
                         0);
        assert_int_equal(field(s, "begin_sequence_number", WEIR__AMQP_LONG).i, 0);
        assert_int_equal(field(s, "last_enqueued_sequence_number", WEIR__AMQP_LONG).i, i);
        assert_int_equal(field(s, "last_enqueued_time_utc", WEIR__AMQP_TIMESTAMP).i,
                         receipt.time_ms);
        snprintf(offset, sizeof offset, "%lld", (long long)receipt.offset);
        assert_text(field(s, "last_enqueued_offset", WEIR__AMQP_STRING), offset);
        assert_int_equal(field(s, "is_partition_empty", WEIR__AMQP_BOOL).u, 0);
    }
    assert_true(receipt.offset > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_claim_is_for_what_was_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_claim_rests_on_its_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_token_of_a_question_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_token_for_a_hub_that_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_kinds_of_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hub_has_exact_types, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_partition_has_exact_types, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_longest_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hub_tells_more_to_our_own_client, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_words_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_memory_for_an_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_partition_with_events, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
