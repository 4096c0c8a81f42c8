/* What a client says on a connection, word for word, and what it makes of the answers about hubs and
 * partitions, from a server that is not ours. */
#include "client/contract/place.h"

#include "amqp/engine.h"
#include "client/blunt.h"

#define WIDE 255 /* handles of a session */
#define HANG_S 60
#define LINES_MAX 64
#define LINE_BYTES 1024

static char lines[LINES_MAX][LINE_BYTES]; /* that were heard; the server's until it is stopped */
static unsigned line_count;

static struct weir *open_blunt(const struct blunt *b)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    char text[256];
    struct weir *w;

    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             b->address);
    assert_ok(weir_open(&w, text, &o, &err));
    return w;
}

static void close_both(struct weir *w, struct blunt *b)
{
    assert_ok(weir_close(w, &err));
    assert_int_equal(atomic_load(&b->connections), 1);
    blunt_stop(b);
}

static int start(void **state)
{
    (void)state;
    alarm(HANG_S);
    line_count = 0;
    return 0;
}

static struct blunt *hear(void (*heard)(struct weir__bytes))
{
    return blunt_start(&(struct blunt_manners){.handle_max = WIDE, .heard = heard});
}

static void assert_heard(const char *const wanted[], size_t count)
{
    for (size_t i = 0; i < count && i < line_count; i++) assert_string_equal(lines[i], wanted[i]);
    assert_int_equal(line_count, count);
}

#define ASSERT_HEARD(wanted) assert_heard(wanted, sizeof(wanted) / sizeof *(wanted))

/* ---- links ---- */

/* What begins so is left out, and so many characters behind it. */
static void leave_out(char *line, const char *text, size_t more)
{
    char *at;

    while ((at = strstr(line, text)) != NULL) {
        char *rest = at + strlen(text) + more;
        memmove(at, rest, strlen(rest) + 1);
    }
}

/* Of an attach, from the name of the link on; without what is the same for all, and without the
 * digits of our own name, which are others each time. */
static void hear_attach(struct weir__bytes frame)
{
    char line[LINE_BYTES];
    const char *at;

    weir__amqp_dump(frame, line, sizeof line);
    at = strstr(line, " attach name=");
    if (!at || line_count == LINES_MAX) return;
    leave_out(line, " durable=0 timeout=0 dynamic=false", 0);
    leave_out(line, " rcv-settle-mode=0", 0);
    leave_out(line, " incomplete-unsettled=false", 0);
    leave_out(line, " handle=", 1);
    leave_out(line, "weir-", 32);
    snprintf(lines[line_count++], LINE_BYTES, "%s", at + 13);
}

static void open_producers(struct weir *w)
{
    static const struct weir_producer_options all[] = {
        {.pinned = true, .partition = 3},
        {.pinned = true, .idempotent = true},
        {.pinned = true, .idempotent = true, .epoch = 32767},
        {.pinned = true, .idempotent = true, .id = 5, .epoch = 32768},
        {.pinned = true, .idempotent = true, .id = 5},
        {.pinned = false},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct weir_producer_options o = all[i];
        struct weir_producer *p;
        o.size = sizeof o;
        assert_ok(weir_producer_open(&p, w, "h", &o, &err));
        close_producer(p);
    }
}

#define NAME_15 "name of a reade"
#define NAME_60 NAME_15 NAME_15 NAME_15 NAME_15
#define NAME_90 NAME_60 NAME_15 NAME_15
#define NAME_255 NAME_60 NAME_60 NAME_60 NAME_60 NAME_15

static void open_receivers(struct weir *w)
{
    static const struct weir_receiver_options all[] = {
        {.exclusive = true, .epoch = 9, .name = "me", .metrics = true, .group = "g"},
        {.exclusive = true, .events_max = 1},
        {.name = "you", .metrics = true, .events_max = 1},
        {.position = {.from = WEIR_FROM_SEQUENCE, .value = 12}},
        {.name = NAME_255 "more", .events_max = 1},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct weir_receiver_options o = all[i];
        struct weir_receiver *r;
        o.size = sizeof o;
        assert_ok(weir_receiver_open(&r, w, "h", (uint32_t)i, &o, &err));
        weir_receiver_close(r);
    }
}

#define SENDER(name, source, target)                                                               \
    "\"" name "\" role=false snd-settle-mode=0 source=source(address=\"" source                    \
    "\") target=target(address=\"" target "\") initial-delivery-count=0 max-message-size=0"
#define REPLIES(name, from)                                                                        \
    "\"" name "\" role=true snd-settle-mode=0 source=source(address=\"" from                       \
    "\") target=target(address=\"" name "\") max-message-size=262144"
#define MARK(id, epoch)                                                                            \
    " desired-capabilities=com.microsoft:idempotent-producer properties={com.microsoft:"           \
    "producer-id=" id ",com.microsoft:producer-epoch=" epoch                                       \
    ",com.microsoft:producer-sequence-number=null}"
#define RECEIVER(address, number, selector)                                                        \
    "\"" address ";" number "\" role=true snd-settle-mode=1 source=source(address=\"" address      \
    "\" "                                                                                          \
    "filter={apache.org:selector-filter:string=@77567109365764:\"amqp.annotation.x-opt-" selector  \
    "\"}) target=target(address=\"\") max-message-size=0"
#define OURS " desired-capabilities=weir:administration"
#define METRICS "com.microsoft:enable-receiver-runtime-metric"

static void links_say_what_they_are_for(void **state)
{
    static const char *const wanted[] = {
        SENDER("$cbs-request-1", "$cbs-request-1", "$cbs") OURS,
        REPLIES("$cbs-reply-2", "$cbs") OURS,
        SENDER("h/Partitions/3;4", "", "h/Partitions/3"),
        SENDER("h/Partitions/0;5", "", "h/Partitions/0") MARK("null", "null"),
        SENDER("h/Partitions/0;6", "", "h/Partitions/0") MARK("null", "32767"),
        SENDER("h/Partitions/0;7", "", "h/Partitions/0") MARK("5", "32768"),
        SENDER("h/Partitions/0;8", "", "h/Partitions/0") MARK("5", "0"),
        SENDER("$management-request-9", "$management-request-9", "$management"),
        REPLIES("$management-reply-10", "$management"),
        SENDER("h;12", "", "h"),
        RECEIVER("h/ConsumerGroups/g/Partitions/0", "14",
                 "offset > '-1'") " desired-capabilities=[" METRICS ",weir:stored-batches]"
                                  " properties={com.microsoft:epoch=9,com.microsoft:receiver-name="
                                  "\"me\"}",
        RECEIVER("h/ConsumerGroups/$Default/Partitions/1", "16",
                 "offset > '-1'") " properties={com.microsoft:epoch=0}",
        RECEIVER("h/ConsumerGroups/$Default/Partitions/2", "17",
                 "offset > '-1'") " desired-capabilities=" METRICS
                                  " properties={com.microsoft:receiver-name=\"you\"}",
        RECEIVER("h/ConsumerGroups/$Default/Partitions/3", "18",
                 "sequence-number > '11'") " desired-capabilities=weir:stored-batches",
        RECEIVER("h/ConsumerGroups/$Default/Partitions/4", "19",
                 "offset > '-1'") " properties={com.microsoft:receiver-name=\"" NAME_90
                                  "name o..+159\"}",
    };
    struct blunt *b = hear(hear_attach);
    struct weir *w = open_blunt(b);

    (void)state;
    open_producers(w);
    open_receivers(w);
    close_both(w, b);
    ASSERT_HEARD(wanted);
}

/* ---- requests ---- */

static void add(struct weir__bytes text)
{
    char *line = lines[line_count];
    size_t len = strlen(line), token = strlen("SharedAccessSignature sr=");

    if (text.len > token && memcmp(text.at, "SharedAccessSignature sr=", token) == 0)
        text = weir__bytes_of("a token", 7);
    snprintf(line + len, LINE_BYTES - len, "%.*s ", (int)text.len, (const char *)text.at);
}

/* Where it goes, where the answer is to go, what it says, and its value when that is text. */
static void hear_request(struct weir__bytes frame)
{
    struct weir__amqp_cursor in = weir__amqp_cursor_of(
        weir__bytes_of(frame.at + WEIR__AMQP_FRAME_HEAD, frame.len - WEIR__AMQP_FRAME_HEAD));
    struct weir__amqp_value map, name, value, body = {0};
    struct weir__amqp_properties p;
    struct weir__amqp_composite c;
    struct weir__amqp_message m;
    struct weir__amqp_items items;

    if (frame.at[5] != WEIR__AMQP_FRAME_AMQP || frame.len == WEIR__AMQP_FRAME_HEAD ||
        weir__amqp_composite_read(&in, UINT32_MAX, &c, NULL) != 0 ||
        c.kind != WEIR__AMQP_TRANSFER || line_count == LINES_MAX)
        return;
    if (weir__amqp_message_scan(&m, weir__bytes_of(in.at, (size_t)(in.end - in.at)),
                                WEIR__AMQP_DEEP, NULL) != 0 ||
        weir__amqp_message_properties(&m, &p, NULL) != 0 || m.body != WEIR__AMQP_BODY_VALUE)
        abort();
    *lines[line_count] = '\0';
    add(p.to.bytes);
    add(p.reply_to.bytes);
    map = weir__amqp_message_map(&m, WEIR__AMQP_APPLICATION_PROPERTIES);
    weir__amqp_items_init(&items, &map);
    while (weir__amqp_items_pair(&items, &name, &value)) {
        add(name.bytes);
        add(value.bytes);
    }
    in = weir__amqp_cursor_of(
        weir__bytes_of(m.raw.at + m.section[WEIR__AMQP_BODY].value,
                       m.section[WEIR__AMQP_BODY].end - m.section[WEIR__AMQP_BODY].value));
    if (!weir__amqp_read(&in, &body)) abort();
    if (body.type == WEIR__AMQP_STRING) add(body.bytes);
    line_count++;
}

#define PUT(audience)                                                                              \
    "$cbs $cbs-reply-2 operation put-token type servicebus.windows.net:sastoken name " audience    \
    " a token "
#define READ(type) "$management $management-reply-5 operation READ name h type com.microsoft:" type

/* And nothing that only weir serve understands. */
static void requests_say_what_they_ask(void **state)
{
    static const char *const wanted[] = {
        PUT("sb://127.0.0.1/h"),
        READ("eventhub security_token a token "),
        READ("partition partition 4294967295 security_token a token "),
        PUT("sb://127.0.0.1/h/ConsumerGroups/$Default"),
    };
    struct blunt *b = hear(hear_request);
    struct weir *w = open_blunt(b);
    struct weir_partition_info partition;
    struct weir_hub_info hub;

    (void)state;
    assert_ok(weir_hub_info(w, "h", &hub, &err));
    assert_ok(weir_partition_info(w, "h", UINT32_MAX, &partition, &err));
    weir_receiver_close(open_receiver(w, 0));
    close_both(w, b);
    ASSERT_HEARD(wanted);
}

/* A server that says that it is weir serve is asked for what only that knows of a hub. */
static void our_own_is_asked_for_more(void **state)
{
    static const char *const wanted[] = {
        PUT("sb://127.0.0.1/h"),
        "$management $management-reply-5 weir:details true operation READ name h type "
        "com.microsoft:eventhub security_token a token ",
        READ("partition partition 0 security_token a token "),
    };
    struct blunt *b = blunt_start(
        &(struct blunt_manners){.handle_max = WIDE, .heard = hear_request, .ours = true});
    struct weir *w = open_blunt(b);
    struct weir_partition_info partition;
    struct weir_hub_info hub;

    (void)state;
    assert_ok(weir_hub_info(w, "h", &hub, &err));
    assert_ok(weir_partition_info(w, "h", 0, &partition, &err));
    close_both(w, b);
    ASSERT_HEARD(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(links_say_what_they_are_for, start),
        cmocka_unit_test_setup(requests_say_what_they_ask, start),
        cmocka_unit_test_setup(our_own_is_asked_for_more, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
