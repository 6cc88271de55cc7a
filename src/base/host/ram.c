/* Available memory: the least that the machine, each cgroup of this process and
 * ulimit -v leave. The root folder is an argument, so that tests read a made-up
 * /proc. */
#include "base/host/ram.h"

#include "base/host/group.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void at_most(pl_ram *ram, int64_t bytes, const char *limit)
{
    if (bytes < 0)
        bytes = 0;
    if (bytes >= ram->bytes)
        return;
    ram->bytes = bytes;
    ram->limit = limit;
}

static void ask_machine(pl_ram *ram, const char *root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    int64_t kib = pl_group_number(path, "MemAvailable:");
    if (kib >= 0)
        at_most(ram, kib * 1024, "the machine");
}

/* One group: its limit less its use, where cached files do not count. */
static void ask_group(pl_ram *ram, const char *folder)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/memory.max", folder);
    int64_t most = pl_group_number(path, ""); /* "max" is not a number */
    snprintf(path, sizeof path, "%s/memory.current", folder);
    int64_t used = pl_group_number(path, "");
    if (most < 0 || used < 0)
        return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    int64_t active = pl_group_number(path, "active_file");
    int64_t inactive = pl_group_number(path, "inactive_file");
    used -= (active > 0 ? active : 0) + (inactive > 0 ? inactive : 0);
    at_most(ram, most - (used > 0 ? used : 0), "the cgroup");
}

/* The group that the line "0::/a/b" names, then its ancestors. */
static void ask_groups(pl_ram *ram, const char *root)
{
    char path[PATH_MAX], group[PL_GROUP_BYTES];
    pl_group_name(root, "", group);
    for (char *end = group + strlen(group); end != NULL;
         end = strrchr(group, '/')) {
        *end = '\0';
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s", root, group);
        ask_group(ram, path);
    }
}

static void ask_address_space(pl_ram *ram, const char *root, int64_t most)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/statm", root);
    int64_t pages = pl_group_number(path, "");
    if (most < 0 || pages < 0)
        return;
    int64_t before = ram->bytes;
    at_most(ram, most - pages * sysconf(_SC_PAGESIZE), "ulimit -v");
    ram->address_space = ram->bytes < before;
}

pl_ram pl_ram_read(const char *root, int64_t most)
{
    pl_ram ram = { .bytes = INT64_MAX, .limit = "nothing known" };
    ask_machine(&ram, root);
    ask_groups(&ram, root);
    ask_address_space(&ram, root, most);
    return ram;
}

pl_ram pl_ram_available(void)
{
    struct rlimit limit;
    int64_t most = -1;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur <= INT64_MAX)
        most = (int64_t)limit.rlim_cur;
    return pl_ram_read("", most);
}

int64_t pl_ram_peak(void)
{
    int64_t kib = pl_group_number("/proc/self/status", "VmHWM:");
    return kib > 0 ? kib * 1024 : 0;
}
