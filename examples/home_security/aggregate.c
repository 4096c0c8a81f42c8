/* aggregate.c - one partition's sums in a file.
 *
 *     {"epoch":4,"last":18231,"motion":6077,"opening":6077,"glass":6077,"monoxide":0,"alarms":2}
 *
 * A file has no conditions as a blob has (write only if nobody else has written), so the check and
 * the write are done under a lock on a file beside it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "home.h"

const char *const sensor_names[SENSORS] = {"motion", "opening", "glass", "monoxide"};
const char *const job_names[JOBS] = {"storage", "routing"};

void tally_add(struct tally *t, enum sensor sensor, bool alarm)
{
    t->events[sensor]++;
    t->alarms += alarm;
}

uint64_t tally_events(const struct tally *t)
{
    uint64_t sum = 0;

    for (int i = 0; i < SENSORS; i++) sum += t->events[i];
    return sum;
}

size_t report_write(char out[REPORT_BYTES], uint32_t home, enum sensor sensor, bool alarm)
{
    return (size_t)snprintf(out, REPORT_BYTES, "{\"home\":%u,\"sensor\":\"%s\",\"alarm\":%s}", home,
                            sensor_names[sensor], alarm ? "true" : "false");
}

bool report_read(struct weir_bytes body, enum sensor *out_sensor, bool *out_alarm)
{
    char text[REPORT_BYTES], sensor[16], alarm[8];
    unsigned home;

    if (body.len >= sizeof text) return false;
    memcpy(text, body.at, body.len);
    text[body.len] = '\0';
    if (sscanf(text, "{\"home\":%u,\"sensor\":\"%15[a-z]\",\"alarm\":%7[a-z]}", &home, sensor,
               alarm) != 3)
        return false;
    *out_alarm = strcmp(alarm, "true") == 0;
    for (int i = 0; i < SENSORS; i++)
        if (strcmp(sensor, sensor_names[i]) == 0) {
            *out_sensor = (enum sensor)i;
            return true;
        }
    return false;
}

/* A file that is not there yet is an empty aggregate of nobody. */
int aggregate_read(const char *path, struct aggregate *a)
{
    FILE *f = fopen(path, "r");
    struct tally *t = &a->tally;
    int fields;

    *t = (struct tally){{0}, 0};
    a->epoch = a->last = -1;
    if (!f) return errno == ENOENT ? 0 : -1;
    fields = fscanf(f,
                    "{\"epoch\":%" SCNd64 ",\"last\":%" SCNd64 ",\"motion\":%" SCNu64
                    ",\"opening\":%" SCNu64 ",\"glass\":%" SCNu64 ",\"monoxide\":%" SCNu64
                    ",\"alarms\":%" SCNu64 "}",
                    &a->epoch, &a->last, &t->events[MOTION], &t->events[OPENING], &t->events[GLASS],
                    &t->events[MONOXIDE], &t->alarms);
    fclose(f);
    if (fields == 7) return 0;
    errno = EINVAL;
    return -1;
}

/* A new file in the old one's place, so that a reader sees the one or the other. */
static int write_file(const struct aggregate *a)
{
    char fresh[sizeof a->path + 8];
    const struct tally *t = &a->tally;
    FILE *f;
    int rc;

    snprintf(fresh, sizeof fresh, "%s.new", a->path);
    f = fopen(fresh, "w");
    if (!f) return -1;
    rc = fprintf(f,
                 "{\"epoch\":%" PRId64 ",\"last\":%" PRId64 ",\"motion\":%" PRIu64
                 ",\"opening\":%" PRIu64 ",\"glass\":%" PRIu64 ",\"monoxide\":%" PRIu64
                 ",\"alarms\":%" PRIu64 "}\n",
                 a->epoch, a->last, t->events[MOTION], t->events[OPENING], t->events[GLASS],
                 t->events[MONOXIDE], t->alarms);
    if (fclose(f) != 0 || rc < 0) return -1;
    return rename(fresh, a->path);
}

static int lock_file(const char *path)
{
    char beside[520];
    int fd;

    snprintf(beside, sizeof beside, "%s.lock", path);
    fd = open(beside, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) flock(fd, LOCK_EX);
    return fd;
}

int aggregate_open(struct aggregate *a, const char *dir, enum job job, uint32_t partition,
                   int64_t epoch)
{
    int fd, rc;

    snprintf(a->path, sizeof a->path, "%s/%s-%u.json", dir, job_names[job], partition);
    if (epoch < 0) return aggregate_read(a->path, a);
    fd = lock_file(a->path);
    if (fd < 0) return -1;
    rc = aggregate_read(a->path, a);
    if (rc == 0 && a->epoch > epoch) {
        errno = ESTALE;
        rc = -1;
    }
    a->epoch = epoch;
    if (rc == 0) rc = write_file(a);
    close(fd);
    return rc;
}

int aggregate_save(const struct aggregate *a)
{
    struct aggregate there;
    int fd = lock_file(a->path), rc;

    if (fd < 0) return -1;
    rc = aggregate_read(a->path, &there);
    if (rc == 0 && there.epoch > a->epoch) {
        errno = ESTALE;
        rc = -1;
    }
    if (rc == 0) rc = write_file(a);
    close(fd);
    return rc;
}
