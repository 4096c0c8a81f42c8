/* unplugged.c - a client whose cable is pulled and put back: unplugged CONNECTION IDLE_MS DOWN_S
 * UNPLUG PLUG, of which the last two are commands that do it. Built and run by unplugged.sh.
 *
 * Two producers send a number every few milliseconds, one plain, one idempotent, each to its own
 * partition, and two threads read them. It exits 1, with a sentence, unless
 *
 *   the silence was noticed within twice the idle time-out: a batch's outcome was unknown
 *   no call took longer than it was given
 *   the next event after the cable was back was stored and read
 *   every number that was stored was read, in order: of the idempotent ones each, once */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

#define NUMBERS_MAX 100000
#define EVERY_MS 5
#define CALL_MS 200   /* what a receive is given */
#define SLACK_MS 2000 /* for the machine to be busy, on top of what a call was given */
#define RESUME_MS 20000
#define CLOSE_MS 30000

enum kind { PLAIN, IDEMPOTENT, KINDS };

static const char *const names[] = {"plain", "idempotent"};

struct side {
    enum kind kind;
    struct weir_producer *producer;
    struct weir_receiver *receiver;
    pthread_t thread;
    uint32_t sent;
    atomic_uint landed, stored, unknown, refused;
    atomic_uchar told[NUMBERS_MAX]; /* 1: stored */
    atomic_uchar read[NUMBERS_MAX];
    atomic_uint highest; /* number that was read, and one */
    atomic_int_fast64_t longest_ms;
    atomic_bool disorder;
    struct weir_error why;
};

struct ticket {
    struct side *side;
    uint32_t number;
};

static struct side sides[KINDS];
static atomic_bool stop;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void die(const char *what, const char *why)
{
    printf("unplugged: %s: %s\n", what, why);
    exit(1);
}

static void check(int rc, const char *what, const struct weir_error *err)
{
    if (rc != 0) die(what, err->text);
}

/* ---- the two ends ---- */

static void landed(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    struct ticket *t = user;
    struct side *s = t->side;

    (void)at;
    if (rc == 0) atomic_store(&s->told[t->number], 1);
    if (rc != 0 && s->why.code == 0) s->why = *why;
    atomic_fetch_add(rc == 0 ? &s->stored : rc == WEIR_EUNKNOWN ? &s->unknown : &s->refused, 1);
    atomic_fetch_add(&s->landed, 1);
    free(t);
}

/* The next number, unless too much is on its way. */
static void send_next(struct side *s)
{
    char text[16];
    struct weir_event e = {0};
    struct ticket *t = malloc(sizeof *t);
    struct weir_error err;
    int rc;

    if (!t || s->sent == NUMBERS_MAX) die(names[s->kind], "too many numbers");
    snprintf(text, sizeof text, "%u", s->sent);
    e.body = weir_text(text);
    *t = (struct ticket){s, s->sent};
    rc = weir_producer_send_async(s->producer, &e, 1, 0, landed, t, &err);
    if (rc == 0) s->sent++;
    if (rc != 0) free(t);
    if (rc != 0 && rc != WEIR_EBUSY) die(names[s->kind], err.text);
}

static void take(struct side *s, const struct weir_event *e)
{
    char text[16] = "";
    uint32_t number;

    memcpy(text, e->body.at, e->body.len < 15 ? e->body.len : 15);
    number = (uint32_t)strtoul(text, NULL, 10);
    if (number >= NUMBERS_MAX || number < atomic_load(&s->highest))
        atomic_store(&s->disorder, true);
    if (number >= NUMBERS_MAX) return;
    atomic_fetch_add(&s->read[number], 1);
    atomic_store(&s->highest, number + 1);
}

static void *read_on(void *arg)
{
    struct side *s = arg;
    struct weir_received got;
    struct weir_error err;

    while (!atomic_load(&stop)) {
        int64_t since = now_ms(), took;
        int rc = weir_receiver_receive(s->receiver, 100, CALL_MS, &got, &err);
        took = now_ms() - since;
        if (took > atomic_load(&s->longest_ms)) atomic_store(&s->longest_ms, took);
        if (rc != 0 && rc != WEIR_ETIMEDOUT) die("receiving", err.text);
        for (size_t i = 0; i < got.count; i++) take(s, &got.events[i]);
    }
    return NULL;
}

static void open_side(struct weir *w, enum kind kind)
{
    struct weir_producer_options o = {.size = sizeof o,
                                      .pinned = true,
                                      .partition = kind,
                                      .idempotent = kind == IDEMPOTENT};
    struct side *s = &sides[kind];
    struct weir_error err;

    s->kind = kind;
    check(weir_producer_open(&s->producer, w, "h", &o, &err), names[kind], &err);
    check(weir_receiver_open(&s->receiver, w, "h", kind, NULL, &err), names[kind], &err);
    if (pthread_create(&s->thread, NULL, read_on, s) != 0) die(names[kind], "no thread");
}

/* ---- the course of events ---- */

static void send_for(int64_t ms)
{
    for (int64_t until = now_ms() + ms; now_ms() < until; sleep_ms(EVERY_MS))
        for (int i = 0; i < KINDS; i++) send_next(&sides[i]);
}

static void run(const char *command)
{
    if (system(command) != 0) die(command, "failed");
}

static unsigned count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;

    while (tasks && readdir(tasks)) count++;
    if (tasks) closedir(tasks);
    return count;
}

static void await_notice(int64_t since, int64_t idle_ms)
{
    unsigned before = atomic_load(&sides[PLAIN].unknown);

    while (atomic_load(&sides[PLAIN].unknown) == before) {
        send_for(EVERY_MS);
        if (now_ms() - since > 2 * idle_ms) die("the silence", "was not noticed in time");
    }
    printf("noticed after %lld ms of an idle time-out of %lld\n", (long long)(now_ms() - since),
           (long long)idle_ms);
}

/* Those who wait for an outcome get one when they said. */
static void ask_in_vain(struct weir *w)
{
    struct weir_event e = {.body = weir_text("0")};
    struct weir_producer *p = sides[PLAIN].producer;
    int64_t since = now_ms();
    struct weir_hub_info info;
    struct weir_error err;

    if (weir_producer_send(p, &e, 1, CALL_MS, NULL, &err) == 0) die("a send", "went through");
    if (now_ms() - since > CALL_MS + SLACK_MS) die("a send", "took too long");
    since = now_ms();
    if (weir_hub_info(w, "h", &info, &err) == 0) die("a question", "was answered");
    if (weir_error_class(err.code) != WEIR_CLASS_RETRY) die("a question", err.text);
    printf("a question without an answer took %lld ms: %s\n", (long long)(now_ms() - since),
           err.text);
}

/* The first number from now on that is read, of each. */
static void await_resumption(int64_t since)
{
    uint32_t from[KINDS];

    for (int i = 0; i < KINDS; i++) from[i] = sides[i].sent;
    for (int i = 0; i < KINDS; i++) {
        while (atomic_load(&sides[i].highest) <= from[i]) {
            send_for(EVERY_MS);
            if (now_ms() - since > RESUME_MS) die(names[i], "did not go on");
        }
        printf("%-10s went on after %lld ms\n", names[i], (long long)(now_ms() - since));
    }
}

static void judge(struct side *s)
{
    uint32_t lost = 0, twice = 0;

    for (uint32_t i = 0; i < s->sent; i++) {
        lost += atomic_load(&s->told[i]) && !atomic_load(&s->read[i]);
        twice += atomic_load(&s->read[i]) > 1;
    }
    printf(
        "%-10s %u sent, %u stored, %u unknown, %u not sent; %u lost, %u twice; a receive took up "
        "to %lld ms\n",
        names[s->kind], s->sent, atomic_load(&s->stored), atomic_load(&s->unknown),
        atomic_load(&s->refused), lost, twice, (long long)atomic_load(&s->longest_ms));
    if (lost || twice || atomic_load(&s->disorder)) die(names[s->kind], "lost, twice or disorder");
    if (s->kind == IDEMPOTENT && atomic_load(&s->stored) != s->sent) die("idempotent", s->why.text);
    if (atomic_load(&s->longest_ms) > CALL_MS + SLACK_MS) die("a receive", "took too long");
}

static void await_the_last(struct side *s)
{
    struct weir_error err;
    uint32_t last;

    check(weir_producer_flush(s->producer, CLOSE_MS, &err), "flushing", &err);
    if (atomic_load(&s->landed) != s->sent) die(names[s->kind], "outcomes are missing");
    for (last = s->sent; last > 0 && !atomic_load(&s->told[last - 1]);) last--;
    for (int64_t since = now_ms(); atomic_load(&s->highest) < last; sleep_ms(EVERY_MS))
        if (now_ms() - since > CLOSE_MS) die(names[s->kind], "is not read to its end");
}

int main(int argc, char **argv)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = 1000};
    int64_t since, down_ms;
    struct weir_error err;
    struct weir *w;
    unsigned threads;

    if (argc != 6) die("usage", "CONNECTION IDLE_MS DOWN_S UNPLUG PLUG");
    o.idle_ms = (uint32_t)atoi(argv[2]);
    down_ms = atoll(argv[3]) * 1000;
    check(weir_open(&w, argv[1], &o, &err), "opening", &err);
    for (int i = 0; i < KINDS; i++) open_side(w, (enum kind)i);
    send_for(1000);
    threads = count_threads();
    since = now_ms();
    run(argv[4]);
    await_notice(since, o.idle_ms);
    ask_in_vain(w);
    send_for(down_ms - (now_ms() - since));
    if (count_threads() != threads) die("threads", "their number has changed");
    since = now_ms();
    run(argv[5]);
    await_resumption(since);
    for (int i = 0; i < KINDS; i++) await_the_last(&sides[i]);
    atomic_store(&stop, true);
    for (int i = 0; i < KINDS; i++) {
        pthread_join(sides[i].thread, NULL);
        judge(&sides[i]);
        weir_receiver_close(sides[i].receiver);
        check(weir_producer_close(sides[i].producer, CLOSE_MS, &err), "closing", &err);
    }
    check(weir_close(w, &err), "closing", &err);
    return 0;
}
