/* folder.c - looks at a folder before hubs are made in it: whose it is, and what lies there. */
#include "cli/folder.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define DOUBT_BYTES 512

/* Ours, or what a file system or a person's tools leave in every folder. */
static bool is_harmless(const char *name)
{
    static const char *const ours[] = {"lock", "id", "owner", "serving", "lost+found"};
    static const char *const begins[] = {".", "catalog.", "hub-", "processor.db"};

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcmp(name, ours[i]) == 0) return true;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

static bool is_catalog(const char *name)
{
    return strncmp(name, "catalog.", 8) == 0;
}

int weir__folder_check(const char *dir, struct weir_error *err)
{
    DIR *d = opendir(dir);
    char strange[256] = "";
    bool known = false;
    struct dirent *entry;

    if (!d) return 0; /* who opens it next says why it cannot be */
    while (!known && (entry = readdir(d))) {
        known = is_catalog(entry->d_name);
        if (!*strange && !is_harmless(entry->d_name))
            snprintf(strange, sizeof strange, "%s", entry->d_name);
    }
    closedir(d);
    if (known || !*strange) return 0;
    return weir__fail(err, WEIR_EINVAL,
                      "%.200s has no hubs, but files of others, like %.100s: name an empty folder, "
                      "or one that is not there yet",
                      dir, strange);
}

const char *weir__folder_doubt(const char *dir)
{
    static _Thread_local char text[DOUBT_BYTES];
    struct stat s;

    if (stat(dir, &s) != 0) return NULL;
    if (s.st_mode & S_IWOTH)
        snprintf(text, sizeof text,
                 "anybody on this machine may change or remove what is stored in %.200s: "
                 "'chmod o-w' on it ends that",
                 dir);
    else if (s.st_uid != geteuid() && s.st_uid != 0)
        snprintf(text, sizeof text,
                 "%.200s belongs to another user (%lu), who may change or remove what is stored",
                 dir, (unsigned long)s.st_uid);
    else
        return NULL;
    return text;
}
