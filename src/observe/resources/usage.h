/* usage.h - resources used by the host and a job's processes on it.
 *
 * Each sample gives rates since the previous one, and makes one line of the CSV
 * file that docs/formats/run.md describes.  Unknown numbers are NAN, and empty
 * in the file.
 *
 * Threads: one thread. */
#ifndef PL_OBSERVE_RESOURCES_USAGE_H
#define PL_OBSERVE_RESOURCES_USAGE_H

#include "observe/resources/proc.h"
#include "observe/resources/tasks.h"

typedef struct pl_usage pl_usage;

typedef struct pl_usage_opts {
    const char *root; /* default: PL_PROC */
    bool roles;       /* the lines have columns for each role */
} pl_usage_opts;

/* Takes the first sample, with which the next is compared. */
pl_status pl_usage_new(pl_usage **out, const pl_usage_opts *opts) PL_MUST_CHECK;
void pl_usage_free(pl_usage *usage); /* NULL is fine */

/* The job's part: its processes, and the total bytes of its own connections so
 * far. */
typedef struct pl_usage_job {
    const pid_t *pids;
    int count;
    double sent_bytes, received_bytes; /* NAN: not known */
    const pl_tasks_role *roles;        /* of each; NULL: without roles */
    double role_sent_bytes[PL_TASKS_ROLES];
    double role_received_bytes[PL_TASKS_ROLES];
} pl_usage_job;

typedef struct pl_net_rates {
    const char *name;
    double received_bytes, sent_bytes, received_packets, sent_packets;
} pl_net_rates;

/* The tasks of one role. */
typedef struct pl_usage_role {
    int tasks;
    double cpu; /* of one core */
    double rss_mb;
    double sent_bytes, received_bytes;
} pl_usage_role;

/* Shares in percent, rates per second. */
typedef struct pl_usage_view {
    double time; /* seconds since 1970 */
    double cpu;
    const double *cores; /* [core_count] */
    int core_count;
    double load;
    double memory_mb, memory_total_mb;
    double switches;
    double disk_read_bytes, disk_written_bytes;
    int job_tasks;
    double job_cpu; /* of one core */
    double job_rss_mb, job_peak_mb;
    double job_switches;
    double job_read_bytes, job_written_bytes;
    double job_sent_bytes, job_received_bytes;
    pl_usage_role roles[PL_TASKS_ROLES];
    const pl_net_rates *nets; /* interfaces present at the start */
    int net_count;
} pl_usage_view;

/* Take a sample `time` seconds after 1970; the view stays until the next. */
const pl_usage_view *pl_usage_sample(pl_usage *usage, double time,
                                     const pl_usage_job *job);

/* The header line of the file, and the line of the last sample, with line ends;
 * both are valid until the next call of either. */
const char *pl_usage_header(pl_usage *usage);
const char *pl_usage_line(pl_usage *usage);

#endif
