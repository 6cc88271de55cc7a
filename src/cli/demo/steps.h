/* steps.h - the processes of `demo`: commands of this program in the
 * foreground, a job that loses a worker, and the page in the background.
 *
 * Ctrl-C ends the running process, then the demo; all its processes end with
 * it.
 *
 * Threads: one. */
#ifndef PL_CLI_DEMO_STEPS_H
#define PL_CLI_DEMO_STEPS_H

#include "app/app.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define PL_DEMO_URL 256

typedef struct pl_demo {
    const pl_app *app;
    const char *folder;
    const atomic_bool *interrupt;
    int step;              /* number of printed titles */
    pid_t page;            /* 0: not started */
    char url[PL_DEMO_URL]; /* of the page */
} pl_demo;

typedef struct pl_demo_process {
    pid_t pid;
    bool ended;
    int wait_status;
} pl_demo_process;

void pl_demo_title(pl_demo *demo, const char *text);

/* Print the command and start it; `words` ends with NULL. */
pl_status pl_demo_start(pl_demo *demo, pl_demo_process *process,
                        const char *const *words) PL_MUST_CHECK;
/* Wait for its end; `stop` requests it first.  PL_INTERRUPTED after Ctrl-C,
 * PL_IO when the process failed. */
pl_status pl_demo_finish(pl_demo *demo, pl_demo_process *process,
                         bool stop) PL_MUST_CHECK;
/* Start a process and wait for its end. */
pl_status pl_demo_run(pl_demo *demo, const char *const *words) PL_MUST_CHECK;

/* Wait until the run has a checkpoint beyond step 0; *step stays 0 when the
 * job ended before. */
pl_status pl_demo_wait_checkpoint(pl_demo *demo, pl_demo_process *job,
                                  const char *run, int64_t *step) PL_MUST_CHECK;
/* Kill worker 1 of the job, and report it. */
pl_status pl_demo_kill_worker(pl_demo *demo, const pl_demo_process *job,
                              int64_t step) PL_MUST_CHECK;

/* Start the page on the folder and print its URL. */
pl_status pl_demo_page(pl_demo *demo) PL_MUST_CHECK;
/* Keep the page running until Ctrl-C. */
void pl_demo_linger(pl_demo *demo);
void pl_demo_close(pl_demo *demo);

#endif
