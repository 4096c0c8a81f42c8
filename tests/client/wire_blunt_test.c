/* What other servers may do and ours never does: narrow windows, few handles, silence where an
 * answer is usual, half of a pair of links gone. A client does its work all the same, within what
 * it was told, or says what is missing. */
#include "client/contract/place.h"

#include "base/thread.h"
#include "client/blunt.h"

#define WIDE 255      /* handles of a session */
#define HANG_S 60     /* a test that takes longer is stuck */
#define MANY 20       /* more links than ours puts into one session */
#define LARGE 200000u /* bytes, in several frames */

static struct weir *open_with(const struct blunt *b, const struct weir_options *o)
{
    char text[256];
    struct weir *w;

    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             b->address);
    assert_ok(weir_open(&w, text, o, &err));
    return w;
}

static struct weir *open_patient(const struct blunt *b, uint32_t patience_ms)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = patience_ms};

    return open_with(b, &o);
}

static struct weir *open_blunt(const struct blunt *b)
{
    return open_patient(b, PATIENCE_MS);
}

/* Closes both; the client has kept to the rules on one connection. */
static void close_both(struct weir *w, struct blunt *b)
{
    assert_ok(weir_close(w, &err));
    assert_int_equal(atomic_load(&b->broken), 0);
    assert_int_equal(atomic_load(&b->connections), 1);
    blunt_stop(b);
}

static int start(void **state)
{
    (void)state;
    alarm(HANG_S);
    return 0;
}

static void landed(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    (void)at, (void)why;
    if (rc == 0) atomic_fetch_add((atomic_uint *)user, 1);
}

/* ---- windows ---- */

static void send_small(struct weir_producer *p, unsigned count)
{
    struct weir_event e = {.body = weir_text("x")};
    atomic_uint stored = 0;

    for (unsigned i = 0; i < count; i++)
        assert_ok(weir_producer_send_async(p, &e, 1, PATIENCE_MS, landed, &stored, &err));
    assert_ok(weir_producer_flush(p, PATIENCE_MS, &err));
    assert_int_equal(atomic_load(&stored), count);
}

/* Opened again for the session, not for a link. */
static void a_window_of_one_is_enough(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = WIDE, .window = 1});
    struct weir *w = open_blunt(b);
    struct weir_producer *p = open_pinned(w, 0), *q = open_pinned(w, 0);
    static char body[LARGE];
    struct weir_event large = {.body = weir_bytes(body, sizeof body)};

    (void)state;
    send_small(p, 50);
    assert_ok(weir_producer_send(q, &large, 1, PATIENCE_MS, NULL, &err));
    send_small(q, 50);
    assert_int_equal(atomic_load(&b->batches), 101);
    close_producer(p);
    close_producer(q);
    close_both(w, b);
}

/* ---- handles ---- */

/* As many sessions as it takes. */
static void few_handles_are_enough(void **state)
{
    static const uint32_t most[] = {0, 1, 7};

    (void)state;
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = most[i]});
        struct weir *w = open_blunt(b);
        struct weir_producer *p[MANY];
        for (unsigned k = 0; k < MANY; k++) p[k] = open_pinned(w, 0);
        for (unsigned k = 0; k < MANY; k++) send_small(p[k], 1);
        assert_int_equal(atomic_load(&b->attaches), MANY);
        assert_in_range(atomic_load(&b->begun), 1 + MANY / (most[i] + 1), 1 + MANY);
        for (unsigned k = 0; k < MANY; k++) close_producer(p[k]);
        close_both(w, b);
    }
}

/* A session that was full takes another link when one of its own has gone. */
static void a_handle_is_used_again(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = 1});
    struct weir *w = open_blunt(b);
    struct weir_producer *p[4];
    struct weir_hub_info info;

    (void)state;
    assert_ok(weir_hub_info(w, "h", &info, &err));
    for (unsigned k = 0; k < 4; k++) p[k] = open_pinned(w, 0);
    assert_int_equal(atomic_load(&b->begun), 4); /* with those of $cbs and $management */
    for (unsigned k = 0; k < 4; k++) {
        close_producer(p[k]);
        assert_ok(weir_hub_info(w, "h", &info, &err)); /* its detach is answered before */
        p[k] = open_pinned(w, 0);
    }
    assert_int_equal(atomic_load(&b->begun), 4);
    for (unsigned k = 0; k < 4; k++) close_producer(p[k]);
    close_both(w, b);
}

/* Sixteen producers, two hundred receivers; and who leaves makes room. */
static void links_share_sessions(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = WIDE});
    struct weir *w = open_blunt(b);
    struct weir_receiver *r[201];
    struct weir_producer *p[17];

    (void)state;
    for (unsigned i = 0; i < 17; i++) {
        p[i] = open_pinned(w, 0);
        assert_int_equal(atomic_load(&b->begun), i < 16 ? 2 : 3); /* with that of $cbs */
    }
    for (unsigned i = 0; i < 201; i++) {
        r[i] = open_receiver(w, 0);
        assert_int_equal(atomic_load(&b->begun), i < 200 ? 4 : 5);
    }
    weir_receiver_close(r[0]);
    r[0] = open_receiver(w, 0);
    assert_int_equal(atomic_load(&b->begun), 5);
    for (unsigned i = 0; i < 201; i++) weir_receiver_close(r[i]);
    for (unsigned i = 0; i < 17; i++) close_producer(p[i]);
    close_both(w, b);
}

static void *open_one(void *arg)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true};
    struct weir_producer *p = NULL;

    return weir_producer_open(&p, arg, "h", &o, NULL) == 0 ? p : NULL;
}

/* Before anybody knows how few they are. */
static void few_handles_are_enough_at_once(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = 0});
    struct weir *w = open_blunt(b);
    pthread_t threads[MANY];

    (void)state;
    for (unsigned k = 0; k < MANY; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, open_one, w), 0);
    for (unsigned k = 0; k < MANY; k++) {
        void *p;
        pthread_join(threads[k], &p);
        assert_non_null(p);
        close_producer(p);
    }
    assert_int_equal(atomic_load(&b->attaches), MANY);
    close_both(w, b);
}

/* Requests go out by one link and replies come by another: it is said what is wrong. The patience is
 * short, because it is used up; on a slow machine nothing may be known of the server by then. */
static void one_handle_is_too_few_for_tokens(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.narrow = true});
    struct weir *w = open_patient(b, 300);
    struct weir_hub_info info;
    int rc;

    (void)state;
    do {
        rc = weir_hub_info(w, "h", &info, &err);
    } while (rc == WEIR_ETIMEDOUT);
    assert_int_equal(rc, WEIR_EUNREACHABLE);
    if (!strstr(err.text, "one link only")) fail_msg("%s", err.text);
    assert_ok(weir_close(w, &err));
    blunt_stop(b);
}

/* ---- silence ---- */

/* A second is what it is given; then it is closed without it. */
static void a_detach_that_nobody_answers(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = WIDE, .deaf = true});
    struct weir *w = open_blunt(b);
    struct weir_producer *p = open_pinned(w, 0);
    struct weir_receiver *r = open_receiver(w, 0);
    int64_t since = time(NULL);

    (void)state;
    weir_receiver_close(r);
    assert_in_range(time(NULL) - since, 0, 10);
    send_small(p, 1);
    r = open_receiver(w, 0); /* beside the one that was never let go */
    close_producer(p);
    weir_receiver_close(r);
    assert_int_equal(atomic_load(&b->detaches), 3);
    close_both(w, b);
}

/* Its handles are used up by links that are gone for us and not for the other side. */
static void handles_that_never_come_back(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = 1, .deaf = true});
    struct weir *w = open_blunt(b);

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct weir_receiver *r = open_receiver(w, 0);
        weir_receiver_close(r);
    }
    assert_int_equal(atomic_load(&b->attaches), 3);
    close_both(w, b);
}

/* ---- what is not there ---- */

static void a_server_without_idempotent_producers(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = WIDE, .no_marks = true});
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir *w = open_blunt(b);
    struct weir_producer *p;

    (void)state;
    assert_int_equal(weir_producer_open(&p, w, "h", &o, &err), WEIR_ENOTSUP);
    assert_non_null(strstr(err.text, "idempotent"));
    assert_null(p);
    o.idempotent = false;
    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    send_small(p, 1);
    close_producer(p);
    close_both(w, b);
}

/* One link of the two goes: both are attached again, the question is asked again, and nothing of
 * the old pair stays behind. */
static void half_of_management_goes(void **state)
{
    (void)state;
    for (int reply = 0; reply < 2; reply++) {
        struct blunt *b = blunt_start(
            &(struct blunt_manners){.handle_max = WIDE, .drop_desk = 3, .drop_reply = reply});
        struct weir *w = open_blunt(b);
        int64_t since_ms = weir__mono_ns() / 1000000;
        struct weir_hub_info info;
        assert_ok(weir_hub_info(w, "h", &info, &err));
        assert_int_equal(info.partitions, 1);
        /* The three pauses are 700 ms at most, and what is to be said is said at once behind them. */
        assert_in_range(weir__mono_ns() / 1000000 - since_ms, 0, 2500);
        assert_int_equal(atomic_load(&b->begun), 5); /* $cbs, and $management four times */
        assert_int_equal(atomic_load(&b->alive), 2);
        close_both(w, b);
    }
}

/* ---- administration ---- */

/* A server that is not weir serve, as Azure is, has none, and is not asked for it by HTTP. */
static void strangers_are_not_administered(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = WIDE});
    struct weir *w = open_blunt(b);
    struct weir_rule rule = {.name = "r", .rights = WEIR_SEND};
    struct weir_hub_changes changes = {.size = sizeof changes, .partitions = 8};
    struct weir_hub_stats stats;

    (void)state;
    assert_int_equal(weir_hub_create(w, "x", NULL, &err), WEIR_ENOTSUP);
    assert_non_null(strstr(err.text, "az eventhubs"));
    assert_non_null(strstr(err.text, b->address));
    assert_int_equal(weir_hub_update(w, "x", &changes, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_hub_delete(w, "x", &err), WEIR_ENOTSUP);
    assert_int_equal(weir_hub_adopt(w, 1, "x", &err), WEIR_ENOTSUP);
    assert_int_equal(weir_orphan_list(w, NULL, NULL, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_hub_list(w, NULL, NULL, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_hub_stats(w, "x", &stats, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_group_create(w, "x", "g", &err), WEIR_ENOTSUP);
    assert_int_equal(weir_group_delete(w, "x", "g", &err), WEIR_ENOTSUP);
    assert_int_equal(weir_group_list(w, "x", NULL, NULL, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_rule_create(w, NULL, &rule, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_rule_delete(w, NULL, "r", &err), WEIR_ENOTSUP);
    assert_int_equal(weir_rule_rotate(w, NULL, "r", WEIR_PRIMARY_KEY, NULL, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_rule_renew(w, NULL, "r", &rule, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_rule_list(w, NULL, NULL, NULL, &err), WEIR_ENOTSUP);
    assert_int_equal(weir_error_class(WEIR_ENOTSUP), WEIR_CLASS_CALLER);
    close_both(w, b);
}

/* ---- tokens ---- */

static void await(const atomic_uint *count, unsigned wanted)
{
    while (atomic_load(count) < wanted) poll(NULL, 0, BLUNT_TURN_MS);
}

/* Before it ends, also where only one link needs it; the link notices nothing. */
static void a_token_is_shown_again_in_time(void **state)
{
    struct blunt *b = blunt_start(&(struct blunt_manners){.handle_max = WIDE});
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS, .token_s = 1};
    struct weir *w = open_with(b, &o);
    struct weir_producer *p = open_pinned(w, 0);
    unsigned before;

    (void)state;
    send_small(p, 1);
    before = atomic_load(&b->tokens);
    await(&b->tokens, before + 2);
    send_small(p, 1);
    assert_int_equal(atomic_load(&b->attaches), 1);
    close_producer(p);
    close_both(w, b);
}

/* Whoever waits for what becomes of its replies is told, of each one, also where nobody waits for that. */
static void replies_are_accepted(void **state)
{
    struct blunt *b = blunt_start(
        &(struct blunt_manners){.handle_max = WIDE, .unsettled = true, .tell = blunt_tell});
    struct weir *w = open_blunt(b);
    struct weir_hub_info info;
    unsigned replies;

    (void)state;
    for (int i = 0; i < 3; i++) assert_ok(weir_hub_info(w, "h", &info, &err));
    replies = atomic_load(&b->replies);
    assert_int_equal(replies, atomic_load(&b->tokens) + 3 * 3);
    await(&b->accepted, replies);
    close_both(w, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_window_of_one_is_enough, start),
        cmocka_unit_test_setup(few_handles_are_enough, start),
        cmocka_unit_test_setup(a_handle_is_used_again, start),
        cmocka_unit_test_setup(links_share_sessions, start),
        cmocka_unit_test_setup(few_handles_are_enough_at_once, start),
        cmocka_unit_test_setup(one_handle_is_too_few_for_tokens, start),
        cmocka_unit_test_setup(a_detach_that_nobody_answers, start),
        cmocka_unit_test_setup(handles_that_never_come_back, start),
        cmocka_unit_test_setup(a_server_without_idempotent_producers, start),
        cmocka_unit_test_setup(half_of_management_goes, start),
        cmocka_unit_test_setup(strangers_are_not_administered, start),
        cmocka_unit_test_setup(a_token_is_shown_again_in_time, start),
        cmocka_unit_test_setup(replies_are_accepted, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
