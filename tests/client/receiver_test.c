/* What a receiver of a folder does apart from reading: it passes over damage, keeps little while it is
 * idle, and says what cannot be asked of it. */
#define _GNU_SOURCE /* nftw, memmem */
#include "client/contract/place.h"

#include <ftw.h>

#include "support/allocs.h"
#include "support/tempdir.h"

#define EVENTS 8u
#define HURT 3u /* the event that is damaged */

static char dir[TEMPDIR_BYTES];
static struct weir *w;

static int start(void **state)
{
    (void)state;
    if (tempdir_make(dir) != 0) return -1;
    return weir_open(&w, dir, NULL, &err);
}

static int stop(void **state)
{
    int rc = weir_close(w, &err);

    (void)state;
    tempdir_remove(dir);
    return rc;
}

/* ---- damage ---- */

static const char *sought; /* the text of the event that is damaged */
static unsigned hurt;      /* how often it was found */

/* Changes the last letter of the text, where a file has it. */
static bool hurt_text(FILE *f, char *bytes, size_t room)
{
    size_t len = strlen(sought), got = fread(bytes, 1, room, f);
    const char *at = memmem(bytes, got, sought, len);

    if (!at) return true;
    hurt++;
    return fseek(f, at - bytes + (long)len - 1, SEEK_SET) == 0 && fputc('X', f) != EOF;
}

static int hurt_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    size_t room = (size_t)st->st_size;
    char *bytes;
    FILE *f;
    bool ok;

    (void)ftw;
    if (type != FTW_F || room == 0) return 0;
    f = fopen(path, "r+");
    if (!f) return -1;
    bytes = malloc(room);
    ok = bytes && hurt_text(f, bytes, room);
    free(bytes);
    return fclose(f) == 0 && ok ? 0 : -1;
}

/* Its number is told, and what lies behind it was not missed. */
static void damage_is_passed_over(void **state)
{
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_received got;
    uint64_t first = 99, last = 99;
    char text[32];

    (void)state;
    make_hub(w, 1);
    p = open_producer(w);
    for (unsigned i = 0; i < EVENTS; i++) {
        snprintf(text, sizeof text, "the text of event %u", i);
        send_text(p, text);
    }
    close_producer(p);
    assert_ok(weir_close(w, &err));
    sought = "the text of event 3";
    hurt = 0;
    assert_int_equal(nftw(dir, hurt_file, 8, FTW_PHYS), 0);
    assert_int_equal(hurt, 1);
    assert_ok(weir_open(&w, dir, NULL, &err));
    r = open_receiver(w, 0);
    for (unsigned i = 0; i < HURT; i++) assert_int_equal(receive_one(r).sequence, i);
    assert_int_equal(weir_receiver_skip(r, &first, &last, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "there is no damage to skip here");
    for (int i = 0; i < 2; i++) /* it stays where it is */
        assert_int_equal(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err), WEIR_ECORRUPT);
    assert_int_equal(first, 99);
    assert_ok(weir_receiver_skip(r, &first, &last, &err));
    assert_int_equal(first, HURT);
    assert_int_equal(last, HURT);
    assert_int_equal(weir_receiver_skip(r, NULL, NULL, &err), WEIR_EINVAL);
    assert_ok(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err));
    assert_int_equal(got.events[0].sequence, HURT + 1);
    assert_int_equal(got.missed, 0);
    weir_receiver_close(r);
}

/* ---- memory ---- */

/* Allocations of a receive that finds nothing, when there was one before it. */
static uint64_t count_allocations(struct weir_receiver *r, size_t max)
{
    struct weir_received got;

    assert_int_equal(weir_receiver_receive(r, max, 0, &got, &err), WEIR_ETIMEDOUT);
    allocs_fail(0);
    assert_int_equal(weir_receiver_receive(r, max, 0, &got, &err), WEIR_ETIMEDOUT);
    return allocs_counted();
}

/* Room for many events goes back when nothing comes, and must be had again; room for few stays, and
 * so does that of who waits. */
static void an_idle_receiver_keeps_little(void **state)
{
    struct weir_receiver *r;
    struct weir_received got;
    uint64_t few;

    (void)state;
    make_hub(w, 1);
    r = open_receiver(w, 0);
    few = count_allocations(r, 32);
    assert_int_equal(count_allocations(r, 33), few + 2);
    assert_int_equal(weir_receiver_receive(r, 33, 1, &got, &err), WEIR_ETIMEDOUT);
    allocs_fail(0);
    assert_int_equal(weir_receiver_receive(r, 33, 1, &got, &err), WEIR_ETIMEDOUT);
    assert_int_equal(allocs_counted(), few);
    weir_receiver_close(r);
}

/* ---- what cannot be asked ---- */

static void assert_says(int rc, int code, const char *text)
{
    assert_int_equal(rc, code);
    assert_string_equal(err.text, text);
}

static void what_cannot_be_asked_is_said(void **state)
{
    static const char away[] = "hub 'h' has partitions 0 to 2, not 3";
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = 3};
    struct weir_receiver_metrics metrics = {.last_sequence = 5};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_partition_info info;
    struct weir_receiver *r, *none;
    struct weir_producer *p;
    struct weir_received got;

    (void)state;
    make_hub(w, 3);
    assert_says(weir_producer_open(&p, w, "h", &o, &err), WEIR_ENOTFOUND, away);
    assert_says(weir_receiver_open(&none, w, "h", 3, NULL, &err), WEIR_ENOTFOUND, away);
    assert_says(weir_partition_info(w, "h", 3, &info, &err), WEIR_ENOTFOUND, away);
    r = open_receiver(w, 2);
    p = open_pinned(w, 2);
    assert_says(weir_close(w, &err), WEIR_EBUSY, "closing: 2 producers and receivers are open");
    assert_says(weir_receiver_receive(r, 0, 0, &got, &err), WEIR_EINVAL,
                "receiving at most 0 events");
    assert_says(weir_receiver_metrics(r, &metrics, &err), WEIR_EINVAL,
                "this receiver was opened without metrics");
    assert_int_equal(metrics.last_sequence, 0);
    assert_says(weir_producer_send_async(p, &e, 1, 0, NULL, NULL, &err), WEIR_EINVAL,
                "sending without a completion");
    weir_receiver_close(r);
    assert_says(weir_close(w, &err), WEIR_EBUSY, "closing: 1 producers and receivers are open");
    close_producer(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damage_is_passed_over, start, stop),
        cmocka_unit_test_setup_teardown(an_idle_receiver_keeps_little, start, stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_asked_is_said, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
