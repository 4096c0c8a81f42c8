/* backup.h - reading a log that another process may be appending to, and copying its files.
 *
 * Nothing here locks or changes the log that is read. That is possible because of how a log is
 * written: positions only grow, a sealed segment stays as it is until it expires, and the control
 * file names a segment as expired before its file is written again. So a reader takes a moment
 * first, copies, and then asks the control file whether what it copied was still there.
 *
 *   backup.c        the moment
 *   backup_newer.c  whether the control file is an older one
 *   backup_row.c    which segments it has
 *   backup_copy.c   copying a file, and checking the batches of a copy */
#ifndef WEIR_LOG_BACKUP_H
#define WEIR_LOG_BACKUP_H

#include "log/segment.h"

/* A log on disk. */
struct weir__backup_log {
    struct weir__fs *fs;
    const char *dir;
    uint64_t hub_id;
};

/* NNNNNNNN.seg, or longer. */
bool weir__backup_is_segment(const char *name);

/* A segment by the name of its file; none is opened for later. When it has no readable header,
 * WEIR_ECORRUPT, and out has its name and its bytes as capacity. */
int weir__backup_segment_read(const struct weir__backup_log *, const char *name,
                              struct weir__segment *out, struct weir_error *);

/* Log position that no batch of a segment passes. */
static inline uint64_t weir__backup_limit(const struct weir__segment *seg)
{
    return seg->h.base + seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes);
}

/* Where a log stood: every batch in front of `end` was complete on disk. */
struct weir__backup_moment {
    struct weir__control control; /* as it was read */
    struct weir__segment last;    /* the segment in which the end lies; no file is open */
    struct weir__head *heads;     /* of all partitions, at the end */
    uint64_t end;
    uint64_t walked; /* batches from the watermark to the end, */
    uint32_t trace;  /* and a checksum over what their headers say */
    bool damaged;    /* acknowledged bytes in front of the end cannot be read */
    bool unread;     /* the disk did not give what lies at the end; settling tries again */
};

/* Takes the moment: the end of what is complete now. Every batch acknowledged before the call lies
 * in front of it. Short, also for a large segment. WEIR_EBUSY: the log changed too often meanwhile.
 * On error out is empty. */
int weir__backup_moment_take(const struct weir__backup_log *, struct weir__backup_moment *out,
                             struct weir_error *);

/* The control file as it is now, which a writer may be about to replace. out is the caller's to free. */
int weir__backup_control_read(const struct weir__backup_log *, struct weir__control *out,
                              struct weir_error *);

/* The header of a batch of any opening that begins at the position, also when its body is bad; out->epoch is
 * 0 when there is none. *out_unread: the disk did not give it, so nobody knows. */
int weir__backup_header_at(const struct weir__backup_log *, const struct weir__segment *,
                           uint64_t position, struct weir__batch_header *out, bool *out_unread,
                           struct weir_error *);

/* WEIR_ECORRUPT: there are segments or batches that the control file, which is older, does not know.
 * WEIR_EIO: there may be. */
int weir__backup_check_newer(const struct weir__backup_log *, const struct weir__backup_moment *,
                             struct weir_error *);

/* Looks whether readable batches lie behind an unreadable one at the end. They then belong to the
 * moment, which becomes a later one, and it is marked as damaged. Reads the rest of the segment.
 * WEIR_ECORRUPT: there are segments or batches that the control file, which is older, does not know. */
int weir__backup_moment_settle(const struct weir__backup_log *, struct weir__backup_moment *,
                               struct weir_error *);

/* After copying: *out_first is the oldest segment that was still kept. WEIR_EBUSY: the moment has
 * expired as a whole, or its newest batches were taken back for want of space: take it again. */
int weir__backup_moment_still(const struct weir__backup_log *, const struct weir__backup_moment *,
                              uint64_t *out_first, struct weir_error *);

void weir__backup_moment_fini(struct weir__backup_moment *); /* takes an empty one */

/* The segments of a moment, from the oldest to the newest, each with its end; one whose successor
 * is missing may end earlier than it says, which is at the limit. A number that has no file with a
 * readable header is left out; while one is left out, files without a readable header come first,
 * with number 0: one of them may be it. */
struct weir__backup_row {
    struct weir__segment *at; /* no file is open; the row's own */
    size_t count;
    uint64_t missing; /* segments that were left out */
};

int weir__backup_row_read(const struct weir__backup_log *, const struct weir__backup_moment *,
                          struct weir__backup_row *out, struct weir_error *);
void weir__backup_row_fini(struct weir__backup_row *);

/* The control file of a copy whose oldest segment is `first` and whose newest has this number in
 * its file's name. The watermark is the moment's end, behind which a copy has zeros; a damaged moment
 * keeps the log's watermark: opening the copy finds what opening the log would find. The epoch is the
 * log's, so that in the log's own folder this is an older control file like any other, and what came
 * later is found. out->heads is the caller's to free. */
int weir__backup_control(const struct weir__backup_moment *, uint64_t first, uint64_t name,
                         const struct weir__rand *, struct weir__control *out, struct weir_error *);

/* ---- files ---- */

/* Which bytes of a file count: those in front of `used` and those from `tail` on. Between them is
 * space that nothing was written to, or what was there before the file was used again; a copy has
 * zeros there. */
struct weir__backup_extent {
    uint64_t bytes; /* of the file */
    uint64_t used, tail;
    uint64_t mark; /* of the last bytes of both parts: two files of one segment that went on
                      differently differ here */
};

/* `end`: where the segment's batches end; `sealed`: it has a successor. */
int weir__backup_measure(const struct weir__backup_log *, const struct weir__segment *,
                         uint64_t end, bool sealed, struct weir__backup_extent *out,
                         struct weir_error *);

/* What is done with the bytes that count, in order. */
struct weir__backup_sink {
    int (*take)(void *user, const void *at, size_t len, struct weir_error *);
    void *user;
};

struct weir__backup_copied {
    uint64_t unreadable; /* bytes that the disk did not give; zeros took their place */
    uint64_t stray;      /* bytes between the two parts that are not zero */
    bool at_source;      /* what failed is the file that was read */
};

/* Copies a file to a new one and syncs it; blocks of zeros become holes. to NULL: only reads, the
 * bytes between the parts too. */
int weir__backup_copy(struct weir__fs *, const char *from, const char *to,
                      const struct weir__backup_extent *, const struct weir__backup_sink *,
                      struct weir__backup_copied *out, struct weir_error *);

/* Checks every batch of a segment, and both copies of its header. fn is called for each thing that
 * is wrong, with the place in the file. */
struct weir__backup_finding {
    uint64_t at, len;
    const char *text;
    bool spare; /* nothing is lost: another copy serves */
};

int weir__backup_verify(struct weir__fs *, const char *path, const struct weir__segment *,
                        uint64_t end, void (*fn)(const struct weir__backup_finding *, void *user),
                        void *user, struct weir_error *);

/* How the partitions stood in front of a segment. */
int weir__backup_heads(const struct weir__backup_log *, const char *name, uint32_t partitions,
                       struct weir__head *out, struct weir_error *);

/* Whether a segment lacks one of the newest events of the partitions, as heads have them behind it; those
 * that it has are taken out of heads. Its batches lie in front of `end`; WEIR_ECORRUPT: some of them cannot
 * be read. */
int weir__backup_lacks(const struct weir__backup_log *, const char *name, uint64_t end,
                       uint32_t partitions, struct weir__head *heads, bool *out,
                       struct weir_error *);

#endif
