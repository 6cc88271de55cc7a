/* group.h - what the kernel's files tell of the cgroups of this process.
 *
 * The root folder is an argument, so that tests read made-up files; "" is the
 * machine's.
 *
 * Threads: any. */
#ifndef PL_BASE_HOST_GROUP_H
#define PL_BASE_HOST_GROUP_H

#include <stdint.h>

#define PL_GROUP_BYTES 512

/* The number behind `word` in a file of "word number" lines; with an empty
 * word, the number it begins with.  -1: no such file, line or number. */
int64_t pl_group_number(const char *path, const char *word);

/* The group of a controller ("cpu"; "" is version 2), as "/a/b"; "": none. */
void pl_group_name(const char *root, const char *controller,
                   char group[PL_GROUP_BYTES]);

/* Seconds, since the group was made, in which its quota of processor time was
 * used up; 0: it has none, or nothing is known. */
double pl_group_throttled(const char *root);

#endif
