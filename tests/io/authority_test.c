/* The openssl command is asked for its opinion, since it is not ours. */
#define _GNU_SOURCE
#include "io/authority.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "certificate.h"
#include "io/tls.h"
#include "io/vault.h"

#define DAY_MS (24LL * 3600 * 1000)
#define RACERS 8
#define OUTPUT_BYTES 8192
#define PATH_BYTES 512

static const char *const names[] = {"ca.key", "ca.pem", "server.key", "server.pem"};

struct fixture {
    char top[64], dir[128]; /* dir does not exist at the beginning, nor the folder above it */
    int64_t now_ms;
    struct weir__authority a;
    struct weir_error err;
};

static void remove_all(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[PATH_BYTES];

    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        unlink(path);
    }
    if (d) closedir(d);
    rmdir(dir);
}

static int setup(void **state)
{
    struct weir__clock clock = weir__clock_system();
    struct fixture *f = calloc(1, sizeof *f);
    const char *tmp = getenv("TMPDIR");

    assert_non_null(f);
    snprintf(f->top, sizeof f->top, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->top));
    snprintf(f->dir, sizeof f->dir, "%s/deep/tls", f->top);
    f->now_ms = clock.wall_ms(clock.self);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char deep[PATH_BYTES];

    remove_all(f->dir);
    snprintf(deep, sizeof deep, "%s/deep", f->top);
    remove_all(deep);
    remove_all(f->top);
    free(f);
    return 0;
}

static void ensure(struct fixture *f, int64_t now_ms)
{
    if (weir__authority_ensure(&f->a, f->dir, now_ms, &f->err) != 0) fail_msg("%s", f->err.text);
}

static void path_of(const struct fixture *f, const char *name, char to[PATH_BYTES])
{
    snprintf(to, PATH_BYTES, "%s/%s", f->dir, name);
}

struct contents {
    uint8_t bytes[WEIR__VAULT_FILE_MAX];
    size_t len;
};

static void read_file(const struct fixture *f, const char *name, struct contents *c)
{
    char path[PATH_BYTES];
    FILE *file;

    path_of(f, name, path);
    file = fopen(path, "r");
    assert_non_null(file);
    c->len = fread(c->bytes, 1, sizeof c->bytes, file);
    fclose(file);
}

static void write_file(const struct fixture *f, const char *name, const void *at, size_t len)
{
    char path[PATH_BYTES];
    int fd;

    path_of(f, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, at, len), len);
    close(fd);
}

static void remove_file(const struct fixture *f, const char *name)
{
    char path[PATH_BYTES];

    path_of(f, name, path);
    unlink(path);
}

static bool same(const struct contents *a, const struct contents *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Runs a command; its exit status, and what it printed. */
__attribute__((format(printf, 2, 3))) static int run(char out[OUTPUT_BYTES], const char *fmt, ...)
{
    char command[2048];
    va_list args;
    size_t len;
    FILE *p;

    va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    p = popen(command, "r"); /* NOLINT(cert-env33-c): the paths are ours */
    assert_non_null(p);
    len = fread(out, 1, OUTPUT_BYTES - 1, p);
    out[len] = '\0';
    return WEXITSTATUS(pclose(p));
}

static unsigned mode_of(const struct fixture *f, const char *name)
{
    struct stat st;
    char path[PATH_BYTES];

    path_of(f, name, path);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void openssl_verifies_what_was_made(void **state)
{
    static const char *const who[] = {"hostname localhost", "ip 127.0.0.1", "ip ::1"};
    struct fixture *f = *state;
    char out[OUTPUT_BYTES];

    ensure(f, f->now_ms);
    for (size_t i = 0; i < sizeof who / sizeof who[0]; i++)
        if (run(out, "openssl verify -x509_strict -purpose sslserver -CAfile %s -verify_%s %s 2>&1",
                f->a.ca_file, who[i], f->a.certificate_file) != 0)
            fail_msg("%s: %s", who[i], out);
    assert_int_not_equal(run(out, "openssl verify -CAfile %s -verify_hostname example.com %s 2>&1",
                             f->a.ca_file, f->a.certificate_file),
                         0);
    assert_int_equal(run(out, "openssl x509 -noout -text -in %s", f->a.ca_file), 0);
    assert_non_null(strstr(out, "ASN1 OID: prime256v1"));
    assert_non_null(strstr(out, "X509v3 Basic Constraints: critical"));
    assert_non_null(strstr(out, "CA:TRUE, pathlen:0"));
    assert_non_null(strstr(out, "X509v3 Name Constraints: critical"));
    assert_non_null(strstr(out, "DNS:localhost"));
    assert_non_null(strstr(out, "IP:127.0.0.0/255.0.0.0"));
    assert_non_null(strstr(out, "Certificate Sign\n"));
    assert_int_equal(run(out, "openssl x509 -noout -fingerprint -sha256 -in %s", f->a.ca_file), 0);
    assert_non_null(strstr(out, f->a.fingerprint));
    assert_int_equal(strncmp(f->a.name, "Weir local authority ", 21), 0);
    assert_in_range(f->a.certificate_until_ms, f->now_ms + 395 * DAY_MS, f->now_ms + 397 * DAY_MS);
    assert_in_range(f->a.ca_until_ms, f->now_ms + 3649 * DAY_MS, f->now_ms + 3651 * DAY_MS);
}

static void keeps_its_keys_to_itself(void **state)
{
    struct fixture *f = *state;
    mode_t before = umask(0);
    struct weir__authority other;

    ensure(f, f->now_ms);
    umask(before);
    assert_int_equal(mode_of(f, "."), 0700);
    assert_int_equal(mode_of(f, "ca.key"), 0600);
    assert_int_equal(mode_of(f, "server.key"), 0600);
    assert_int_equal(chmod(f->a.key_file, 0640), 0);
    assert_int_equal(weir__authority_ensure(&other, f->dir, f->now_ms, &f->err), WEIR_EDENIED);
    assert_non_null(strstr(f->err.text, f->a.key_file));
    assert_non_null(strstr(f->err.text, "other users can read this key (mode 0640)"));
    assert_int_equal(weir__authority_look(&other, f->dir, f->now_ms, &f->err), WEIR_EDENIED);
    assert_int_equal(chmod(f->a.key_file, 0600), 0);
    assert_int_equal(chmod(f->dir, 0770), 0);
    assert_int_equal(weir__authority_ensure(&other, f->dir, f->now_ms, &f->err), WEIR_EDENIED);
    assert_non_null(strstr(f->err.text, "other users can write to the folder"));
    assert_int_equal(chmod(f->dir, 0700), 0);
    ensure(f, f->now_ms);
}

static void the_second_time_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct weir__authority seen;
    struct contents before[4], after;

    assert_int_equal(weir__authority_look(&seen, f->dir, f->now_ms, &f->err), WEIR_ENOTFOUND);
    assert_int_equal(access(f->dir, F_OK), -1);
    ensure(f, f->now_ms);
    for (int i = 0; i < 4; i++) read_file(f, names[i], &before[i]);
    ensure(f, f->now_ms);
    assert_int_equal(weir__authority_look(&seen, f->dir, f->now_ms, &f->err), 0);
    assert_memory_equal(&seen, &f->a, sizeof seen);
    for (int i = 0; i < 4; i++) {
        read_file(f, names[i], &after);
        assert_true(same(&before[i], &after));
    }
}

/* What this process has open, and a constant. */
static unsigned count_open(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(d);
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

/* Whatever it finds, it has nothing open afterwards, and keeps nobody from the folder. */
static void looking_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    struct weir__vault v;
    unsigned before;

    ensure(f, f->now_ms); /* whatever is opened once and stays open is open now */
    before = count_open();
    for (int kept = 4; kept >= 0; kept--) {
        int rc;

        if (kept < 4) remove_file(f, names[kept]);
        rc = weir__authority_look(&f->a, f->dir, f->now_ms, &f->err);
        assert_int_equal(rc, kept == 4 ? 0 : WEIR_ENOTFOUND);
        assert_int_equal(count_open(), before);
        assert_int_equal(weir__vault_make(&v, f->dir, 0, &f->err), 0);
        weir__vault_close(&v);
    }
    remove_all(f->dir);
    assert_int_equal(weir__authority_look(&f->a, f->dir, f->now_ms, &f->err), WEIR_ENOTFOUND);
    assert_int_equal(count_open(), before);
}

/* A certificate that the authority's key signed for somebody else; as PEM, with its key. */
static void imitate(const struct fixture *f, struct identity *who, const char *alt_names)
{
    struct identity ca = {.key = NULL};
    struct contents c;
    BIO *pem;

    read_file(f, "ca.key", &c);
    pem = BIO_new_mem_buf(c.bytes, (int)c.len);
    ca.key = PEM_read_bio_PrivateKey(pem, NULL, NULL, NULL);
    BIO_free(pem);
    read_file(f, "ca.pem", &c);
    pem = BIO_new_mem_buf(c.bytes, (int)c.len);
    ca.certificate = PEM_read_bio_X509(pem, NULL, NULL, NULL);
    BIO_free(pem);
    assert_non_null(ca.key);
    assert_non_null(ca.certificate);
    identity_make(who, "imitator", alt_names, &ca, 10);
    X509_free(ca.certificate);
    EVP_PKEY_free(ca.key);
}

static void step(struct weir__tls *t, enum weir__flow *flow, struct weir_error *err)
{
    if (*flow == WEIR__FLOW_WAIT) *flow = weir__tls_handshake(t, err);
}

/* Our client meets a server that shows this; 0, or why the client refused. */
static int meet(const struct fixture *f, struct weir__tls_options *server, const char *name,
                struct weir_error *why)
{
    struct weir__tls_options client = {.client = true, .authorities_file = f->a.ca_file};
    struct weir__tls_context *cs = NULL, *cc = NULL;
    struct weir__tls *s = NULL, *c = NULL;
    enum weir__flow fs = WEIR__FLOW_WAIT, fc = WEIR__FLOW_WAIT;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(weir__tls_context_new(&cs, server, NULL), 0);
    assert_int_equal(weir__tls_context_new(&cc, &client, NULL), 0);
    assert_int_equal(weir__tls_new(&s, cs, fd[0], NULL, NULL), 0);
    assert_int_equal(weir__tls_new(&c, cc, fd[1], name, NULL), 0);
    for (int i = 0; i < 20; i++) {
        step(c, &fc, why);
        step(s, &fs, NULL);
    }
    assert_int_not_equal(fc, WEIR__FLOW_WAIT);
    weir__tls_free(s);
    weir__tls_free(c);
    weir__tls_context_free(cs);
    weir__tls_context_free(cc);
    close(fd[0]);
    close(fd[1]);
    return fc == WEIR__FLOW_MOVED ? 0 : why->code;
}

static void our_client_accepts_the_right_names_only(void **state)
{
    struct fixture *f = *state;
    struct weir__tls_options o = {0};

    ensure(f, f->now_ms);
    o.certificate_file = f->a.certificate_file;
    o.key_file = f->a.key_file;
    assert_int_equal(meet(f, &o, "localhost", &f->err), 0);
    assert_int_equal(meet(f, &o, "127.0.0.1", &f->err), 0);
    assert_int_equal(meet(f, &o, "::1", &f->err), 0);
    assert_int_equal(meet(f, &o, "example.com", &f->err), WEIR_EDENIED);
    assert_non_null(strstr(f->err.text, "hostname mismatch"));
}

/* Whoever steals the key can still imitate nobody but this machine. */
static void the_constraint_holds_for_other_names(void **state)
{
    static const struct {
        const char *alt_names, *asked;
        bool good;
    } rows[] = {
        {"DNS:localhost", "localhost", true},
        {"IP:127.0.0.9", "127.0.0.9", true},
        {"DNS:example.com", "example.com", false},
        {"DNS:localhost,DNS:example.com", "example.com", false},
        {"DNS:localhost.example.com", "localhost.example.com", false},
        {"IP:10.0.0.1", "10.0.0.1", false},
        {"IP:fe80::1", "fe80::1", false},
    };
    struct fixture *f = *state;
    char out[OUTPUT_BYTES];

    ensure(f, f->now_ms);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct identity who;
        struct weir__tls_options o = {0};
        struct weir__bytes pem;
        int code;

        imitate(f, &who, rows[i].alt_names);
        pem = o.certificate = pem_bytes(who.certificate_pem);
        o.key = pem_bytes(who.key_pem);
        code = meet(f, &o, rows[i].asked, &f->err);
        assert_int_equal(code, rows[i].good ? 0 : WEIR_EDENIED);
        if (!rows[i].good) assert_non_null(strstr(f->err.text, "permitted subtree violation"));
        write_file(f, "imitator.pem", pem.at, pem.len);
        code = run(out, "openssl verify -CAfile %s %s/imitator.pem 2>&1", f->a.ca_file, f->dir);
        if ((code == 0) != rows[i].good) fail_msg("%s: %s", rows[i].alt_names, out);
        identity_free(&who);
    }
}

static void a_certificate_is_renewed_in_time(void **state)
{
    struct fixture *f = *state;
    struct contents key, ca, pem, now;
    char out[OUTPUT_BYTES];
    int64_t until_ms;

    ensure(f, f->now_ms - 400 * DAY_MS);
    until_ms = f->a.certificate_until_ms;
    assert_true(until_ms < f->now_ms);
    read_file(f, "server.key", &key);
    read_file(f, "server.pem", &pem);
    read_file(f, "ca.pem", &ca);
    assert_int_equal(weir__authority_look(&f->a, f->dir, f->now_ms, &f->err), 0);
    assert_int_equal(f->a.certificate_until_ms, until_ms);

    ensure(f, until_ms - 31 * DAY_MS);
    read_file(f, "server.pem", &now);
    assert_true(same(&now, &pem));
    ensure(f, until_ms - 29 * DAY_MS);
    read_file(f, "server.pem", &now);
    assert_false(same(&now, &pem));
    write_file(f, "server.pem", pem.bytes, pem.len);

    ensure(f, f->now_ms); /* it has run out */
    assert_true(f->a.certificate_until_ms > f->now_ms + 390 * DAY_MS);
    read_file(f, "server.pem", &now);
    assert_false(same(&now, &pem));
    read_file(f, "server.key", &now);
    assert_true(same(&now, &key));
    read_file(f, "ca.pem", &now);
    assert_true(same(&now, &ca));
    assert_int_equal(run(out, "openssl verify -CAfile %s -verify_hostname localhost %s 2>&1",
                         f->a.ca_file, f->a.certificate_file),
                     0);
}

/* A clock that was a year fast made it; ours is right. */
static void a_certificate_from_the_future_is_renewed(void **state)
{
    struct fixture *f = *state;

    ensure(f, f->now_ms);
    remove_file(f, "server.pem");
    ensure(f, f->now_ms + 365 * DAY_MS);
    assert_true(f->a.certificate_until_ms > f->now_ms + 700 * DAY_MS);
    ensure(f, f->now_ms);
    assert_true(f->a.certificate_until_ms < f->now_ms + 398 * DAY_MS);
}

static void nothing_outlives_the_authority(void **state)
{
    struct fixture *f = *state;

    ensure(f, f->now_ms);
    ensure(f, f->now_ms + 3600 * DAY_MS);
    assert_int_equal(f->a.certificate_until_ms, f->a.ca_until_ms);
    assert_int_equal(weir__authority_ensure(&f->a, f->dir, f->now_ms + 3651 * DAY_MS, &f->err),
                     WEIR_ECORRUPT);
    assert_non_null(strstr(f->err.text, "the authority has run out"));
}

static void damage_is_reported_and_left_alone(void **state)
{
    static const char *const damage[] = {"", "hello\n", "-----BEGIN CERTIFICATE-----\nAAAA\n"};
    struct fixture *f = *state;
    struct contents good[4], c;

    ensure(f, f->now_ms);
    for (int i = 0; i < 4; i++) read_file(f, names[i], &good[i]);
    for (int i = 0; i < 4; i++)
        for (int how = 0; how < 4; how++) {
            size_t len = how < 3 ? strlen(damage[how]) : good[i].len / 2;
            write_file(f, names[i], how < 3 ? (const void *)damage[how] : good[i].bytes, len);
            assert_int_equal(weir__authority_ensure(&f->a, f->dir, f->now_ms, &f->err),
                             WEIR_ECORRUPT);
            assert_non_null(strstr(f->err.text, names[i]));
            read_file(f, names[i], &c);
            assert_int_equal(c.len, len);
            write_file(f, names[i], good[i].bytes, good[i].len);
            for (int k = 0; k < 4; k++) {
                read_file(f, names[k], &c);
                assert_true(same(&c, &good[k]));
            }
        }
    ensure(f, f->now_ms);
}

static void what_does_not_belong_together_is_refused(void **state)
{
    struct fixture *f = *state;
    struct contents good[4], other[4];

    ensure(f, f->now_ms);
    for (int i = 0; i < 4; i++) read_file(f, names[i], &good[i]);
    remove_all(f->dir);
    ensure(f, f->now_ms);
    for (int i = 0; i < 4; i++) read_file(f, names[i], &other[i]);
    for (int i = 0; i < 4; i++) {
        write_file(f, names[i], good[i].bytes, good[i].len);
        assert_int_equal(weir__authority_ensure(&f->a, f->dir, f->now_ms, &f->err), WEIR_ECORRUPT);
        assert_non_null(
            strstr(f->err.text, i < 2
                                    ? ": ca.key is not the key of ca.pem: move both away"
                                    : ": server.key is not the key of server.pem: move both away"));
        write_file(f, names[i], other[i].bytes, other[i].len);
    }
    /* Both of another authority: a good pair, but not vouched for. */
    for (int i = 2; i < 4; i++) write_file(f, names[i], good[i].bytes, good[i].len);
    assert_int_equal(weir__authority_ensure(&f->a, f->dir, f->now_ms, &f->err), WEIR_ECORRUPT);
    assert_non_null(strstr(f->err.text, "server.pem: the authority does not vouch for it"));
    /* A server may go on without the authority's key, until it has to be renewed. */
    for (int i = 2; i < 4; i++) write_file(f, names[i], other[i].bytes, other[i].len);
    remove_file(f, "ca.key");
    ensure(f, f->now_ms);
    assert_int_equal(weir__authority_ensure(&f->a, f->dir, f->now_ms + 380 * DAY_MS, &f->err),
                     WEIR_ECORRUPT);
    assert_non_null(strstr(f->err.text, "ca.key is missing"));
}

/* An authority that may vouch for anybody is not one that we ask people to trust. */
static void a_stranger_is_not_our_authority(void **state)
{
    struct fixture *f = *state;
    struct identity stranger;
    struct weir__bytes pem;

    ensure(f, f->now_ms);
    for (int i = 0; i < 4; i++) remove_file(f, names[i]);
    identity_make(&stranger, "a stranger", NULL, NULL, 10);
    pem = pem_bytes(stranger.certificate_pem);
    write_file(f, "ca.pem", pem.at, pem.len);
    pem = pem_bytes(stranger.key_pem);
    write_file(f, "ca.key", pem.at, pem.len);
    assert_int_equal(weir__authority_ensure(&f->a, f->dir, f->now_ms, &f->err), WEIR_ECORRUPT);
    assert_non_null(strstr(f->err.text, "not held to localhost"));
    identity_free(&stranger);
}

/* After every file that the first time writes. */
static void a_crash_is_gone_on_from(void **state)
{
    struct fixture *f = *state;
    struct contents before[4], after;

    for (int kept = 0; kept < 4; kept++) {
        remove_all(f->dir);
        ensure(f, f->now_ms);
        for (int i = 0; i < kept; i++) read_file(f, names[i], &before[i]);
        for (int i = kept; i < 4; i++) remove_file(f, names[i]);
        write_file(f, "server.pem.new", "half", 4);
        write_file(f, "ca.key.new", "half", 4);
        assert_int_equal(weir__authority_look(&f->a, f->dir, f->now_ms, &f->err), WEIR_ENOTFOUND);
        ensure(f, f->now_ms);
        for (int i = 0; i < kept; i++) {
            read_file(f, names[i], &after);
            assert_true(same(&before[i], &after));
        }
    }
}

struct result {
    int rc;
    char fingerprint[96];
    char text[256];
};

/* A process of its own, which begins when the gate opens. */
static void race(const struct fixture *f, int gate, int out)
{
    struct weir__authority a = {.name = ""};
    struct weir_error err = {.code = 0};
    struct result r = {0};
    char byte;

    if (read(gate, &byte, 1) != 0) _exit(1);
    r.rc = weir__authority_ensure(&a, f->dir, f->now_ms, &err);
    memcpy(r.fingerprint, a.fingerprint, sizeof r.fingerprint);
    snprintf(r.text, sizeof r.text, "%.200s", err.text);
    _exit(write(out, &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
}

static void eight_processes_make_one_authority(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 5; round++) {
        int gate[2], out[2], status;

        remove_all(f->dir);
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        for (int i = 0; i < RACERS; i++)
            if (fork() == 0) {
                close(gate[1]);
                race(f, gate[0], out[1]);
            }
        close(gate[0]);
        close(gate[1]);
        close(out[1]);
        for (int i = 0; i < RACERS; i++) {
            struct result r;
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
            assert_int_equal(read(out[0], &r, sizeof r), sizeof r);
            if (r.rc != 0) fail_msg("%s", r.text);
            if (i == 0) ensure(f, f->now_ms);
            assert_string_equal(r.fingerprint, f->a.fingerprint);
        }
        close(out[0]);
    }
}

static void waits_for_another_process_only_so_long(void **state)
{
    struct fixture *f = *state;
    struct weir__vault one, two;

    assert_int_equal(weir__vault_make(&one, f->dir, 0, &f->err), 0);
    assert_int_equal(weir__vault_make(&two, f->dir, 30, &f->err), WEIR_ELOCKED);
    weir__vault_close(&two);
    weir__vault_close(&one);
    assert_int_equal(weir__vault_make(&two, f->dir, 0, &f->err), 0);
    weir__vault_close(&two);
}

static void says_what_is_wrong_with_the_folder(void **state)
{
    struct fixture *f = *state;
    struct weir__authority a;
    char path[PATH_BYTES];
    int fd;

    snprintf(path, sizeof path, "%s/file", f->top);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(weir__authority_ensure(&a, path, f->now_ms, &f->err), WEIR_EIO);
    assert_non_null(strstr(f->err.text, "file: open: Not a directory"));
    ensure(f, f->now_ms);
    remove_file(f, "ca.pem");
    path_of(f, "ca.pem", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(weir__authority_ensure(&a, f->dir, f->now_ms, &f->err), WEIR_ECORRUPT);
    assert_non_null(strstr(f->err.text, "ca.pem is not a file"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(openssl_verifies_what_was_made),
        TEST(keeps_its_keys_to_itself),
        TEST(the_second_time_changes_nothing),
        TEST(looking_leaves_nothing_behind),
        TEST(our_client_accepts_the_right_names_only),
        TEST(the_constraint_holds_for_other_names),
        TEST(a_certificate_is_renewed_in_time),
        TEST(a_certificate_from_the_future_is_renewed),
        TEST(nothing_outlives_the_authority),
        TEST(damage_is_reported_and_left_alone),
        TEST(what_does_not_belong_together_is_refused),
        TEST(a_stranger_is_not_our_authority),
        TEST(a_crash_is_gone_on_from),
        TEST(eight_processes_make_one_authority),
        TEST(waits_for_another_process_only_so_long),
        TEST(says_what_is_wrong_with_the_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
