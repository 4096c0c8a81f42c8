/* quiet_test.c - a healthy log has nothing to report. What it repairs by itself it tells, so a
 * false alarm at every opening would show here, and nowhere else: the other copy serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "log/log.h"
#include "support/tempdir.h"

#define WAIT weir__deadline_ns(20000)
#define BODY_BYTES 60000u
#define BATCHES 60u /* three and a half segments */

struct scene {
    char root[TEMPDIR_BYTES];
    char dir[TEMPDIR_BYTES + 8];
    struct weir__log_options options;
    struct weir__log *log;
    struct weir_error err;
    unsigned lines;
    char first[512];
};

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;

    (void)room;
    if (level >= WEIR__WARN && s->lines++ == 0) snprintf(s->first, sizeof s->first, "%s", line);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(tempdir_make(s->root), 0);
    snprintf(s->dir, sizeof s->dir, "%s/log", s->root);
    s->options = (struct weir__log_options){.dir = s->dir,
                                            .hub_id = 3,
                                            .partitions = 4,
                                            .segment_bytes_max = 1 << 20,
                                            .logger = {listen, s}};
    assert_int_equal(weir__log_create(&s->options, &s->err), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    tempdir_remove(s->root);
    free(s);
    return 0;
}

static void open_log(struct scene *s)
{
    if (weir__log_open(&s->log, &s->options, &s->err) != 0) fail_msg("%s", s->err.text);
}

static void close_log(struct scene *s)
{
    if (weir__log_close(s->log, &s->err) != 0) fail_msg("%s", s->err.text);
}

static void fill_log(struct scene *s)
{
    static char body[BODY_BYTES];

    for (uint32_t i = 0; i < BATCHES; i++) {
        struct weir__log_batch b = {.partition = i % 4, .count = 1};
        struct weir__log_receipt receipt;
        b.body[0] = weir__bytes_of(body, sizeof body);
        if (weir__log_append_wait(s->log, &b, WAIT, &receipt, &s->err) != 0)
            fail_msg("%s", s->err.text);
    }
}

static void read_all(struct scene *s)
{
    uint64_t events = 0;

    for (uint32_t p = 0; p < 4; p++) {
        struct weir__log_partition_info info;
        assert_int_equal(weir__log_partition_info(s->log, p, &info, &s->err), 0);
        events += info.next_sequence - info.begin_sequence;
    }
    assert_int_equal(events % BATCHES, 0);
}

static void assert_quiet(const struct scene *s)
{
    if (s->lines > 0) fail_msg("%u lines, the first: %s", s->lines, s->first);
}

static void note_finding(const struct weir__log_finding *f, void *user)
{
    if (f->kind != WEIR__LOG_SEGMENT) listen(WEIR__WARN, "log", f->text ? f->text : "damage", user);
}

static void inspect(struct scene *s)
{
    uint64_t damaged = 0;

    assert_int_equal(weir__log_inspect(&s->options, note_finding, s, &damaged, &s->err), 0);
    assert_int_equal(damaged, 0);
    assert_quiet(s);
}

static void an_empty_log_is_quiet(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 3; i++) {
        open_log(s);
        close_log(s);
        assert_quiet(s);
        inspect(s);
    }
}

static void a_log_of_many_segments_is_quiet(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 4; i++) {
        open_log(s);
        assert_quiet(s);
        read_all(s);
        if (i < 3) fill_log(s);
        close_log(s);
        assert_quiet(s);
        inspect(s);
    }
}

static void flip(const struct scene *s, const char *name, long at)
{
    char path[TEMPDIR_BYTES + 64];
    FILE *f;
    int c;

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_not_equal(c, EOF);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

/* This test can hear; and what was repaired is not told again. */
static void a_bad_copy_is_told_once(void **state)
{
    struct scene *s = *state;

    open_log(s);
    fill_log(s);
    close_log(s);
    assert_quiet(s);
    flip(s, "control", 20);
    open_log(s);
    if (s->lines != 1 || !strstr(s->first, "one copy is bad")) fail_msg("%s", s->first);
    close_log(s);
    s->lines = 0;
    open_log(s);
    close_log(s);
    assert_quiet(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_log_is_quiet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_log_of_many_segments_is_quiet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_copy_is_told_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
