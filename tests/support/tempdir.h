/* tempdir.h - a folder of a test's own, in TMPDIR or /tmp. */
#ifndef WEIR_SUPPORT_TEMPDIR_H
#define WEIR_SUPPORT_TEMPDIR_H

#define TEMPDIR_BYTES 256

int tempdir_make(char path[TEMPDIR_BYTES]); /* 0, or -1 */
void tempdir_remove(const char *path);      /* with everything in it */

#endif
