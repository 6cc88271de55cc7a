/* group.h - the cgroups of this process, from the kernel's files.
 *
 * The root folder is an argument, so that tests read made-up files; "" is the
 * machine's.
 *
 * Threads: any. */
#ifndef PL_BASE_HOST_GROUP_H
#define PL_BASE_HOST_GROUP_H

#include <stdint.h>

#define PL_GROUP_BYTES 512

/* The number after `word` in a file of "word number" lines; with an empty word,
 * the number at the start of the file.  -1: no such file, line or number. */
int64_t pl_group_number(const char *path, const char *word);

/* The group of a controller ("cpu"; "" is version 2), as "/a/b"; "": none. */
void pl_group_name(const char *root, const char *controller,
                   char group[PL_GROUP_BYTES]);

/* Seconds since the group was made in which its processor quota was used up; 0:
 * no quota, or not known. */
double pl_group_throttled(const char *root);

#endif
