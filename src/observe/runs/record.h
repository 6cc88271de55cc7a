/* record.h - the records of runs in their folders: run.json and summary.json.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_RUNS_RECORD_H
#define PL_OBSERVE_RUNS_RECORD_H

#include "base/param/param.h"
#include "base/record/run_record.h"
#include "base/record/summary.h"

typedef struct pl_experiment pl_experiment; /* experiment.h */

typedef struct pl_record {
    char *path;        /* the folder */
    const char *name;  /* of the run: the end of its path; unique in a list */
    pl_run_record run; /* run.json */
    bool ended;        /* has a summary */
    pl_summary summary;
    const pl_experiment *experiment; /* of its sweep; NULL: none */
    const pl_json *published;        /* {result: number}; NULL: none */
    const pl_param *own_flags;       /* of its model; see pl_records.flags */
    size_t own_flag_count;
} pl_record;

/* A flag of the run as text; "" if it was not set or is not known. */
const char *pl_record_arg(const pl_record *record, const char *name);
/* A number of the summary by its name there, or "seconds_per_step"; NAN if
 * missing. */
double pl_record_number(const pl_record *record, const char *key);
/* "epochs"; "" without a summary. */
const char *pl_record_stopped_by(const pl_record *record);

/* Add {path, why} to a list of unreadable files, from this thread's last error;
 * only PL_NOMEM is returned. */
pl_status pl_record_leave_out(pl_json *list, const char *path,
                              pl_status status) PL_MUST_CHECK;

typedef struct pl_records {
    pl_record *list;
    size_t count, room;
    pl_json *left_out; /* [{path, why}] */
    pl_experiment *experiments;
    /* The flags of the program that trained, as far as the caller knows and
     * sets them; unknown flags have no traits. */
    const pl_param_group *flags;
    size_t flag_groups;
} pl_records;

/* Read runs: each path is a run folder, a folder of run folders, or a folder of
 * sweeps (in the order of their names, numbers by value; runs without a sweep
 * last).  Unreadable runs are left out and listed; a path without a run is
 * PL_NOTFOUND. */
pl_status pl_records_init(pl_records *records, char *const *paths,
                          size_t count) PL_MUST_CHECK;
void pl_records_close(pl_records *records); /* a zeroed one is fine */

/* True if the value of the flag differs between runs. */
bool pl_records_differ(const pl_records *records, const char *arg);

/* The row of a flag; NULL: not known. */
const pl_param *pl_records_flag(const pl_records *records, const char *arg);
/* Does a flag have one of these traits (pl_param_trait)? */
bool pl_records_flag_is(const pl_records *records, const char *arg,
                        unsigned traits);
/* False if the flag had no effect in the run, judging by its other flags. */
bool pl_records_flag_applies(const pl_records *records, size_t index,
                             const char *arg);
/* True if the flag's value follows from that of pl_param.follows in all
 * runs. */
bool pl_records_flag_follows(const pl_records *records, const char *arg);

/* The first run that differs from run `index` only in flags of a repetition
 * (PL_PARAM_REPEATS): the same for all repetitions. */
size_t pl_records_first_like(const pl_records *records, size_t index);

#endif
