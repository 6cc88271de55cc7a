/* many_priv.h - what the files of the launcher share. */
#ifndef PL_DIST_LAUNCH_MANY_PRIV_H
#define PL_DIST_LAUNCH_MANY_PRIV_H

#include "base/clock.h"
#include "base/error.h"
#include "dist/launch/many.h"

#include <stdio.h>

typedef enum pl_many_phase {
    PL_MANY_RUNS,
    PL_MANY_OVER,  /* the chief ended well: the others shall, too */
    PL_MANY_ENDED, /* all agents were told to end their tasks */
} pl_many_phase;

typedef struct pl_many {
    const pl_many_opts *opts;
    pl_crew *crew;
    pl_cluster cluster; /* with all addresses */
    pl_many_task *tasks;
    FILE **logs; /* [count] */
    int count;
    char secret[PL_SECRET_TEXT];
    pl_many_phase phase;
    pl_deadline deadline; /* of the phase, but for RUNS */
    bool done;            /* the chief ended well */
    pl_error failed;      /* the first failure */
} pl_many;

/* Who works where, at which address; whether the hosts can. */
pl_status pl_many_deal(pl_many *m) PL_MUST_CHECK;
pl_status pl_many_try(pl_many *m) PL_MUST_CHECK;
pl_status pl_many_find_ports(pl_many *m) PL_MUST_CHECK;

/* Start a task, or start it again. */
pl_status pl_many_start(pl_many *m, pl_many_task *task) PL_MUST_CHECK;

/* Start all tasks and stay until they have ended. */
pl_status pl_many_supervise(pl_many *m) PL_MUST_CHECK;

/* Free what the job needed; the crew is its caller's. */
void pl_many_close(pl_many *m);

#endif
