/* json_check.c - reads lines and says whether each is one strict JSON object (RFC 8259 in UTF-8, no
 * blanks, no arrays, no name twice) whose first members are those named on the command line, in
 * that order. Prints the first line that is not and exits 1. Built by cli.sh. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 256
#define DEPTH_MAX 20

static const char *at;
static char **wanted;
static int wanted_count;

static int value(int depth);

static int utf8(void)
{
    const unsigned char *p = (const unsigned char *)at;
    int more = *p < 0x80                 ? 0
               : *p >= 0xc2 && *p < 0xe0 ? 1
               : *p >= 0xe0 && *p < 0xf0 ? 2
               : *p >= 0xf0 && *p < 0xf5 ? 3
                                         : -1;

    if (more < 0 || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
        return 0;
    for (int i = 1; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    at += more + 1;
    return 1;
}

static int string(void)
{
    if (*at++ != '"') return 0;
    while (*at != '"') {
        if ((unsigned char)*at < 32) return 0; /* also the end of the line */
        if (*at != '\\') {
            if (!utf8()) return 0;
        } else if (at[1] == 'u') {
            for (int i = 2; i < 6; i++)
                if (!isxdigit((unsigned char)at[i])) return 0;
            at += 6;
        } else {
            if (!at[1] || !strchr("\"\\/bfnrt", at[1])) return 0;
            at += 2;
        }
    }
    at++;
    return 1;
}

static int digits(void)
{
    if (!isdigit((unsigned char)*at)) return 0;
    while (isdigit((unsigned char)*at)) at++;
    return 1;
}

static int number(void)
{
    if (*at == '-') at++;
    if (*at == '0')
        at++;
    else if (!digits())
        return 0;
    if (*at == '.' && (at++, !digits())) return 0;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        return digits();
    }
    return 1;
}

static int object(int depth)
{
    const char *name[MEMBERS_MAX];
    size_t len[MEMBERS_MAX];
    int count = 0;

    if (*at++ != '{') return 0;
    if (*at == '}') return at++, depth > 0 || wanted_count == 0;
    for (;; at++) {
        if (count == MEMBERS_MAX) return 0;
        name[count] = at + 1;
        if (!string()) return 0;
        len[count] = (size_t)(at - name[count]) - 1;
        for (int i = 0; i < count; i++)
            if (len[i] == len[count] && !memcmp(name[i], name[count], len[i])) return 0;
        if (depth == 0 && count < wanted_count &&
            (strlen(wanted[count]) != len[count] ||
             memcmp(wanted[count], name[count], len[count]) != 0))
            return 0;
        count++;
        if (*at++ != ':' || !value(depth + 1)) return 0;
        if (*at != ',') break;
    }
    return *at++ == '}' && (depth > 0 || count >= wanted_count);
}

static int value(int depth)
{
    if (depth > DEPTH_MAX) return 0;
    if (*at == '"') return string();
    if (*at == '{') return object(depth);
    if (!strncmp(at, "true", 4) || !strncmp(at, "null", 4)) return at += 4, 1;
    if (!strncmp(at, "false", 5)) return at += 5, 1;
    return number();
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    wanted = argv + 1;
    wanted_count = argc - 1;
    while ((len = getline(&line, &room, stdin)) > 0) {
        at = line;
        if (line[len - 1] == '\n' && object(0) && at == line + len - 1) continue;
        printf("not what was promised, at byte %ld: %s\n", (long)(at - line), line);
        return 1;
    }
    free(line);
    return 0;
}
