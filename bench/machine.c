#include "bench.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DISTURBED 0.1 /* processors kept busy by others */

static void cpu_model(char *text, size_t room)
{
    char line[512];
    snprintf(text, room, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        snprintf(text, room, "%s", colon + 2);
        text[strcspn(text, "\n\"\\")] = '\0';
        break;
    }
    fclose(file);
}

/* Busy seconds of all processors, including those stolen by the host. */
static double busy_seconds(void)
{
    long long v[8] = { 0 };
    FILE *file = fopen("/proc/stat", "r");
    if (file == NULL)
        return 0;
    int got = fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &v[0],
                     &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
    fclose(file);
    double ticks = (double)(v[0] + v[1] + v[2] + v[5] + v[6] + v[7]);
    return got == 8 ? ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Processor time of this process and of the programs it ran. */
static double own_seconds(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds_of(self.ru_utime) + seconds_of(self.ru_stime) +
           seconds_of(children.ru_utime) + seconds_of(children.ru_stime);
}

load_mark bench_load_mark(void)
{
    return (load_mark) {
        .busy_s = busy_seconds(),
        .own_s = own_seconds(),
        .wall_s = (double)pl_clock_now_ns(pl_clock_real()) * 1e-9,
    };
}

/* Processors kept busy by others since a mark. */
static double foreign_cpus(const load_mark *since)
{
    load_mark now = bench_load_mark();
    double foreign = now.busy_s - since->busy_s - (now.own_s - since->own_s);
    return foreign > 0 ? foreign / (now.wall_s - since->wall_s) : 0;
}

static double foreign_now(void)
{
    const struct timespec half = { .tv_nsec = 500000000 };
    load_mark mark = bench_load_mark();
    nanosleep(&half, NULL);
    return foreign_cpus(&mark);
}

void bench_print_load(const bench *b, const load_mark *since)
{
    double foreign = foreign_cpus(since);
    if (b->table.json)
        printf("{\"part\":\"load\",\"foreign_cpus\":%.2f}\n", foreign);
    else if (foreign > DISTURBED)
        printf("**Others kept %.1f processors busy meanwhile: these figures "
               "mean nothing.**\n",
               foreign);
    else
        printf("Others kept %.2f processors busy meanwhile.\n", foreign);
}

void bench_print_machine(const bench *b)
{
    char cpu[256], date[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    cpu_model(cpu, sizeof cpu);
    double foreign = foreign_now();
    if (b->table.json) {
        printf("{\"part\":\"machine\",\"cpu\":\"%s\",\"threads\":%d,"
               "\"kernels\":\"%s\",\"date\":\"%s\",\"version\":\"%s\","
               "\"commit\":\"%s\",\"foreign_cpus\":%.2f}\n",
               cpu, b->threads, pl_kernels_best()->name, date, pl_version(),
               b->commit, foreign);
        return;
    }
    printf("# paceline-bench\n\n%s, %d threads, %s; paceline %s, commit %s; "
           "%s.\nMedian of %d windows of %.2g s (operators: a tenth), "
           "fastest and slowest in\nbrackets.\n\n",
           cpu, b->threads, pl_kernels_best()->name, pl_version(), b->commit,
           date, MEASURE_WINDOWS, b->window_s);
    if (foreign > DISTURBED)
        printf("**Others kept %.1f processors busy before the start: these "
               "figures mean nothing.**\n\n",
               foreign);
}
