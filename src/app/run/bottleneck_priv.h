/* bottleneck_priv.h - what a summary tells of the time of a job, in numbers,
 * for the rules (bottleneck.c) and the cures (cures.c).
 *
 * Threads: pure functions. */
#ifndef PL_APP_RUN_BOTTLENECK_PRIV_H
#define PL_APP_RUN_BOTTLENECK_PRIV_H

#include "app/run/bottleneck.h"
#include "observe/steps/steps.h"

/* What held a run up; pl_cause_names has the words. */
typedef enum pl_cause {
    PL_CAUSE_COMPUTING,
    PL_CAUSE_CORES, /* none was free at times */
    PL_CAUSE_READING,
    PL_CAUSE_SLOW_WORKER,
    PL_CAUSE_SERVER, /* its processor */
    PL_CAUSE_SERVER_LINK,
    PL_CAUSE_LINK,
    PL_CAUSE_LATENCY,
    PL_CAUSE_OTHERS, /* in a ring whose links are idle */
    PL_CAUSE_EVALUATION,
    PL_CAUSE_CHECKPOINTS,
    PL_CAUSE_STALENESS,
    PL_CAUSES,
} pl_cause;

/* Why a worker is slow. */
typedef enum pl_slowness {
    PL_SLOW_NONE,
    PL_SLOW_QUOTA,    /* its quota of processor time is used up */
    PL_SLOW_STARVED,  /* others take its processor */
    PL_SLOW_STOLEN,   /* ... machines of the same hypervisor */
    PL_SLOW_HARDWARE, /* its processor takes longer for the same */
    PL_SLOW_STOPS,    /* some steps take very long, the others do not */
    PL_SLOW_INPUT,    /* it reads longer */
    PL_SLOW_LINK,
} pl_slowness;

/* Seconds of a step, unless it says otherwise. */
typedef struct pl_job_times {
    const pl_summary *summary;
    const pl_bottleneck_opts *opts;
    pl_step_strategy strategy;
    int32_t workers;                   /* that made steps */
    int32_t hosts;                     /* of workers */
    bool apart;                        /* no server is on a host of a worker */
    double speed;                      /* gradients a second of all workers */
    double step;                       /* the mean of all workers */
    double input, compute, send, wait; /* of that */
    double push, pull;                 /* bytes */
    double disk;   /* bytes from disks; NAN: not known of all workers */
    double cores;  /* that a worker used; likewise */
    double queued; /* the share of time that workers waited for a processor */
    double linked; /* ... that the links of a ring carried bytes */
    bool crowded_out; /* ... which other processes than the job's had */
    double evaluation, checkpoints; /* shares of the whole time */
    double stale;         /* the share of gradients that was dropped */
    int32_t busy_server;  /* with the most processor time; -1: none is known */
    double server_busy;   /* the share of a core that it used */
    double server_queued; /* the share of time that it waited for a core, much
                             more than workers did; else 0 */

    /* The worker that the others wait for, or that is slower than they are. */
    int32_t slow; /* its row; -1: none */
    double held;  /* the share of time that it holds up the others */
    pl_slowness slowness;
    bool slow_link; /* of a ring, found by how long links were busy */
    bool spells;
    double slowdown;              /* own time of a step / the others' */
    double usual_own, others_own; /* seconds of a step without waiting */
    double lacked;    /* longer than the others it had no processor */
    double throttled; /* the share of time with a used up quota */
} pl_job_times;

/* What reading takes the time for. */
typedef enum pl_reading {
    PL_READING_UNKNOWN,
    PL_READING_DISK,    /* much came from a disk */
    PL_READING_PARSING, /* next to nothing did, and processors were busy */
} pl_reading;
pl_reading pl_reading_of(const pl_job_times *times);

/* The cures of a cause, the best first, and how many times as fast the job
 * would be; only those above 1.05. */
pl_status pl_cures_find(pl_bottleneck *found, const pl_job_times *times,
                        pl_cause cause) PL_MUST_CHECK;

#endif
