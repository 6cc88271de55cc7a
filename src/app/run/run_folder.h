/* run_folder.h - runs/<time>-<model>/ and what is written there.
 *
 *   run.json      settings, versions, machine: written at the start
 *   summary.json  the result: written at the end
 *   confusion.json  predictions by class in the last test: likewise
 *   checkpoints/  see state/checkpoint/checkpoint.h
 *   log/          of the tasks of a job
 *   control.sock  see job/stop/stop.h
 *   events/       for TensorBoard
 *   resources/    what hosts and job use
 *   trace/        with --profile
 *
 * Threads: one. */
#ifndef PL_APP_RUN_RUN_FOLDER_H
#define PL_APP_RUN_RUN_FOLDER_H

#include "app/train/interrupt.h"
#include "app/train/job.h"
#include "app/view/metrics_server.h"
#include "base/record/confusion.h"
#include "base/record/run_record.h"
#include "base/record/summary.h"
#include "job/cluster/cluster.h"

typedef struct pl_run_folder {
    char *path;
    char *checkpoints;
    uint64_t job;  /* number of the job, the same however often its tasks start:
                      from run.json, set by pl_run_folder_record */
    int lock;      /* held while the process lives; -1: none */
    pl_stop *stop; /* the socket by which it can be stopped; NULL: its starter
                      has one */
    pl_metrics_server *metrics; /* --metrics; NULL: not requested */
} pl_run_folder;

/* Choose, create and lock the folder, open the socket by which the training can
 * be stopped (app/train/interrupt.h), and serve --metrics.  PL_USAGE when --run
 * names a folder that holds a run and --resume was not given, or in which
 * another process trains.  A supervised task's folder is locked and checked by
 * its supervisor.  `interrupt`: the flag that the socket sets; NULL: the
 * process's flag. */
pl_status pl_run_folder_init(pl_run_folder *folder, const pl_options *options,
                             atomic_bool *interrupt) PL_MUST_CHECK;
void pl_run_folder_close(pl_run_folder *folder); /* a zeroed one is fine */

/* Choose where a task that did not create the run folder keeps its records
 * (events, resources, trace, log):
 *
 *   a supervisor gave --run     that folder; so did launch, where hosts do not
 *                               share one
 *   --run, otherwise the        that folder, when its run.json is of this job
 *   chief's folder               (and of this user): the folder is shared
 *   --run without a run.json    that folder, on this host only
 *   otherwise                   runs/<time>-<model>-<role>-<index>, made here
 *
 * A folder that is not shared is logged.  Another job's folder is never written
 * to. */
typedef struct pl_task_folder_opts {
    const pl_options *options; /* required */
    pl_task task;
    uint64_t job;      /* from the chief; 0: none */
    const char *chief; /* the chief's run folder, a path on its host; or NULL */
} pl_task_folder_opts;
pl_status pl_run_folder_of_task(char **out,
                                const pl_task_folder_opts *opts) PL_MUST_CHECK;

/* Does this folder hold the run.json of that job, written by this user? */
bool pl_run_folder_is(const char *path, uint64_t job);

/* The shape that the run's network was built for, from its run.json; the rank
 * is 0 for a run.json of an older paceline, which does not have it. */
pl_status pl_run_folder_examples(const pl_run_record *run, pl_shape *example,
                                 int32_t *classes) PL_MUST_CHECK;

/* Write run.json, with the job number of an existing one.  Results of an
 * earlier training are removed, as this run has not ended. */
pl_status pl_run_folder_record(pl_run_folder *folder,
                               const pl_job *job) PL_MUST_CHECK;

/* Quote a path as one word of a shell command; the caller frees *out. */
pl_status pl_run_folder_word(const char *path, char **out) PL_MUST_CHECK;

/* Replace <path>/<name> by the struct as JSON. */
pl_status pl_run_folder_write(const pl_run_folder *folder, const char *name,
                              const pl_fields *fields,
                              const void *of) PL_MUST_CHECK;

/* Write the results of the run; the summary last, as it marks the results as
 * complete.  `confusion`: of the last test, left out if that was not at the
 * summary's step; or NULL. */
pl_status pl_run_folder_end(const pl_run_folder *folder,
                            const pl_summary *summary,
                            const pl_confusion *confusion) PL_MUST_CHECK;

#endif
