/* rights_test.c - links whose rights end: with the time of a claim, or with the rule that it rests on. */
#include "server/links.h"

#include "hub/issuer_world.h"

#define NOW_S INT64_C(1700000000) /* where the world's clock begins */
#define FIRST "eh1/Partitions/0"
#define SECOND "eh1/Partitions/1"
#define PLACE "eh1/ConsumerGroups/$Default/Partitions/1"
#define EXPIRED "ExpiredToken: The token of this link is expired."
#define CHANGED "Unauthorized access. The access rule or key of this link was removed or changed."

/* A claim for some seconds from the beginning on, which rests on a key of a rule. */
static void claim(struct scene *s, const char *path, unsigned rights, int64_t seconds,
                  const char *rule, const char *key)
{
    struct weir__claim c = {.rights = rights,
                            .expires_s = NOW_S + seconds,
                            .basis = weir__access_basis_of(rule, key, false)};

    snprintf(c.path.text, sizeof c.path.text, "%s", path);
    assert_int_equal(weir__claims_add(&s->c.claims, &c, NOW_S, NULL), 0);
}

static void add_rule(struct scene *s, const char *name, unsigned rights)
{
    struct weir__rule rule = {.rights = rights, .key = {"k1", "k2"}};

    snprintf(rule.name, sizeof rule.name, "%s", name);
    assert_int_equal(weir__namespace_rule_add(s->world.ns, NULL, &rule, NULL), 0);
}

static struct weir__amqp_link *open_sender(struct scene *s, const char *address)
{
    return attach(s, WEIR__AMQP_SENDER, address, address, NULL, (struct weir__amqp_terms){0});
}

static void open_receiver(struct scene *s)
{
    attach(s, WEIR__AMQP_RECEIVER, "r", PLACE, NULL, (struct weir__amqp_terms){0});
    assert_int_equal(s->detached, 0);
}

/* One more was detached, or none when there is no text. */
static void expect_detached(struct scene *s, const char *text)
{
    talk(s);
    assert_int_equal(s->detached, text != NULL);
    s->detached = 0;
    if (!text) return;
    assert_string_equal(s->condition, "amqp:unauthorized-access");
    assert_string_equal(s->text, text);
}

/* ---- time ---- */

static void expire_at(struct scene *s, int64_t ms)
{
    s->world.time.wall_ms = NOW_S * 1000 + ms;
    weir__rights_pass(&s->c);
}

/* Each with its own, to the second; a link that needs no right stays. */
static void a_link_ends_with_its_claim(void **state)
{
    struct scene *s = *state;

    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "r", "k");
    claim(s, SECOND, WEIR__RIGHT_MANAGE, 20, "r", "k");
    claim(s, PLACE, WEIR__RIGHT_LISTEN, 30, "r", "k");
    open_receiver(s);
    assert_int_equal(s->c.expires_s, NOW_S + 30);
    open_sender(s, FIRST);
    assert_int_equal(s->c.expires_s, NOW_S + 10);
    open_sender(s, SECOND);
    open_sender(s, "$management");
    assert_int_equal(s->c.expires_s, NOW_S + 10);
    expire_at(s, 9999);
    expect_detached(s, NULL);
    for (int64_t at = 10; at <= 30; at += 10) {
        expire_at(s, at * 1000);
        expect_detached(s, EXPIRED);
        assert_int_equal(s->c.expires_s, at < 30 ? NOW_S + at + 10 : INT64_MAX);
        assert_int_equal(atomic_load(&s->server.links), 4 - at / 10);
    }
}

static void a_claim_that_is_renewed_goes_on(void **state)
{
    struct scene *s = *state;

    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "r", "k");
    open_sender(s, FIRST);
    claim(s, "eh1", WEIR__RIGHT_SEND, 50, "r", "k");
    expire_at(s, 10000);
    expect_detached(s, NULL);
    assert_int_equal(s->c.expires_s, NOW_S + 50);
    expire_at(s, 50000);
    expect_detached(s, EXPIRED);
}

/* The next event of the server's side, which is a transfer. */
static void take_transfer(struct scene *s)
{
    assert_true(weir__amqp_next(s->c.engine, &s->c.event));
    assert_int_equal(s->c.event.type, WEIR__AMQP_EVENT_TRANSFER);
    assert_true(weir__connection_on_event(&s->c, &s->c.event));
}

/* What the log was not given yet is never given to it, and neither is what it was too busy for. */
static void what_came_before_the_end_is_dropped(void **state)
{
    static const char event[] = "\0\x53\x75\xa0\1x";
    struct scene *s = *state;
    struct weir__amqp_link *link;

    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "r", "k");
    link = open_sender(s, FIRST);
    assert_int_equal(weir__amqp_send(link, weir__bytes_of(event, 6), 0, false, NULL), 0);
    carry(s->client, s->c.engine);
    take_transfer(s);
    assert_non_null(s->c.run.sender);
    expire_at(s, 10000);
    assert_null(s->c.run.sender);
    assert_true(weir__connection_on_event(&s->c, &s->c.event)); /* again */
    assert_null(s->c.run.sender);
    assert_int_equal(s->c.batches, 0);
    expect_detached(s, EXPIRED);
}

/* The run of a link that may go on stays. */
static void what_others_gathered_is_kept(void **state)
{
    static const char event[] = "\0\x53\x75\xa0\1x";
    struct scene *s = *state;
    struct weir__amqp_link *link;

    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "r", "k");
    claim(s, SECOND, WEIR__RIGHT_SEND, 20, "r", "k");
    open_sender(s, FIRST);
    link = open_sender(s, SECOND);
    assert_int_equal(weir__amqp_send(link, weir__bytes_of(event, 6), 0, false, NULL), 0);
    carry(s->client, s->c.engine);
    take_transfer(s);
    expire_at(s, 10000);
    assert_non_null(s->c.run.sender);
    assert_int_equal(s->c.run.events.count, 1);
    weir__run_drop(&s->c.run);
    expect_detached(s, EXPIRED);
}

/* Others may have its place before its client has answered. */
static void a_receiver_leaves_its_place_at_once(void **state)
{
    struct weir__hub_stats stats;
    struct scene *s = *state;
    struct weir__hub *hub;

    claim(s, PLACE, WEIR__RIGHT_LISTEN, 10, "r", "k");
    open_receiver(s);
    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 1);
    expire_at(s, 10000);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 0);
    weir__hub_release(hub);
    expect_detached(s, EXPIRED);
}

/* ---- rules ---- */

static void review(struct scene *s)
{
    atomic_fetch_add(&s->server.rights, 1);
    weir__rights_review(&s->c);
    weir__rights_pass(&s->c);
    assert_int_equal(s->c.rights_seen, atomic_load(&s->server.rights));
}

static void a_link_ends_with_its_key(void **state)
{
    struct scene *s = *state;

    add_rule(s, "one", WEIR__RIGHT_SEND);
    add_rule(s, "two", WEIR__RIGHT_SEND);
    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "one", "k1");
    claim(s, SECOND, WEIR__RIGHT_SEND, 20, "two", "k2");
    open_sender(s, FIRST);
    open_sender(s, SECOND);
    review(s);
    expect_detached(s, NULL);
    assert_int_equal(s->c.claims.count, 2);
    assert_int_equal(weir__namespace_rule_rotate(s->world.ns, NULL, "one", WEIR__KEY_PRIMARY, "k3",
                                                 NULL),
                     0);
    review(s);
    expect_detached(s, CHANGED);
    assert_int_equal(s->c.claims.count, 1);
    assert_int_equal(s->c.expires_s, NOW_S + 20);
    assert_int_equal(weir__namespace_rule_remove(s->world.ns, NULL, "two", NULL), 0);
    review(s);
    expect_detached(s, CHANGED);
    assert_int_equal(s->c.claims.count, 0);
    assert_int_equal(s->c.expires_s, INT64_MAX);
}

/* Of a rule with fewer rights than before, those remain. */
static void a_rule_that_is_narrowed(void **state)
{
    struct scene *s = *state;

    add_rule(s, "one", WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN);
    claim(s, "eh1", WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN, 10, "one", "k1");
    open_sender(s, FIRST);
    open_receiver(s);
    assert_int_equal(weir__namespace_rule_remove(s->world.ns, NULL, "one", NULL), 0);
    add_rule(s, "one", WEIR__RIGHT_LISTEN);
    review(s);
    expect_detached(s, CHANGED);
    assert_int_equal(s->c.claims.at[0]->rights, WEIR__RIGHT_LISTEN);
    assert_int_equal(atomic_load(&s->server.links), 1);
}

/* The issuer is not known any more: no rule of the same name stands in for it. */
static void a_claim_of_an_issuer_rests_on_no_rule(void **state)
{
    struct scene *s = *state;

    add_rule(s, "one", WEIR__RIGHT_SEND);
    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "one", "k1");
    s->c.claims.at[0]->basis.ground = WEIR__GROUND_ISSUER;
    open_sender(s, FIRST);
    review(s);
    expect_detached(s, CHANGED);
}

/* The key set of an issuer, with one new key. */
static struct weir__jwks *make_keys(void)
{
    static char jwk[TEXT_BYTES / 2], text[TEXT_BYTES];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct weir__jwks *keys;

    put_jwk(jwk, key, "k", "");
    snprintf(text, sizeof text, "{\"keys\":[%s]}", jwk);
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(text), NULL), 0);
    EVP_PKEY_free(key);
    return keys;
}

/* With the key that signed its token, as long as that is among the issuer's. */
static void a_claim_of_an_issuer_rests_on_its_key(void **state)
{
    static const struct weir__jwt_issuer policy;
    struct weir__jwks *keys = make_keys(), *others = make_keys();
    struct scene *s = *state;
    struct weir__issuer *issuer = &s->server.issuer;
    struct weir__access_basis *basis;

    weir__issuer_init(issuer,
                      &(struct weir__server_options){.issuer = &policy, .issuer_keys = keys});
    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "one", "k1");
    basis = &s->c.claims.at[0]->basis;
    basis->ground = WEIR__GROUND_ISSUER;
    memcpy(basis->key, weir__jwks_find(keys, WEIR__JWS_ES256, "k")->digest, sizeof basis->key);
    open_sender(s, FIRST);
    review(s);
    expect_detached(s, NULL);
    assert_int_equal(s->c.claims.at[0]->rights, WEIR__RIGHT_SEND);
    weir__jwks_release(issuer->keys);
    issuer->keys = others;
    review(s);
    expect_detached(s, CHANGED);
    weir__issuer_fini(issuer);
    weir__jwks_release(keys);
}

static void verify(struct scene *s, const char *token, struct weir_error *err)
{
    struct weir__access_grant grant;

    assert_int_equal(weir__issuer_verify_any(&s->server, bytes_of(token), bytes_of("eh1"), 0,
                                             &grant, err),
                     WEIR_EDENIED);
}

/* A token of a shared key is known by its first word, to the space behind it. */
static void any_other_token_is_the_issuer_s(void **state)
{
    static const struct weir__jwt_issuer policy;
    struct weir__jwks *keys = make_keys();
    struct scene *s = *state;
    struct weir_error shared = {0}, other = {0}, near = {0};

    weir__issuer_init(&s->server.issuer,
                      &(struct weir__server_options){.issuer = &policy, .issuer_keys = keys});
    verify(s, "SharedAccessSignature x", &shared);
    verify(s, "x", &other);
    verify(s, "SharedAccessSignature.x", &near);
    assert_string_not_equal(shared.text, other.text);
    assert_string_equal(near.text, other.text);
    weir__issuer_fini(&s->server.issuer);
    weir__jwks_release(keys);
}

static unsigned left; /* times that a link let go of what others wait for */

static void note_leave(struct weir__duty *d)
{
    (void)d;
    left++;
}

/* Until its peer answers, a link without rights stays as it is, however often rules change. */
static void a_link_ends_once(void **state)
{
    struct scene *s = *state;
    struct weir__duty_calls noted = {.leave = note_leave};

    add_rule(s, "one", WEIR__RIGHT_SEND);
    claim(s, FIRST, WEIR__RIGHT_SEND, 10, "one", "k1");
    open_sender(s, FIRST);
    noted.gone = s->c.duties->calls->gone;
    s->c.duties->calls = &noted;
    assert_int_equal(weir__namespace_rule_remove(s->world.ns, NULL, "one", NULL), 0);
    left = 0;
    for (int i = 0; i < 3; i++) {
        weir__rights_review(&s->c);
        weir__rights_pass(&s->c);
        assert_int_equal(left, 1);
    }
    expect_detached(s, CHANGED);
}

/* A walk that lasts several turns goes on behind who leaves, wherever that is. */
static void a_walk_goes_on_without_who_leaves(void **state)
{
    struct weir__connection c = {0};
    struct weir__duty first = {.connection = &c}, second = {.connection = &c},
                      third = {.connection = &c};

    (void)state;
    first.next = &second;
    second.next = &third;
    c.walk.next = &second;
    weir__rights_forget(&first);
    weir__rights_forget(&third);
    assert_ptr_equal(c.walk.next, &second);
    weir__rights_forget(&second);
    assert_ptr_equal(c.walk.next, &third);
    weir__rights_forget(&third);
    assert_null(c.walk.next);
    weir__rights_forget(&first);
    assert_null(c.walk.next);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(any_other_token_is_the_issuer_s),
        TEST(a_link_ends_with_its_claim),
        TEST(a_claim_that_is_renewed_goes_on),
        TEST(what_came_before_the_end_is_dropped),
        TEST(what_others_gathered_is_kept),
        TEST(a_receiver_leaves_its_place_at_once),
        TEST(a_link_ends_with_its_key),
        TEST(a_rule_that_is_narrowed),
        TEST(a_claim_of_an_issuer_rests_on_no_rule),
        TEST(a_claim_of_an_issuer_rests_on_its_key),
        cmocka_unit_test(a_walk_goes_on_without_who_leaves),
        TEST(a_link_ends_once),
    };

    return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
