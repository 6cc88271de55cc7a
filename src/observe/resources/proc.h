/* proc.h - the kernel's counters of the host and of a process.
 *
 * Reads Linux's /proc; counters increase from the start of the host or the
 * process, so a rate needs two samples.  Values that are missing or not
 * permitted stay 0, without an error.
 *
 * Threads: any, each with its own pl_host_stats. */
#ifndef PL_OBSERVE_RESOURCES_PROC_H
#define PL_OBSERVE_RESOURCES_PROC_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PL_PROC "/proc" /* default root for all calls; tests use another */

#define PL_HOST_NETS 16 /* maximum interfaces that are read */

typedef struct pl_core {
    uint64_t busy, all; /* ticks of the kernel */
} pl_core;

typedef struct pl_interface {
    char name[16];
    uint64_t received_bytes, sent_bytes, received_packets, sent_packets;
} pl_interface;

typedef struct pl_host_stats {
    int core_count;
    pl_core *cores; /* [core_count] */
    pl_core all;
    double load; /* average of one minute */
    int64_t memory_kb, memory_total_kb;
    uint64_t switches; /* of context */
    uint64_t disk_read_bytes, disk_written_bytes;
    int net_count;
    pl_interface nets[PL_HOST_NETS];
    char *text; /* read buffer */
} pl_host_stats;

/* Room for all cores, all zero. */
pl_status pl_host_stats_init(pl_host_stats *host,
                             const char *root) PL_MUST_CHECK;
void pl_host_stats_close(pl_host_stats *host); /* a zeroed one is fine */
void pl_host_stats_read(pl_host_stats *host, const char *root);

typedef struct pl_process {
    pid_t pid, parent;
    uint64_t ticks; /* of the kernel: user and system time, all threads */
    uint64_t began; /* ticks after boot; 0: not known */
    int64_t rss_kb, peak_kb;
    uint64_t switches; /* of context, all live threads */
    uint64_t read_bytes, written_bytes;
} pl_process;

/* False if there is no such process. */
bool pl_process_read(pl_process *process, const char *root, pid_t pid);

/* The process `pid` and all its descendants; returns their number, at most
 * `room`. */
int pl_process_tree(const char *root, pid_t pid, pid_t *out, int room);

/* Kernel ticks per second. */
double pl_proc_ticks_per_s(void);

#endif
