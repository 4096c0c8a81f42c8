/* recover.h - what the files that bring a log back from its folder share.
 *
 *   gather.c    the files there are, and which of them are the log's row of segments
 *   lives.c     which segments a file has been, from the batches in it
 *   adopt.c     files without a readable header: whose they are
 *   rebuild.c   a control file from the segments
 *   active.c    walking the segment that was being appended to
 *   gaps.c      whose events were in its unreadable ranges
 *   recover.c   the order of it all */
#ifndef WEIR_LOG_RECOVER_H
#define WEIR_LOG_RECOVER_H

#include "log/lives.h"
#include "log/state.h"

/* A segment file of the folder. */
struct weir__found {
    char name[WEIR__SEGMENT_NAME_BYTES];
    uint64_t name_number;
    uint64_t bytes;
    uint64_t used; /* of them on the disk */
    bool readable; /* h is its header */
    bool one_copy; /* of it is bad */
    bool preferred;
    bool taken; /* it is a segment of the log */
    struct weir__segment_header h;
    bool probed;
    struct weir__lives lives;
};

/* Unreadable ranges of the last segment; see gaps.c. */
struct weir__gaps {
    uint64_t watermark;
    uint32_t partitions;
    uint64_t from, to;                    /* the range in front of what is visited next */
    uint64_t *lost;                       /* per partition: events behind its last good batch */
    uint64_t unknown_from, unknown_bytes; /* of which nobody knows whose they were */
};

int weir__gaps_init(struct weir__gaps *, uint32_t partitions, uint64_t watermark,
                    struct weir_error *);
void weir__gaps_fini(struct weir__gaps *);
void weir__gaps_batch(struct weir__gaps *, const struct weir__batch_header *);
void weir__gaps_damage(struct weir__gaps *, uint64_t from, uint64_t to);
/* The same for a last segment without a file, of which nobody knows what was written behind the
 * watermark. False: nothing can have been, or an earlier opening has passed over all of it, and the
 * control file names no file since. */
bool weir__gaps_lose(struct weir__gaps *, const struct weir__control *,
                     const struct weir__segment *);
/* After the walk: from the heads it found to those that may be given from; known is the control
 * file's. */
void weir__gaps_pass(struct weir__gaps *, const struct weir__head *known, struct weir__head *heads);

struct weir__recovery {
    struct weir__log *log;
    struct weir_error *err;
    bool no_control;
    bool unsure;      /* the control file knows less than the segments: of epochs, and of the end */
    bool end_unknown; /* what lies behind it may have been acknowledged */
    bool missing;     /* a segment is lost, and perhaps only its header is */
    struct weir__found *found;
    size_t found_count, found_cap;

    /* What is not as it should be; NULL: a line of the log. file is a name in the folder. */
    void (*tell)(void *user, enum weir__log_finding_kind, const char *file, const char *text);
    void *user;

    struct weir__gaps gaps;
};

void weir__recovery_fini(struct weir__recovery *);

__attribute__((format(printf, 4, 5))) void weir__recovery_tell(struct weir__recovery *,
                                                               enum weir__log_finding_kind,
                                                               const char *file, const char *fmt,
                                                               ...);

/* After the walk of the last segment: whether it met a batch that shows that the control file is an
 * older copy, which is told. 0: it did not. */
bool weir__recovery_control_is_old(struct weir__recovery *, uint64_t later_at);

/* Finds the log's segments and puts them in order. Changes nothing on disk. */
int weir__gather(struct weir__recovery *);

/* Puts a segment behind the row; f NULL: it is lost. */
int weir__gather_push(struct weir__recovery *, uint64_t number, struct weir__found *f);

/* Lets go of files that are none of the log's and hold nothing of it. */
int weir__gather_clear(struct weir__recovery *);

/* Which lives a file has; once. */
int weir__adopt_probe(struct weir__recovery *, struct weir__found *);

/* Whether a file without a header can be the segment that the control file names as the last: it has the name,
 * and no batches of a later one, which it would have if it had been used again since. */
int weir__adopt_is_active(struct weir__recovery *, struct weir__found *, bool *out);

/* Gives segments that are lost in the row their files, as far as it can be proven whose they are. */
int weir__adopt(struct weir__recovery *);

/* The segments that the control file does not know yet, though they have batches. */
int weir__adopt_beyond(struct weir__recovery *);

/* A control file from the segments' headers. WEIR_ECORRUPT: none can be read, which is refused. */
int weir__rebuild_control(struct weir__recovery *);
int weir__rebuild_refuse(struct weir__recovery *);

/* Opens and walks the last segment. */
int weir__active_open(struct weir__recovery *);

#endif
