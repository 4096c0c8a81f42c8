/* holder.c - /proc/net/tcp names the socket that listens on a port by its inode; the descriptors of
 * a process are links to "socket:[inode]". Elsewhere than on Linux nothing is found. */
#include "io/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTENING 0x0a

/* The inode of a listening socket on that port, 0: none in this table. Its lines are
 * "  sl: local:port remote:port state queues timer retransmits uid timeout inode ...". */
static unsigned long inode_in(const char *table, unsigned port)
{
    unsigned long inode = 0;
    char line[512];
    FILE *f = fopen(table, "re");

    while (f && !inode && fgets(line, sizeof line, f)) {
        unsigned local, state;
        unsigned long found;
        /* NOLINTNEXTLINE(cert-err34-c): a line of the kernel's own */
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u %lu",
                   &local, &state, &found) == 3 &&
            local == port && state == LISTENING)
            inode = found;
    }
    if (f) fclose(f);
    return inode;
}

static bool has_socket(const char *pid, const char *wanted)
{
    char path[300], link[64];
    bool found = false;
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    d = opendir(path);
    while (d && !found && (e = readdir(d))) {
        ssize_t n;
        snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, e->d_name);
        n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        found = strcmp(link, wanted) == 0;
    }
    if (d) closedir(d);
    return found;
}

static void write_name(const char *pid, char *to, size_t room)
{
    char path[64], name[64] = "a process";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    f = fopen(path, "re");
    if (f && fgets(name, sizeof name, f)) name[strcspn(name, "\n")] = '\0';
    if (f) fclose(f);
    for (char *c = name; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    snprintf(to, room, "%s (pid %.20s)", name, pid);
}

bool weir__holder_of_port(unsigned port, char *to, size_t room)
{
    unsigned long inode = inode_in("/proc/net/tcp", port);
    bool found = false;
    char wanted[64];
    struct dirent *e;
    DIR *d;

    if (!inode) inode = inode_in("/proc/net/tcp6", port);
    if (!inode) return false;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    d = opendir("/proc");
    while (d && !found && (e = readdir(d))) {
        if (!isdigit((unsigned char)e->d_name[0]) || !has_socket(e->d_name, wanted)) continue;
        write_name(e->d_name, to, room);
        found = true;
    }
    if (d) closedir(d);
    return found;
}
