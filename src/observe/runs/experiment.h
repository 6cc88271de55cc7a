/* experiment.h - what a sweep records about its runs: the experiment it
 * repeats, and the published results of each of its cells.
 *
 * It is read from the sweep.json beside the run folders
 * (docs/formats/sweep.md).
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_RUNS_EXPERIMENT_H
#define PL_OBSERVE_RUNS_EXPERIMENT_H

#include "observe/runs/record.h"

/* "about" in sweep.json. */
typedef struct pl_experiment_about {
    const char *experiment; /* "A1"; NULL: none */
    const char *question;
    const pl_json *machine_bound; /* results that depend on the machine */
    const pl_json *notes;         /* how the runs differ from the experiment */
    bool other;                   /* too different to compare results */
} pl_experiment_about;
extern const pl_fields pl_experiment_about_fields;

struct pl_experiment {
    pl_experiment *next; /* of the records */
    char *folder;        /* of the sweep */
    pl_experiment_about about;
    pl_json *own_json; /* sweep.json; NULL: missing or unreadable */
};

/* Find the sweeps of the records, and set each record's experiment and
 * published results. */
pl_status pl_experiments_read(pl_records *records) PL_MUST_CHECK;
void pl_experiments_close(pl_records *records);

/* The runs of one sweep, or consecutive runs without a sweep, from run `first`
 * on: a part of `records`, which must not be closed.  Returns the index of the
 * next run. */
size_t pl_experiment_part(const pl_records *records, size_t first,
                          pl_records *part);

/* The folder name of the run's sweep; "": none. */
const char *pl_experiment_name(const pl_record *record);
/* "A1: What does ... ?", or the name. */
void pl_experiment_title(const pl_record *record, char *text, size_t room);

/* A published result of a run; NAN: none. */
double pl_experiment_published(const pl_record *record, const char *result);
/* Does the published result depend on the machine, in any of the sweeps? */
bool pl_experiment_machine_bound(const pl_records *records, const char *result);
/* Can the published results be compared with those of the run? */
bool pl_experiment_comparable(const pl_record *record);

#endif
