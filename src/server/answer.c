/* answer.c - what an answer is made of, and errors in the form that Azure gives them. */
#include <stdarg.h>
#include <stdio.h>

#include "server/web.h"

#define TYPE_JSON "application/json"
#define TYPE_XML "application/xml; charset=utf-8"
#define DETAIL_BYTES 1024

void weir__answer_add(struct weir__answer *a, const char *fmt, ...)
{
    va_list args;
    uint8_t *to;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    to = len < 0 ? NULL : weir__buf_room(&a->body, (size_t)len + 1);
    a->incomplete |= !to;
    if (!to) return;
    va_start(args, fmt);
    vsnprintf((char *)to, (size_t)len + 1, fmt, args);
    va_end(args);
    a->body.len += (size_t)len;
}

void weir__answer_quote(struct weir__answer *a, const char *text)
{
    weir__answer_add(a, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            weir__answer_add(a, "\\%c", c);
        else
            weir__answer_add(a, "%c", c < ' ' || c > '~' ? '?' : c);
    }
    weir__answer_add(a, "\"");
}

static void add_xml(struct weir__answer *a, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '>' || c == '&')
            weir__answer_add(a, "&#%d;", c);
        else
            weir__answer_add(a, "%c", c < ' ' || c > '~' ? '?' : c);
    }
}

void weir__answer_json(struct weir__visit *v, unsigned status)
{
    v->answer.status = status;
    v->answer.type = TYPE_JSON;
}

void weir__answer_empty(struct weir__visit *v, unsigned status)
{
    weir__buf_clear(&v->answer.body);
    v->answer.status = status;
    v->answer.type = NULL;
}

static bool is_ours(const struct weir__visit *v)
{
    static const char root[] = "/$weir/";
    struct weir__bytes path = v->request->path;

    return path.len >= sizeof root - 1 && memcmp(path.at, root, sizeof root - 1) == 0;
}

/* name is that of our own error, for our own client; NULL: the status says it. */
static void write_error(struct weir__visit *v, unsigned status, const char *name,
                        const char *detail)
{
    struct weir__answer *a = &v->answer;

    weir__buf_clear(&a->body);
    a->status = status;
    a->incomplete = false;
    a->retry = status == 503;
    a->type = is_ours(v) ? TYPE_JSON : TYPE_XML;
    if (is_ours(v)) {
        weir__answer_add(a, "{\"code\":%u,\"detail\":", status);
        weir__answer_quote(a, detail);
        if (name) weir__answer_add(a, ",\"error\":\"%s\"", name);
        weir__answer_add(a, "}\n");
    } else {
        weir__answer_add(a, "<Error><Code>%u</Code><Detail>", status);
        add_xml(a, detail);
        weir__answer_add(a, "</Detail></Error>");
    }
}

void weir__answer_error(struct weir__visit *v, unsigned status, const char *fmt, ...)
{
    char detail[DETAIL_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    write_error(v, status, NULL, detail);
}

/* Where HTTP says it otherwise than errors.c, which has the statuses of $management. */
static unsigned status_of(const struct weir__visit *v, int code)
{
    switch (code) {
    case WEIR_EDENIED: return 403; /* who came in may not do this; the others get 401 before */
    case WEIR_EEXIST: return weir__visit_only_new(v) ? 412 : 409;
    case WEIR_ETOOBIG: return 413;
    default: return (unsigned)weir__errors_status(code);
    }
}

void weir__answer_failure(struct weir__visit *v, const struct weir_error *why)
{
    struct weir__refusal r = {.why = *why};
    unsigned status = status_of(v, why->code);
    struct weir__amqp_error said = weir__errors_say(&r);
    char detail[DETAIL_BYTES];

    if (status >= 500)
        weir__log_line(&v->server->logger, WEIR__WARN, "http", "%s: %s",
                       weir__http_method_name(v->request->method), why->text);
    if (status == 403 || status == 409 || status == 412)
        snprintf(detail, sizeof detail, "%s", why->text);
    else
        snprintf(detail, sizeof detail, "%.*s", (int)said.description.len,
                 (const char *)said.description.at);
    write_error(v, status, weir_error_name(why->code), detail);
}
