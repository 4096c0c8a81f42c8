/* main.c - home_security: the words on the command line. See home.h. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "home.h"

int complain(const char *what, const struct weir_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: home_security run WEIR DIR [HOMES [SPEED [SECONDS]]]\n"
                    "       home_security sensors CONNECTION DIR HOMES SPEED\n"
                    "       home_security copy CONNECTION DIR NAME\n"
                    "       home_security check DIR\n\n"
                    "`run` does everything: WEIR is the weir program, DIR an empty folder. The "
                    "other words are\n"
                    "what it starts, for doing it by hand.\n");
    return 2;
}

static uint32_t number(int argc, char **argv, int i, uint32_t otherwise)
{
    unsigned long n;
    char *end;

    if (i >= argc) return otherwise;
    n = strtoul(argv[i], &end, 10);
    if (*end == '\0' && n > 0 && n <= UINT32_MAX) return (uint32_t)n;
    fprintf(stderr, "home_security: '%s' is no number from 1 to %u\n", argv[i], UINT32_MAX);
    exit(2);
}

/* Blocked in every thread, and waited for. */
static void hold_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    double speed = argc > 5 && atof(argv[5]) > 0 ? atof(argv[5]) : 1;

    if (strcmp(word, "run") == 0 && argc >= 4)
        return evening_run(argv[2], argv[3], number(argc, argv, 4, 100000), speed,
                           (int)number(argc, argv, 6, 30));
    hold_signals();
    if (strcmp(word, "sensors") == 0 && argc == 6)
        return sensors_run(argv[2], argv[3], number(argc, argv, 4, 100000), speed);
    if (strcmp(word, "copy") == 0 && argc == 5) return copy_run(argv[2], argv[3], argv[4]);
    if (strcmp(word, "check") == 0 && argc == 3) return check_totals(argv[2]);
    return usage();
}
