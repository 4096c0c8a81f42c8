/* said.h - what a function of the program prints: standard output and standard error go into files
 * meanwhile. */
#ifndef WEIR_TESTS_CLI_SAID_H
#define WEIR_TESTS_CLI_SAID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SAID_BYTES 262144

static char said_out[SAID_BYTES], said_err[SAID_BYTES];
static FILE *said_file[2];
static int said_kept[2];

static void said_divert(int i, FILE *from)
{
    fflush(from);
    said_file[i] = tmpfile();
    assert_non_null(said_file[i]);
    said_kept[i] = dup(fileno(from));
    assert_true(said_kept[i] >= 0);
    assert_true(dup2(fileno(said_file[i]), fileno(from)) >= 0);
}

static void said_restore(int i, FILE *from, char *to)
{
    size_t len;

    fflush(from);
    dup2(said_kept[i], fileno(from));
    close(said_kept[i]);
    rewind(said_file[i]);
    len = fread(to, 1, SAID_BYTES - 1, said_file[i]);
    to[len] = '\0';
    fclose(said_file[i]);
}

/* Nothing may be asserted between these: cmocka's words would be lost. */
static inline void said_begin(void)
{
    said_divert(0, stdout);
    said_divert(1, stderr);
}

/* What was printed is in said_out and said_err. */
static inline void said_end(void)
{
    said_restore(0, stdout, said_out);
    said_restore(1, stderr, said_err);
}

#endif
