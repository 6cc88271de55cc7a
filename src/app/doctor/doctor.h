/* doctor.h - shared by the files of `doctor`.
 *
 *   cmd_doctor.c    flags, this host
 *   hosts.c         other hosts, and the links between them
 *   facts.c         the facts about a host, as JSON
 *   judge.c         verdicts on the facts, and advice
 *
 * Threads: one. */
#ifndef PL_APP_DOCTOR_DOCTOR_H
#define PL_APP_DOCTOR_DOCTOR_H

#include "app/launch/launch.h"
#include "base/json/fields.h"

typedef enum pl_severity {
    PL_SEVERITY_OK,
    PL_SEVERITY_WARN, /* a job works, but not as well as it could */
    PL_SEVERITY_BAD,  /* a job would fail */
} pl_severity;

/* A line of the table. */
typedef struct pl_doctor_line {
    char *host, *found;
    const char *check; /* static */
    pl_severity verdict;
    char *advice; /* what to do; NULL: none */
} pl_doctor_line;

/* A measured link between two hosts. */
typedef struct pl_way {
    char *from, *to;
    double round_trip_us, bytes_per_s;
} pl_way;

/* The findings in order, and the measurements. */
typedef struct pl_diagnosis {
    bool ok; /* no finding is bad */
    pl_doctor_line *lines;
    size_t line_count;
    pl_way *ways;
    size_t way_count;
} pl_diagnosis;
extern const pl_fields pl_diagnosis_fields;

extern const char *const pl_verdict_names[]; /* "ok", "warn", "bad", NULL */

/* Add a line; `advice` is what to do, NULL: none. */
pl_status pl_diagnosis_add(pl_diagnosis *d, const char *host, const char *check,
                           pl_severity verdict, const char *found,
                           const char *advice) PL_MUST_CHECK;

/* The facts about a host.  Texts are NULL and numbers -1 if not known. */
typedef struct pl_doctor_task {
    char *line; /* process number and command */
} pl_doctor_task;

typedef struct pl_facts {
    const char *host, *version, *kernels;
    int32_t cores;
    double load;                              /* over the last minute */
    int64_t memory_free, disk_free, shm_free; /* bytes */
    const char *memory_limit;                 /* what sets it */
    const char *huge_pages;                   /* "madvise" */
    int32_t files_most;                       /* the limit of open files */
    const char *keys, *keys_problem;          /* NULL: none */
    pl_doctor_task *tasks;
    size_t task_count;
} pl_facts;
extern const pl_fields pl_facts_fields;

/* Add the facts of this host to a JSON object. */
pl_status pl_doctor_facts(pl_json *out) PL_MUST_CHECK;

/* Add lines for a host's facts, as pl_doctor_facts wrote them there. */
pl_status pl_doctor_judge(pl_diagnosis *d, const char *host,
                          const pl_json *json) PL_MUST_CHECK;
/* For the offset of a host's clock, known to within `within_ms`. */
pl_status pl_doctor_judge_clock(pl_diagnosis *d, const char *host,
                                double offset_ms,
                                double within_ms) PL_MUST_CHECK;
/* Keep a measured link, and add its line. */
pl_status pl_doctor_judge_way(pl_diagnosis *d, const pl_way *way) PL_MUST_CHECK;

/* Check all hosts of the flags. */
pl_status pl_doctor_hosts(pl_diagnosis *d, const pl_launch_flags *flags,
                          int64_t measure_ms) PL_MUST_CHECK;

#endif
