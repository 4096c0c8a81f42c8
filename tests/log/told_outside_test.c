/* told_outside_test.c - the same for whoever reads a log from outside to copy it: a call that the disk
 * refuses is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/refusal.h"

static int do_take(struct refusal_stage *s, struct weir_error *err)
{
    return weir__backup_moment_take(&s->outside, &s->moment, err);
}

static void take_first(struct refusal_stage *s)
{
    assert_int_equal(do_take(s, NULL), 0);
}

static int do_settle(struct refusal_stage *s, struct weir_error *err)
{
    return weir__backup_moment_settle(&s->outside, &s->moment, err);
}

static int do_row(struct refusal_stage *s, struct weir_error *err)
{
    struct weir__backup_row row;
    int rc = weir__backup_row_read(&s->outside, &s->moment, &row, err);

    weir__backup_row_fini(&row);
    return rc;
}

static int do_still(struct refusal_stage *s, struct weir_error *err)
{
    uint64_t first;

    return weir__backup_moment_still(&s->outside, &s->moment, &first, err);
}

/* Opened meanwhile: what was walked is walked again. */
static void take_and_open(struct refusal_stage *s)
{
    refusal_open(s);
    refusal_append(s, 100, 3);
    take_first(s);
    assert_int_equal(weir__log_close(s->log, NULL), 0);
    refusal_open(s);
}

/* A bad batch with good ones behind it. */
static void take_damaged(struct refusal_stage *s)
{
    char path[64];

    refusal_open(s);
    refusal_append(s, 100, 3);
    take_first(s);
    snprintf(path, sizeof path, REFUSAL_DIR "/%s", s->moment.last.name);
    simfs_flip(s->disk, path, (s->moment.control.watermark - s->moment.last.h.base + 10) * 8);
    weir__backup_moment_fini(&s->moment);
    take_first(s);
}

static int do_measure(struct refusal_stage *s, struct weir_error *err)
{
    struct weir__backup_extent x;

    return weir__backup_measure(&s->outside, &s->moment.last, s->moment.end, false, &x, err);
}

static int do_copy(struct refusal_stage *s, struct weir_error *err)
{
    struct weir__backup_extent x = {REFUSAL_SEGMENT_BYTES, REFUSAL_SEGMENT_BYTES,
                                    REFUSAL_SEGMENT_BYTES, 0};
    struct weir__backup_copied copied;

    return weir__backup_copy(s->o.fs, REFUSAL_DIR "/00000002.seg", REFUSAL_DIR "/copy", &x, NULL,
                             &copied, err);
}

static void ignore_backup(const struct weir__backup_finding *f, void *user)
{
    (void)f, (void)user;
}

static int do_verify(struct refusal_stage *s, struct weir_error *err)
{
    return weir__backup_verify(s->o.fs, REFUSAL_DIR "/00000005.seg", &s->moment.last, s->moment.end,
                               ignore_backup, NULL, err);
}

/* Untold are: what is found in another way, and a mark that says less. Waiting is the name of the copy,
 * which the caller sees to. */
static const struct refusal_deed deeds[] = {
    {"take a moment", refusal_filled, NULL, do_take, 4, 0},
    {"settle a moment", refusal_filled, take_first, do_settle, 0, 0},
    {"settle a damaged moment", refusal_filled, take_damaged, do_settle, 0, 0},
    {"look for a moment", refusal_filled, take_and_open, do_still, 0, 0},
    {"read the row", refusal_filled, take_first, do_row, 0, 0},
    {"measure", refusal_filled, take_first, do_measure, 2, 0},
    {"copy", refusal_filled, NULL, do_copy, 0, 1},
    {"verify", refusal_filled, take_first, do_verify, 0, 0},
};

static void what_fails_is_told(void **state)
{
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        if (!refusal_try(&deeds[i], text)) fail_msg("%s: %s", deeds[i].name, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
