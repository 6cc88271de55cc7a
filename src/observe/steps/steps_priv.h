/* steps_priv.h - shared by the replays of the strategies.
 *
 * Threads: pure functions. */
#ifndef PL_OBSERVE_STEPS_STEPS_PRIV_H
#define PL_OBSERVE_STEPS_STEPS_PRIV_H

#include "observe/steps/steps.h"

#define PL_STEP_PIECE  ((double)(1 << 20)) /* maximum bytes of a message */
#define PL_STEP_WINDOW 8 /* longer ranges are pushed piece by piece */
#define PL_STEP_BUCKET                                                         \
    ((double)(256 << 10)) /* bytes of a ring's sum, at least,                  \
                             while there are more */

/* A job with its defaults, costs per byte, and one limit left out. */
typedef struct pl_step_case {
    const pl_step_work *work;
    pl_step_job job;
    double compute; /* factor of computing */
    double input_s, update_s;
    double add_s;               /* of a ring's workers */
    double server_s;            /* a server's part of one update */
    double server_add_s;        /* ... and of adding one gradient */
    double message_s;           /* of a server or of a ring's hop */
    double worker_message_s;    /* of a worker with servers */
    double link_s, slow_link_s; /* seconds per byte of a worker's link, of the
                                   straggler's, ... */
    double server_link_s;       /* ... and of a server's */
    double server_byte_s;       /* the processor's part of that */
    double latency_s;
    double slowdown, stall_s;          /* of the straggler; otherwise 1 and 0 */
    bool differs;                      /* there is a straggler */
    double push, pull;                 /* bytes of all layers */
    double host_workers, host_servers; /* of the fullest host */
    double near; /* the share of a worker's bytes that stays on its host */
    double far;  /* workers on other hosts than the server */
    /* If there are fewer servers than hosts: the number of workers on a
     * server's host, and the share of their bytes that stays there. */
    double home_workers, home_near;
} pl_step_case;

/* The straggler has its own times. */
typedef enum pl_step_who {
    PL_STEP_OTHERS,
    PL_STEP_SLOW,
} pl_step_who;

/* When the gradients of a worker are done that starts at `at` and gets the
 * parameters of each layer at arrive[layer]; returns the time of the last. */
double pl_step_compute(const pl_step_case *c, pl_step_who who, double at,
                       const double *arrive, double *ready);

/* Seconds between the updates of a job in lock step. */
pl_status pl_step_ps(const pl_step_case *c, double *step_s) PL_MUST_CHECK;
pl_status pl_step_ring(const pl_step_case *c, double *step_s) PL_MUST_CHECK;

#endif
