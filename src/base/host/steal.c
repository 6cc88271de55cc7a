/* steal.c - reads the first line of /proc/stat.  Idle time does not count as
 * wanted: stolen time is compared with busy time. */
#include "base/host/steal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

pl_steal pl_steal_read(const char *root)
{
    char path[PATH_MAX];
    uint64_t user, nice, kernel, idle, disk, irq, softirq, stolen;
    pl_steal found = { 0 };
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return found;
    if (fscanf(file,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &user, &nice, &kernel, &idle, &disk, &irq, &softirq,
               &stolen) == 8)
        found = (pl_steal) {
            .stolen = stolen,
            .wanted = user + nice + kernel + irq + softirq + stolen,
        };
    fclose(file);
    return found;
}

double pl_steal_share(const pl_steal *before, const pl_steal *after)
{
    if (after->wanted <= before->wanted || after->stolen < before->stolen)
        return 0;
    return (double)(after->stolen - before->stolen) /
           (double)(after->wanted - before->wanted);
}
