/* bottleneck_priv.h - the times of a job from its summary, for the rules
 * (bottleneck.c) and the cures (cures.c).
 *
 * Threads: pure functions. */
#ifndef PL_APP_RUN_BOTTLENECK_PRIV_H
#define PL_APP_RUN_BOTTLENECK_PRIV_H

#include "app/run/bottleneck.h"
#include "observe/steps/steps.h"

/* What slowed a run down; bottleneck.c has the names. */
typedef enum pl_cause {
    PL_CAUSE_COMPUTING,
    PL_CAUSE_CORES, /* at times no core was free */
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
    PL_SLOW_QUOTA,    /* it used up its quota of processor time */
    PL_SLOW_STARVED,  /* other processes take its processor */
    PL_SLOW_STOLEN,   /* ... or other machines of its hypervisor */
    PL_SLOW_HARDWARE, /* its processor needs longer for the same work */
    PL_SLOW_STOPS,    /* some steps take very long, the others do not */
    PL_SLOW_INPUT,    /* it takes longer to read data */
    PL_SLOW_LINK,
} pl_slowness;

/* In seconds per step, unless stated otherwise. */
typedef struct pl_job_times {
    const pl_summary *summary;
    const pl_bottleneck_opts *opts;
    pl_step_strategy strategy;
    int32_t workers;                   /* workers that made steps */
    int32_t hosts;                     /* of workers */
    bool apart;                        /* no server is on a host of a worker */
    double speed;                      /* gradients a second of all workers */
    double step;                       /* the mean of all workers */
    double input, compute, send, wait; /* parts of `step` */
    double push, pull;                 /* bytes */
    double disk;      /* bytes from disks; NAN: not known for all workers */
    double cores;     /* used by a worker; NAN: not known for all */
    double queued;    /* share of time that workers waited for a processor */
    double linked;    /* ... that the links of a ring carried bytes */
    bool crowded_out; /* other processes than the job's used the cores */
    double evaluation, checkpoints; /* shares of the whole time */
    double stale;                   /* share of gradients that were dropped */
    int32_t busy_server;  /* with the most processor time; -1: none known */
    double server_busy;   /* share of a core that it used */
    double server_queued; /* share of time that it waited for a core, if much
                             more than the workers did; otherwise 0 */

    /* The worker that the others wait for, or that is slower than the
     * others. */
    int32_t slow; /* its row; -1: none */
    double held;  /* share of time that it holds up the others */
    pl_slowness slowness;
    bool slow_link; /* in a ring, found from the busy times of links */
    bool spells;
    double slowdown;              /* own time of a step / the others' */
    double usual_own, others_own; /* seconds per step without waiting */
    double lacked;    /* time without a processor beyond the others' */
    double throttled; /* share of time with its quota used up */
} pl_job_times;

/* Why reading takes time. */
typedef enum pl_reading {
    PL_READING_UNKNOWN,
    PL_READING_DISK,    /* many bytes came from a disk */
    PL_READING_PARSING, /* almost none did, and processors were busy */
} pl_reading;
pl_reading pl_reading_of(const pl_job_times *times);

/* The cures of a cause, best first, with the expected speed-up of the job; only
 * those above 1.05. */
pl_status pl_cures_find(pl_bottleneck *found, const pl_job_times *times,
                        pl_cause cause) PL_MUST_CHECK;

#endif
