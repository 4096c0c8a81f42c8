/* trust.c - weir trust: how clients come to trust the local authority, which vouches for localhost
 * and nothing else. Prints what there is to do; with --system it touches the system's store. */
#define _GNU_SOURCE
#include "cli/trust.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/when.h"

#define STORE_DIR "/usr/local/share/ca-certificates"
#define UPDATE "update-ca-certificates"
#define STORE_FILE_BYTES 128
#define CERTIFICATE_BYTES_MAX 16384

struct trust_options {
    struct weir__common common;
    const char *authority;
    bool system, remove;
};

static const struct weir__args_row trust_rows[] = {
    {"system", WEIR__ARGS_FLAG, offsetof(struct trust_options, system), NULL,
     "put it into the system's store; needs root"},
    {"remove", WEIR__ARGS_FLAG, offsetof(struct trust_options, remove), NULL,
     "take it out of there again"},
    {"authority", WEIR__ARGS_TEXT, offsetof(struct trust_options, authority), "DIR",
     "the authority's folder (default ~/.local/share/weir/authority)"},
    {0},
};

int weir__trust_folder(const char *given, char out[WEIR__AUTHORITY_PATH_MAX],
                       struct weir_error *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int len;

    if (given)
        len = snprintf(out, WEIR__AUTHORITY_PATH_MAX, "%s", given);
    else if (data && data[0] == '/')
        len = snprintf(out, WEIR__AUTHORITY_PATH_MAX, "%s/weir/authority", data);
    else if (home && home[0] == '/')
        len = snprintf(out, WEIR__AUTHORITY_PATH_MAX, "%s/.local/share/weir/authority", home);
    else
        return weir__fail(err, WEIR_EINVAL,
                          "there is no HOME for a local authority: --authority names a folder");
    if (len >= WEIR__AUTHORITY_PATH_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "the path of the local authority is too long");
    return 0;
}

/* ---- telling ---- */

/* Whose clients, and what they read; %s is the certificate's path. */
static const struct reader {
    const char *who, *what;
} readers[] = {
    {"JavaScript (Node)", "export NODE_EXTRA_CA_CERTS='%s'"},
    {".NET, Go, Rust, C on Linux", "export SSL_CERT_FILE='%s'   (instead of the system's list)"},
    {"Python", "EventHubProducerClient(..., connection_verify='%s')"},
    {"Python, requests", "export REQUESTS_CA_BUNDLE='%s'"},
    {"Java", "keytool -importcert -noprompt -alias weir -file '%s' -keystore weir.p12 "
             "-storepass changeit\n"
             "                              java -Djavax.net.ssl.trustStore=weir.p12 "
             "-Djavax.net.ssl.trustStorePassword=changeit ..."},
    {"everything, .NET too", "weir trust --system   (as root; --remove undoes it)"},
};

static void print_authority(const struct weir__authority *a)
{
    char until[WEIR__WHEN_BYTES];

    printf("%s\n\n", a->ca_file);
    printf("%s, until %.10s\nSHA-256 %s\n\n", a->name, weir__when_text(a->ca_until_ms, until),
           a->fingerprint);
    printf("It can vouch for localhost, 127.0.0.0/8 and ::1 only. Clients trust it by:\n\n");
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        const char *what = readers[i].what, *path = strstr(what, "%s");
        printf("  %-26s  %.*s%s%s\n", readers[i].who, path ? (int)(path - what) : (int)strlen(what),
               what, path ? a->ca_file : "", path ? path + 2 : "");
    }
}

/* ---- the system's store ---- */

/* The certificate's name there ends with the authority's own, so that people do not undo each
 * other's. */
static void write_store_file(const struct weir__authority *a, char out[STORE_FILE_BYTES])
{
    const char *id = strrchr(a->name, ' ');

    snprintf(out, STORE_FILE_BYTES, STORE_DIR "/weir-%s.crt", id ? id + 1 : a->name);
}

static int copy_certificate(const char *from, const char *to, struct weir_error *err)
{
    char bytes[CERTIFICATE_BYTES_MAX];
    FILE *in = fopen(from, "re"), *out = in ? fopen(to, "we") : NULL;
    size_t len = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    bool good = out && len > 0 && len < sizeof bytes && fwrite(bytes, 1, len, out) == len &&
                fchmod(fileno(out), 0644) == 0 && fflush(out) == 0;
    int why = errno;

    if (in) fclose(in);
    if (out) fclose(out);
    return good ? 0 : weir__fail(err, WEIR_EIO, "writing %s: %s", to, strerror(why));
}

/* Its report goes where ours goes. fresh: what is gone is looked for, too. */
static int run_update(bool fresh, struct weir_error *err)
{
    char name[] = UPDATE, option[] = "--fresh";
    char *const argv[] = {name, fresh ? option : NULL, NULL};
    int status = 0, rc;
    pid_t pid;

    fflush(stdout);
    rc = posix_spawnp(&pid, UPDATE, NULL, NULL, argv, environ);
    if (rc == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return weir__fail(err, WEIR_EIO, UPDATE ": %s", rc ? strerror(rc) : "it failed");
}

static int change_store(const struct weir__authority *a, bool remove_it, struct weir_error *err)
{
    char file[STORE_FILE_BYTES];
    int rc = 0;

    write_store_file(a, file);
    if (!remove_it)
        rc = copy_certificate(a->ca_file, file, err);
    else if (remove(file) != 0)
        rc = errno == ENOENT ? weir__fail(err, WEIR_EINVAL, "%s is not there", file)
                             : weir__fail(err, WEIR_EIO, "%s: %s", file, strerror(errno));
    if (rc == 0) rc = run_update(remove_it, err);
    if (rc == 0) printf("%s %s\n", remove_it ? "removed" : "installed", file);
    return rc;
}

/* What root has to do for somebody who is not. */
static int refuse(const struct weir__authority *a, bool remove_it)
{
    char file[STORE_FILE_BYTES];

    write_store_file(a, file);
    if (remove_it)
        fprintf(stderr,
                "weir: trust: the system's store is root's; run: sudo rm '%s' && sudo " UPDATE
                " --fresh\n",
                file);
    else
        fprintf(stderr,
                "weir: trust: the system's store is root's; run: sudo install -m 644 '%s' '%s' && "
                "sudo " UPDATE "\n",
                a->ca_file, file);
    return WEIR__EXIT_FAILURE;
}

static int run_trust(const struct weir__command *self, int argc, char **argv)
{
    struct weir__clock clock = weir__clock_system();
    struct trust_options o = {0};
    struct weir__authority a;
    struct weir_error err;
    char dir[WEIR__AUTHORITY_PATH_MAX];
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (!o.authority) o.authority = getenv("WEIR_AUTHORITY");
    if (!o.authority && getenv("SUDO_USER") && geteuid() == 0)
        return weir__exit_usage(self->name,
                                "under sudo this is root's authority, not yours: run it "
                                "without, or name yours by --authority");
    rc = weir__trust_folder(o.authority, dir, &err);
    if (rc == 0) rc = weir__authority_ensure(&a, dir, clock.wall_ms(clock.self), &err);
    if (rc != 0) return weir__exit_error(rc, &err, "trust");
    if (!o.system && !o.remove) {
        print_authority(&a);
        return weir__exit_printed(WEIR__EXIT_OK);
    }
    if (geteuid() != 0) return refuse(&a, o.remove);
    rc = change_store(&a, o.remove, &err);
    return rc == 0 ? weir__exit_printed(WEIR__EXIT_OK) : weir__exit_error(rc, &err, "trust");
}

const struct weir__command weir__command_trust = {
    .name = "trust",
    .words = "",
    .summary = "show how clients trust the certificates of weir serve",
    .more =
        "Makes the local authority when there is none. Its certificate is printed first, alone on\n"
        "its line.",
    .rows = trust_rows,
    .run = run_trust,
};
