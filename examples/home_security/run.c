/* run.c - the whole evening: a server, the homes, five copies, and what happens to copies: one is
 * killed, a sixth comes, one is restarted, all while the homes go on reporting and get a new sensor.
 * At the end both jobs must have counted what the homes have sent, event for event. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "home.h"

#define COPIES 5
#define COPIES_MAX 8
#define CATCH_UP_S 60
#define READY_BYTES 4096

struct evening {
    const char *weir, *dir;
    char where[READY_BYTES]; /* the server's connection string */
    char homes[16], speed[16];
    pid_t server, sensors;
    struct {
        char name[24];
        pid_t pid;
    } copies[COPIES_MAX];
    int copy_count;
};

/* Starts a program; it ends with us, however we end. out: its standard output, unless NULL. */
static pid_t spawn(char *const argv[], int *out)
{
    int ends[2] = {-1, -1};
    pid_t pid;

    if (out && pipe(ends) != 0) return -1;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (out) dup2(ends[1], STDOUT_FILENO), close(ends[0]), close(ends[1]);
        execv(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (out) close(ends[1]), *out = ends[0];
    return pid;
}

static int finish(pid_t pid, int signal, const char *who)
{
    int status = 0;

    if (pid <= 0) return 0;
    kill(pid, signal);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (signal == SIGKILL || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return 0;
    fprintf(stderr, "%s ended badly (status %d)\n", who, status);
    return 1;
}

/* The server's first line is JSON; its connection string is the text between these quotes. */
static int read_where(struct evening *e, int fd)
{
    char line[READY_BYTES] = "";
    const char *word = "\"connection_string\":\"", *from, *to;
    FILE *f = fdopen(fd, "r");
    bool got = f && fgets(line, sizeof line, f);

    from = got ? strstr(line, word) : NULL;
    to = from ? strchr(from + strlen(word), '"') : NULL;
    if (f) fclose(f);
    if (!to) {
        fprintf(stderr, "the server did not say that it is ready: %s\n", line);
        return 1;
    }
    from += strlen(word);
    snprintf(e->where, sizeof e->where, "%.*s", (int)(to - from), from);
    return 0;
}

static int start_server(struct evening *e)
{
    char data[512], hub[64];
    char *argv[] = {(char *)e->weir, "serve",  "--json",      "--data",      data,
                    "--hub",         hub,      "--amqp",      "127.0.0.1:0", "--amqps",
                    "off",           "--http", "127.0.0.1:0", NULL};
    int out = -1;

    snprintf(data, sizeof data, "%s/hub", e->dir);
    snprintf(hub, sizeof hub, "%s:%u:%s,%s", HUB, PARTITIONS, job_names[STORAGE],
             job_names[ROUTING]);
    e->server = spawn(argv, &out);
    return e->server < 0 || read_where(e, out) != 0;
}

static int start_sensors(struct evening *e)
{
    char *argv[] = {"/proc/self/exe", "sensors", e->where, (char *)e->dir,
                    e->homes,         e->speed,  NULL};

    e->sensors = spawn(argv, NULL);
    return e->sensors < 0;
}

static int start_copy(struct evening *e, int i)
{
    char *argv[] = {"/proc/self/exe", "copy", e->where, (char *)e->dir, e->copies[i].name, NULL};

    snprintf(e->copies[i].name, sizeof e->copies[i].name, "copy-%d", i + 1);
    if (i >= e->copy_count) e->copy_count = i + 1;
    e->copies[i].pid = spawn(argv, NULL);
    return e->copies[i].pid < 0;
}

static int stop_copy(struct evening *e, int i, int signal)
{
    pid_t pid = e->copies[i].pid;

    e->copies[i].pid = 0;
    return finish(pid, signal, e->copies[i].name);
}

/* What happens, in tenths of the evening. */
static int happen(struct evening *e, int tenth, const char **news)
{
    switch (tenth) {
    case 2: *news = "every home gets a carbon-monoxide detector"; return kill(e->sensors, SIGUSR1);
    case 3: *news = "copy-2 is killed"; return stop_copy(e, 1, SIGKILL);
    case 5: *news = "a sixth copy comes"; return start_copy(e, 5);
    case 6: *news = "copy-2 is back"; return start_copy(e, 1);
    case 7: *news = "copy-1 is stopped for an update"; return stop_copy(e, 0, SIGTERM);
    case 8: *news = "copy-1 is back"; return start_copy(e, 0);
    default: return 0;
    }
}

static void pass_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static int live(struct evening *e, struct board *b, int seconds)
{
    const char *news = "five copies start";
    int tenth = 0, rc = 0;

    for (int s = 1; rc == 0 && s <= seconds; s++) {
        pass_ms(1000);
        board_show(b, news);
        for (; rc == 0 && tenth < s * 10 / seconds; tenth++) rc = happen(e, tenth + 1, &news);
    }
    return rc;
}

/* The homes are quiet: until both jobs have everything. */
static int catch_up(struct board *b)
{
    for (int s = 0; s < CATCH_UP_S * 2; s++) {
        if (board_show(b, "the homes are quiet, the copies catch up") == 0) return 0;
        pass_ms(500);
    }
    fprintf(stderr, "the copies have not caught up after %d s\n", CATCH_UP_S);
    return 1;
}

int check_totals(const char *dir)
{
    struct aggregate sent, part;
    int rc = 0;

    snprintf(sent.path, sizeof sent.path, "%s/sent-0.json", dir);
    if (aggregate_read(sent.path, &sent) != 0) return perror(sent.path), 1;
    for (int job = 0; job < JOBS; job++) {
        uint64_t want = job == STORAGE ? tally_events(&sent.tally) : sent.tally.alarms;
        struct tally sum = {{0}, 0};

        for (uint32_t p = 0; p < PARTITIONS; p++) {
            if (aggregate_open(&part, dir, (enum job)job, p, -1) != 0) return perror(part.path), 1;
            for (int i = 0; i < SENSORS; i++) sum.events[i] += part.tally.events[i];
            sum.alarms += part.tally.alarms;
        }
        printf("  %-8s counted %10" PRIu64 " events of %10" PRIu64 ", %" PRIu64
               " alarms of %" PRIu64 "\n",
               job_names[job], tally_events(&sum), want, sum.alarms, sent.tally.alarms);
        if (tally_events(&sum) != want || sum.alarms != sent.tally.alarms) rc = 1;
    }
    printf(rc == 0 ? "  verified: every report counted exactly once by both jobs\n"
                   : "  WRONG: the sums differ\n");
    return rc;
}

int evening_run(const char *weir, const char *dir, uint32_t homes, double speed, int seconds)
{
    struct evening e = {.weir = weir, .dir = dir};
    struct board *b = NULL;
    int rc;

    snprintf(e.homes, sizeof e.homes, "%u", homes);
    snprintf(e.speed, sizeof e.speed, "%g", speed);
    printf("%u homes report to a hub of %u partitions; five copies of one program share it, "
           "twice.\n\n",
           homes, PARTITIONS);
    fflush(stdout);
    rc = start_server(&e);
    for (int i = 0; rc == 0 && i < COPIES; i++) rc = start_copy(&e, i);
    if (rc == 0) rc = start_sensors(&e);
    if (rc == 0) rc = (b = board_open(e.where, dir)) == NULL;
    if (rc == 0) rc = live(&e, b, seconds);
    if (finish(e.sensors, SIGTERM, "the homes") != 0) rc = 1;
    if (rc == 0) rc = catch_up(b);
    for (int i = 0; i < e.copy_count; i++)
        if (stop_copy(&e, i, SIGTERM) != 0) rc = 1;
    board_close(b);
    if (finish(e.server, SIGTERM, "the server") != 0) rc = 1;
    return rc == 0 ? check_totals(dir) : rc;
}
