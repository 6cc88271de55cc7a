/* steps_priv.h - what the replays of the strategies share.
 *
 * Threads: pure functions. */
#ifndef PL_OBSERVE_STEPS_STEPS_PRIV_H
#define PL_OBSERVE_STEPS_STEPS_PRIV_H

#include "observe/steps/steps.h"

#define PL_STEP_PIECE  ((double)(1 << 20)) /* bytes of a message, at most */
#define PL_STEP_WINDOW 8 /* a range of more pieces is pushed piece by piece */
#define PL_STEP_BUCKET                                                         \
    ((double)(256 << 10)) /* bytes of a ring's sum, at least,                  \
                             while there are more */

/* A job with its defaults, costs by byte, and one limit left out. */
typedef struct pl_step_case {
    const pl_step_work *work;
    pl_step_job job;
    double compute; /* factor of computing */
    double input_s, update_s;
    double add_s;               /* of a ring's workers */
    double server_s;            /* a server's share of one update */
    double server_add_s;        /* ... and of adding one gradient */
    double message_s;           /* of a server or of a ring's hop */
    double worker_message_s;    /* of a worker with servers */
    double link_s, slow_link_s; /* seconds a byte of a worker's link, of the
                                   one that differs, ... */
    double server_link_s;       /* ... and of a server's */
    double server_byte_s;       /* the processor's part of that */
    double latency_s;
    double slowdown, stall_s;          /* of the worker that differs; 1 and 0 */
    bool differs;                      /* one does */
    double push, pull;                 /* bytes of all layers */
    double host_workers, host_servers; /* of the fullest host */
    double near; /* the share of a worker's bytes that stays on its host */
    double far;  /* workers that are not on a server's host */
    /* Where there are fewer servers than hosts: so many workers are on a
     * server's host, where this share of their bytes stays. */
    double home_workers, home_near;
} pl_step_case;

/* The worker that differs has its own times. */
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
