/* producer_load.c - reading the file of producers (producer_file.c), whatever is left of it. */
#include <inttypes.h>
#include <stdlib.h>

#include "log/producer_file.h"
#include "log/state.h"

#define BLOCK_BYTES WEIR__FS_BLOCK

struct loading {
    struct weir__log *log;
    struct weir__producers *to; /* NULL: nobody wants them */
    weir__producer_damage_fn fn;
    void *user;
    uint64_t *generations; /* the highest first */
    size_t generation_count, generation_cap;
    struct weir_error *err;  /* of who lists them */
    struct weir__file *file; /* the chosen one; NULL: there is none */
    uint64_t generation;
    char name[WEIR__PRODUCER_FILE_NAME_BYTES];
    bool headed; /* its head is good */
    struct weir__producer_head head;
    uint64_t wanted;        /* the append that must be the last */
    uint64_t end;           /* blocks of the file */
    uint64_t good;          /* the last good one's number */
    uint64_t bad_from;      /* where a bad range began; 0: none */
    uint64_t bad_blocks;    /* told */
    bool unread;            /* the disk refused some: it may change its mind */
    uint64_t turn, covered; /* of the newest append met */
    uint32_t now;           /* minutes */
};

static bool parse_name(const char *name, uint64_t *out_generation)
{
    char again[WEIR__PRODUCER_FILE_NAME_BYTES];

    if (strncmp(name, "producers-", 10) != 0) return false;
    *out_generation = strtoull(name + 10, NULL, 10);
    weir__producer_file_name(*out_generation, again);
    return strcmp(name, again) == 0;
}

static bool grow_generations(struct loading *l)
{
    size_t cap = l->generation_cap ? l->generation_cap * 2 : 4;
    uint64_t *grown = realloc(l->generations, cap * sizeof *grown);

    if (!grown) return false;
    l->generations = grown;
    l->generation_cap = cap;
    return true;
}

static int note_name(const char *name, void *user)
{
    struct loading *l = user;
    uint64_t generation;
    size_t i;

    if (!parse_name(name, &generation)) return 0;
    if (l->generation_count == l->generation_cap && !grow_generations(l))
        return weir__fail(l->err, WEIR_ENOMEM, "reading producers: out of memory");
    for (i = l->generation_count++; i > 0 && l->generations[i - 1] < generation; i--)
        l->generations[i] = l->generations[i - 1];
    l->generations[i] = generation; /* the highest first */
    return 0;
}

/* Reads the head, when it is good. Only what has nothing to do with the bytes is an error. What the
 * disk refuses once is asked for again. */
static int read_head(struct loading *l, uint8_t *block, struct weir_error *err)
{
    struct weir__producer_head head;
    size_t got = 0;
    int rc = l->file->ops->read(l->file, block, BLOCK_BYTES, 0, &got, err);

    if (rc == WEIR_EIO) rc = l->file->ops->read(l->file, block, BLOCK_BYTES, 0, &got, err);
    if (rc == WEIR_EIO) l->unread = true;
    if (rc == WEIR_EIO || (rc == 0 && got < BLOCK_BYTES)) return 0;
    if (rc != 0 || !weir__producer_head_decode(l->log, block, &head) ||
        head.generation != l->generation)
        return rc;
    if (head.version != WEIR__PRODUCER_FILE_VERSION)
        return weir__fail(err, WEIR_EVERSION, "%s: format version %u is not known here", l->name,
                          head.version);
    l->headed = true;
    l->head = head;
    return 0;
}

static int open_generation(struct loading *l, uint64_t generation, uint8_t *block,
                           struct weir_error *err)
{
    unsigned flags = WEIR__FS_DIRECT | (l->to ? 0 : WEIR__FS_READ_ONLY);
    struct weir__fs *fs = l->log->fs;
    const char *dir = l->log->dir;
    int rc;

    weir__file_close(l->file);
    l->file = NULL;
    l->generation = generation;
    l->headed = false;
    l->head = (struct weir__producer_head){.blocks = 1};
    weir__producer_file_name(generation, l->name);
    rc = weir__log_open_name(fs, dir, l->name, flags, &l->file, err);
    if (rc == WEIR_EIO) /* once is no answer */
        rc = weir__log_open_name(fs, dir, l->name, flags, &l->file, err);
    if (rc == 0) return read_head(l, block, err);
    if (rc != WEIR_EIO) return rc;
    l->unread = true; /* as if it were not there */
    return 0;
}

static void end_bad_range(struct loading *l, uint64_t to)
{
    uint64_t blocks = to - l->bad_from;

    if (l->bad_from == 0 || blocks == 0 || !l->fn) return;
    l->bad_blocks += blocks;
    l->fn(l->user, l->name, l->bad_from * BLOCK_BYTES, blocks * BLOCK_BYTES);
    l->bad_from = 0;
}

static int take_records(struct loading *l, const struct weir__producer_block *b, uint8_t *at,
                        struct weir_error *err)
{
    uint32_t minutes = weir__producer_minutes(b->keep_ms);

    for (uint32_t i = 0; l->to && i < b->records; i++) {
        struct weir__producer p;

        weir__producer_decode(weir__producer_record(at, i), minutes, &p);
        if (p.id == 0 || p.partition >= l->log->partitions) continue;
        if (l->now > p.used && l->now - p.used > WEIR__PRODUCER_AGE_MIN) continue;
        if (!weir__producers_learn(l->to, &p, false))
            return weir__fail(err, WEIR_ENOMEM, "reading producers: out of memory");
    }
    return 0;
}

/* One block; *out_last: the file ends behind it. */
static int take_block(struct loading *l, uint8_t *at, uint64_t number, bool readable,
                      bool *out_last, struct weir_error *err)
{
    struct weir__producer_block b;

    *out_last = false;
    if (!readable || !weir__producer_block_decode(l->log, at, l->generation, number, &b)) {
        if (l->bad_from == 0) l->bad_from = number;
        return 0;
    }
    if (number >= l->head.blocks && (b.turn > l->wanted || b.turn < l->turn)) {
        *out_last = true; /* of an append that was not finished */
        return 0;
    }
    end_bad_range(l, number);
    l->good = number;
    if (b.turn > l->turn) l->turn = b.turn;
    if (b.covered > l->covered) l->covered = b.covered;
    l->end = number + 1 + b.follow;
    *out_last = number >= l->head.blocks && b.turn == l->wanted && b.follow == 0;
    return take_records(l, &b, at, err);
}

/* Some blocks at once; those of a range that cannot be read, one by one. */
static int take_rows(struct loading *l, uint8_t *rows, uint64_t from, uint64_t count,
                     bool *out_last, struct weir_error *err)
{
    size_t got = 0;
    int rc = l->file->ops->read(l->file, rows, count * BLOCK_BYTES, from * BLOCK_BYTES, &got, err);
    bool apart = rc == WEIR_EIO;

    if (rc != 0 && !apart) return rc;
    for (uint64_t i = 0; i < count && !*out_last; i++) {
        uint8_t *at = rows + i * BLOCK_BYTES;
        bool readable = (i + 1) * BLOCK_BYTES <= got;

        if (apart) {
            rc = l->file->ops->read(l->file, at, BLOCK_BYTES, (from + i) * BLOCK_BYTES, &got, err);
            if (rc != 0 && rc != WEIR_EIO) return rc;
            if (rc == WEIR_EIO) l->unread = true;
            readable = rc == 0 && got == BLOCK_BYTES;
        }
        rc = take_block(l, at, from + i, readable, out_last, err);
        if (rc != 0) return rc;
    }
    return 0;
}

/* Everything up to the last append that the active segment knows of. */
static int take_blocks(struct loading *l, uint8_t *rows, struct weir_error *err)
{
    uint64_t bytes = 0, blocks;
    bool last = false;
    int rc = l->file->ops->size(l->file, &bytes, err);

    blocks = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
    if (l->headed && l->head.turn >= l->wanted && blocks > l->head.blocks) blocks = l->head.blocks;
    l->end = 1;
    l->turn = l->head.turn;
    for (uint64_t i = 1; rc == 0 && !last && i < blocks; i += WEIR__PRODUCER_ROWS) {
        uint64_t count = blocks - i < WEIR__PRODUCER_ROWS ? blocks - i : WEIR__PRODUCER_ROWS;

        rc = take_rows(l, rows, i, count, &last, err);
    }
    return rc;
}

/* The last append that a file with a good head has. */
static int see_turn(struct loading *l, uint8_t *rows, uint64_t *out, struct weir_error *err)
{
    struct loading look = *l;
    int rc;

    look.to = NULL;
    look.fn = NULL;
    rc = take_blocks(&look, rows, err);
    *out = look.turn;
    return rc;
}

/* The highest with a good head that has the last append wanted, or the latest of all. Without any
 * good head it is the lowest: that one was in use. */
static int choose_generation(struct loading *l, uint8_t *rows, struct weir_error *err)
{
    uint64_t best = 0, best_turn = 0, turn;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < l->generation_count; i++) {
        rc = open_generation(l, l->generations[i], rows, err);
        if (rc != 0 || !l->headed) continue;
        if (l->generation_count == 1) return 0;
        rc = see_turn(l, rows, &turn, err);
        if (rc == 0 && (best == 0 || turn > best_turn)) {
            best = l->generation;
            best_turn = turn;
        }
        if (rc == 0 && turn >= l->wanted) break;
    }
    if (rc == 0 && best && best != l->generation) rc = open_generation(l, best, rows, err);
    return rc;
}

/* What had to be there behind the last good block. */
static void judge_end(struct loading *l)
{
    bool known = l->headed && l->wanted != WEIR__PRODUCERS_TURN_UNKNOWN;

    if (!known) l->end = l->good + 1;
    if (l->end < l->head.blocks) l->end = l->head.blocks;
    if (known && l->turn < l->wanted && l->end == l->good + 1) l->end++; /* a block at least */
    if (l->bad_from == 0) l->bad_from = l->good + 1;
    if (l->end > l->bad_from) end_bad_range(l, l->end);
    if (l->headed || l->wanted == 0) return;
    l->fn(l->user, l->name, 0, BLOCK_BYTES);
    l->bad_blocks++;
}

static int read_all(struct loading *l, struct weir_error *err)
{
    struct weir__log *log = l->log;
    uint8_t *rows = aligned_alloc(BLOCK_BYTES, (size_t)WEIR__PRODUCER_ROWS * BLOCK_BYTES);
    int rc;

    if (!rows) return weir__fail(err, WEIR_ENOMEM, "reading producers: out of memory");
    l->wanted = weir__log_active(log)->h.producers;
    rc = log->fs->ops->list(log->fs, log->dir, note_name, l, err);
    if (rc == 0) rc = choose_generation(l, rows, err);
    if (rc == 0 && l->file) rc = take_blocks(l, rows, err);
    if (rc == 0 && l->file) judge_end(l);
    if (rc == 0 && !l->file && l->wanted > 0 && l->wanted != WEIR__PRODUCERS_TURN_UNKNOWN) {
        if (l->generation_count == 0) weir__producer_file_name(1, l->name);
        l->fn(l->user, l->name, 0, 0);
        l->bad_blocks++;
    }
    free(rows);
    return rc;
}

static void count_damage(void *user, const char *name, uint64_t at, uint64_t len)
{
    struct loading *l = user;

    (void)name;
    (void)at;
    (void)len;
    l->log->stats.damaged_ranges++;
}

static void tell_damage(const struct loading *l)
{
    if (l->bad_blocks == 0) return;
    weir__log_line(&l->log->o.logger, WEIR__WARN, "log",
                   "damage file=%s/%s: %s; up to %" PRIu64
                   " producers may be forgotten: a repeat of theirs could be stored twice",
                   l->log->dir, l->name, l->file ? "parts are unreadable" : "it is missing",
                   l->bad_blocks * WEIR__PRODUCER_RECORDS);
}

/* What was not chosen goes, and one that was never finished; not while the disk refuses to show some
 * of it, for that may be the better one. Removing is tried again at the next opening. */
static void keep_chosen(struct loading *l)
{
    struct weir__producer_file *pf = &l->log->producer_file;

    if (l->file && !l->headed && l->wanted == 0) {
        weir__file_close(l->file);
        l->file = NULL;
    }
    for (size_t i = 0; !l->unread && i < l->generation_count; i++)
        if (!l->file || l->generations[i] != l->generation)
            weir__producer_file_remove(l->log, l->generations[i], NULL);
    if (l->generation_count) pf->next_generation = l->generations[0];
    pf->turn =
        l->wanted != WEIR__PRODUCERS_TURN_UNKNOWN && l->wanted > l->turn ? l->wanted : l->turn;
    pf->file = l->file;
    if (!l->file) return;
    pf->generation = l->generation;
    pf->blocks = l->end;
    pf->covered = l->covered;
    pf->damaged = l->bad_blocks > 0 && !l->unread;
}

int weir__producer_file_load(struct weir__log *log, struct weir_error *err)
{
    struct loading l = {.log = log, .to = &log->producers, .fn = count_damage, .err = err};
    int rc;

    l.user = &l;
    l.now = weir__producer_minutes(weir__control_keep_ms(&log->control));
    weir__producers_init(&log->producers, log->o.producers_max, log->control.secret);
    weir__producers_init(&log->begun, WEIR__PRODUCERS_BEGUN_MAX, log->control.secret);
    rc = read_all(&l, err);
    if (rc == 0) {
        tell_damage(&l);
        keep_chosen(&l);
    } else {
        weir__file_close(l.file);
    }
    free(l.generations);
    return rc;
}

int weir__producer_file_check(struct weir__log *log, weir__producer_damage_fn fn, void *user,
                              struct weir_error *err)
{
    struct loading l = {.log = log, .fn = fn, .user = user, .err = err};
    int rc = read_all(&l, err);

    weir__file_close(l.file);
    free(l.generations);
    return rc;
}
