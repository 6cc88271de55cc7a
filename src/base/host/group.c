/* group.c - finds the cgroups of this process, of version 1 and 2, and reads
 * numbers from their files. */
#include "base/host/group.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

int64_t pl_group_number(const char *path, const char *word)
{
    char line[PL_GROUP_BYTES];
    long long number = -1;
    size_t length = strlen(word);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (number < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, length) != 0 ||
            sscanf(line + length, " %lld", &number) != 1)
            number = -1;
    fclose(file);
    return number;
}

/* Is `controller` in a list like "cpu,cpuacct", which ends at a colon? */
static int is_listed(const char *list, const char *controller)
{
    size_t length = strlen(controller);
    for (;;) {
        size_t word = strcspn(list, ",:");
        if (word == length && strncmp(list, controller, length) == 0)
            return 1;
        if (list[word] != ',')
            return 0;
        list += word + 1;
    }
}

void pl_group_name(const char *root, const char *controller,
                   char group[PL_GROUP_BYTES])
{
    char path[PATH_MAX], line[PL_GROUP_BYTES];
    group[0] = '\0';
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *list = strchr(line, ':');
        const char *name = list != NULL ? strchr(list + 1, ':') : NULL;
        if (name != NULL && is_listed(list + 1, controller))
            snprintf(group, PL_GROUP_BYTES, "%.*s",
                     (int)strcspn(name + 1, "\n"), name + 1);
    }
    fclose(file);
}

double pl_group_throttled(const char *root)
{
    char path[PATH_MAX], group[PL_GROUP_BYTES];
    pl_group_name(root, "cpu", group);
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/cpu%s/cpu.stat", root, group);
    int64_t ns = pl_group_number(path, "throttled_time");
    if (ns >= 0)
        return 1e-9 * (double)ns;
    pl_group_name(root, "", group);
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/cpu.stat", root, group);
    int64_t us = pl_group_number(path, "throttled_usec");
    return us >= 0 ? 1e-6 * (double)us : 0;
}
