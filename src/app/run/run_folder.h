/* run_folder.h - runs/<time>-<model>/ and what is written there.
 *
 *   run.json      settings, versions, machine: written at the start
 *   summary.json  the result: written at the end
 *   confusion.json  how a classifier answered its last test: likewise
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
    uint64_t job; /* whose run it is, however often its tasks are started: of
                     run.json, set by pl_run_folder_record */
    int lock; /* -1: none; held while the process lives: one training a folder
               */
    pl_stop *stop; /* by which it can be asked to end; NULL: its starter's */
    pl_metrics_server *metrics; /* --metrics; NULL: not asked for */
} pl_run_folder;

/* Choose, make and lock the folder, and let the training be stopped by its
 * socket (app/train/interrupt.h) and be watched at --metrics.  PL_USAGE when
 * --run names one that holds a run and --resume was not given, or in which
 * another process trains.  A supervised task's folder is locked and looked at
 * by its supervisor. */
pl_status pl_run_folder_init(pl_run_folder *folder,
                             const pl_options *options) PL_MUST_CHECK;
void pl_run_folder_close(pl_run_folder *folder); /* a zeroed one is fine */

/* Where a task keeps its records (events, resources, trace, log) that did not
 * make the run folder itself: the one place that decides.
 *
 *   a supervisor gave --run     that folder; so did launch, where hosts do not
 *                               share one
 *   --run, or else the folder   that folder, when its run.json is of this job
 *   that the chief told          (and of this user): the folder is shared
 *   --run without a run.json    that folder, on this host only
 *   else                        runs/<time>-<model>-<role>-<index>, made here
 *
 * What is not shared is told in the log.  Another job's folder is never
 * written to. */
typedef struct pl_task_folder_opts {
    const pl_options *options; /* required */
    pl_task task;
    uint64_t job;      /* that the chief told; 0: none */
    const char *chief; /* the chief's run folder, a path of its host; or NULL */
} pl_task_folder_opts;
pl_status pl_run_folder_of_task(char **out,
                                const pl_task_folder_opts *opts) PL_MUST_CHECK;

/* Does this folder hold the run.json of that job, written by this user? */
bool pl_run_folder_is(const char *path, uint64_t job);

/* What the run's network was built for, from its run.json; the rank is 0 when
 * an older paceline wrote it, which did not say. */
pl_status pl_run_folder_examples(const pl_run_record *run, pl_shape *example,
                                 int32_t *classes) PL_MUST_CHECK;

/* Write run.json, with the job's number of the one that is there.  The summary
 * of what came before goes: this run has not ended. */
pl_status pl_run_folder_record(pl_run_folder *folder,
                               const pl_job *job) PL_MUST_CHECK;

/* A path as one word of a shell command; the caller frees *out. */
pl_status pl_run_folder_word(const char *path, char **out) PL_MUST_CHECK;

/* Replace <path>/<name> by the struct as JSON. */
pl_status pl_run_folder_write(const pl_run_folder *folder, const char *name,
                              const pl_fields *fields,
                              const void *of) PL_MUST_CHECK;

/* Write what was found in the end; the summary last, since it says that there
 * is no more to come.  `confusion`: of the last test, left out where that was
 * not of the summary's step; or NULL. */
pl_status pl_run_folder_end(const pl_run_folder *folder,
                            const pl_summary *summary,
                            const pl_confusion *confusion) PL_MUST_CHECK;

#endif
