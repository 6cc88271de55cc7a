/* Reads the counters of this process: processor time by getrusage, memory and
 * disk from /proc/self. Disk accesses are unknown where the kernel does not
 * count or show them. */
#include "base/host/counters.h"

#include "base/clock.h"
#include "base/host/ram.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_BYTES 1024

/* The start of this process, in seconds since boot; NAN: not known.  It is the
 * 22nd field of a line whose second, a name in parentheses, may contain
 * anything. */
static double began_s(void)
{
    char line[LINE_BYTES] = "";
    uint64_t ticks = 0;
    FILE *file = fopen("/proc/self/stat", "r");
    if (file == NULL)
        return NAN;
    const char *read = fgets(line, sizeof line, file);
    fclose(file);
    const char *rest = read != NULL ? strrchr(line, ')') : NULL;
    long per_s = sysconf(_SC_CLK_TCK);
    if (rest == NULL || per_s <= 0 ||
        sscanf(rest + 1,
               "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %*s %*s %*s %" SCNu64,
               &ticks) != 1)
        return NAN;
    return (double)ticks / (double)per_s;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* The second number of schedstat, in nanoseconds; NAN: the kernel keeps none.
 */
static double read_queued(void)
{
    uint64_t queued_ns = 0;
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (file == NULL)
        return NAN;
    int found = fscanf(file, "%*u %" SCNu64, &queued_ns);
    fclose(file);
    return found == 1 ? (double)queued_ns * 1e-9 : (double)NAN;
}

static void read_disk(pl_counters *counters)
{
    char line[LINE_BYTES];
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        int64_t bytes;
        if (sscanf(line, "read_bytes: %" SCNd64, &bytes) == 1)
            counters->read_bytes = bytes;
        else if (sscanf(line, "write_bytes: %" SCNd64, &bytes) == 1)
            counters->written_bytes = bytes;
    }
    fclose(file);
}

pl_counters pl_counters_read(void)
{
    pl_counters counters = { NAN, NAN, NAN, NAN, -1, -1, -1 };
    struct rusage used;
    int64_t peak = pl_ram_peak();
    counters.alive_s = (double)pl_clock_boot_ns() * 1e-9 - began_s();
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        counters.user_s = seconds_of(used.ru_utime);
        counters.system_s = seconds_of(used.ru_stime);
    }
    if (peak > 0)
        counters.peak_bytes = peak;
    counters.queued_s = read_queued();
    read_disk(&counters);
    return counters;
}
