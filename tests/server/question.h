/* question.h - asks a route of the administration directly, on a disk, a clock and chances that repeat,
 * and has its answer whole. */
#ifndef WEIR_TESTS_SERVER_QUESTION_H
#define WEIR_TESTS_SERVER_QUESTION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/world.h"
#include "server/web.h"

struct scene {
    struct world world;
    struct weir__server server;
    struct weir__http_request request;
    struct weir__visit visit;
    struct weir__route route;
    char text[16384]; /* the answer */
};

static inline int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    world_init(&s->world, simfs_new());
    assert_int_equal(world_open(&s->world), 0);
    s->server.ns = s->world.ns;
    s->visit.server = &s->server;
    s->visit.request = &s->request;
    s->visit.route = &s->route;
    weir__buf_init(&s->visit.body, WEIR__WEB_BODY_MAX);
    weir__buf_init(&s->visit.answer.body, WEIR__WEB_ANSWER_MAX);
    *state = s;
    return 0;
}

static inline int tear_down(void **state)
{
    struct scene *s = *state;

    weir__buf_fini(&s->visit.body);
    weir__buf_fini(&s->visit.answer.body);
    world_fini(&s->world);
    free(s);
    return 0;
}

/* ---- asking ---- */

/* What is asked: below a hub or not, by which names, with which body; and with which field or query. */
struct question {
    bool (*answer)(struct weir__visit *);
    const char *first, *second; /* the stars of the path */
    const char *body;
    const char *host, *query;
    bool only_new, of_hub;
};

static inline struct weir__bytes bytes(const char *text)
{
    return text ? weir__bytes_of(text, strlen(text)) : (struct weir__bytes){0};
}

static inline unsigned ask(struct scene *s, const struct question *q)
{
    struct weir__visit *v = &s->visit;

    s->request = (struct weir__http_request){.path = bytes("/$weir/"),
                                             .host = bytes(q->host),
                                             .query = bytes(q->query),
                                             .field_count = q->only_new};
    s->request.fields[0] = (struct weir__http_field){bytes("If-None-Match"), bytes("*")};
    s->route.scope = q->of_hub ? WEIR__SCOPE_HUB : WEIR__SCOPE_NAMESPACE;
    snprintf(v->star[0], sizeof v->star[0], "%s", q->first ? q->first : "");
    snprintf(v->star[1], sizeof v->star[1], "%s", q->second ? q->second : "");
    weir__buf_clear(&v->body);
    weir__buf_clear(&v->answer.body);
    if (q->body) assert_true(weir__buf_add(&v->body, q->body, strlen(q->body)));
    v->answer.status = 0;
    v->answer.type = NULL;
    assert_true(q->answer(v));
    assert_false(v->answer.incomplete);
    snprintf(s->text, sizeof s->text, "%.*s", (int)v->answer.body.len,
             v->answer.body.len ? (const char *)v->answer.body.at : "");
    return v->answer.status;
}

struct row {
    struct question q;
    unsigned status;
    const char *text;
};

#define EXPECT_ALL(s, rows) expect_all(s, rows, sizeof(rows) / sizeof(rows)[0])

static inline void expect_all(struct scene *s, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned status = ask(s, &rows[i].q);
        if (status != rows[i].status || strcmp(s->text, rows[i].text) != 0)
            fail_msg("question %zu: %u %s", i, status, s->text);
        if (*rows[i].text)
            assert_string_equal(s->visit.answer.type, "application/json");
        else
            assert_null(s->visit.answer.type);
    }
}

#endif
