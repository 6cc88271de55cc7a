/* doctor.h - what the files of `doctor` share.
 *
 *   cmd_doctor.c      flags, this host
 *   doctor_hosts.c    other hosts, and the ways between them
 *   doctor_facts.c    what a host is like, as JSON
 *   doctor_judge.c    what is good and what is not, and what to do
 *
 * Threads: one. */
#ifndef PL_CLI_DOCTOR_H
#define PL_CLI_DOCTOR_H

#include "base/json.h"
#include "cli/launch.h"

typedef enum pl_verdict {
    PL_VERDICT_OK,
    PL_VERDICT_WARN, /* it works, but not as well as it could */
    PL_VERDICT_BAD,  /* a job would fail */
} pl_verdict;

/* The lines of the table, in order; and what was measured. */
typedef struct pl_diagnosis {
    pl_json *lines; /* an array; {host, check, found, verdict, advice} */
    pl_json *ways;  /* an array; {from, to, round_trip_us, bytes_per_s} */
    pl_verdict worst;
} pl_diagnosis;

/* A line; `advice` is what to do, NULL where it is well. */
pl_status pl_diagnosis_add(pl_diagnosis *d, const char *host, const char *check,
                           pl_verdict verdict, const char *found,
                           const char *advice) PL_MUST_CHECK;

/* What this host is like. */
pl_status pl_doctor_facts(pl_json *out) PL_MUST_CHECK;

/* Lines of a host's facts. */
pl_status pl_doctor_judge(pl_diagnosis *d, const char *host,
                          const pl_json *facts) PL_MUST_CHECK;
/* Of the offset of its clock, known to within `within_ms`. */
pl_status pl_doctor_judge_clock(pl_diagnosis *d, const char *host,
                                double offset_ms,
                                double within_ms) PL_MUST_CHECK;
/* Of the way from one to another. */
pl_status pl_doctor_judge_way(pl_diagnosis *d, const char *from, const char *to,
                              double round_trip_us,
                              double bytes_per_s) PL_MUST_CHECK;

/* Look at all hosts of the flags. */
pl_status pl_doctor_hosts(pl_diagnosis *d, const pl_launch_flags *flags,
                          int64_t measure_ms) PL_MUST_CHECK;

#endif
