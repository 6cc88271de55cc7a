/* protocol.h - what the flags and values of frames mean between the tasks of
 * a parameter-server job; docs/formats/wire.md tells the conversation.
 *
 * A task has at most one request on its way to each server, numbered by
 * `sequence` from 1.  A request that was not answered in time is asked about
 * again with an empty frame of its kind (a probe): the server sends what it
 * misses (ACK with PL_ACK_NEED), that it has all (PL_ACK_COMPLETE), or the
 * answer once more.  So every update is made exactly once, however often
 * messages are lost or doubled.
 *
 * Threads: constants only. */
#ifndef PL_SYNC_PS_MESSAGES_PROTOCOL_H
#define PL_SYNC_PS_MESSAGES_PROTOCOL_H

#include "job/member/liveness.h"

#include <stdint.h>

typedef enum pl_ps_mode {
    PL_PS_SYNC,
    PL_PS_ASYNC,
    PL_PS_SSP,
} pl_ps_mode;

/* PARAMS: how a request ended. */
#define PL_ANSWER_DROPPED 1u /* the gradient was too old or too late */
#define PL_ANSWER_STOP    2u /* no further gradient is wanted */
#define PL_ANSWER_BROKEN  4u /* ... since someone was interrupted */

/* PULL. value[0]: answer when the job is at this step, or over. */
#define PL_PULL_FINAL 1u /* ... when all other workers are done */
#define PL_PULL_PEEK  2u /* sparse: no gradient of it will come */
#define PL_PULL_RANGE 4u /* sparse: value[1] floats from `first` on */
#define PL_PULL_EXACT 8u /* dense: floats, whatever the job's codec */

/* PUSH of sparse parameters; a probe has neither. */
#define PL_PUSH_DATA 1u /* all of it is in this message */
#define PL_PUSH_LIST 2u /* ... also the keys of the gradient */

/* SAVE, to server 0: do not write, but tell what became of the last one. */
#define PL_SAVE_LOOK 1u /* at once */
#define PL_SAVE_WAIT 2u /* when it has ended */

/* What became of a checkpoint, or of a part of it. */
typedef enum pl_saved {
    PL_SAVED_GOOD, /* or there was none */
    PL_SAVED_WRITING,
    PL_SAVED_FAILED,
    PL_SAVED_NUMERIC, /* a parameter is not finite */
} pl_saved;

/* ACK. `first`, value[0]: the piece and its plane; or one of these. */
#define PL_ACK_COMPLETE 1u /* all pieces of the request are here */
#define PL_ACK_NEED     2u /* send what was not acknowledged */
#define PL_ACK_DONE     4u /* a request without data is done */

/* APPLY, async and ssp. */
#define PL_APPLY_DROPPED 1u /* the gradient counts on no server */

/* REFUSE: what to make of it. */
#define PL_REFUSE_UNKNOWN                                                      \
    1u /* the server is new and knows no task: rejoin                          \
        */

/* SHARE. value: this worker has read its own up to here, its number. */
#define PL_SHARE_WAIT 1u /* answer when one is left, or all others are done */
/* In sync.  value: the first step of an epoch, or -1: tell only; the epoch. */
#define PL_SHARE_DEAL 2u

/* PAUSE */
#define PL_PAUSE_FREEZE                                                        \
    1u /* answer, with each worker's count, when all wait                      \
        */
#define PL_PAUSE_THAW 2u

/* STOP, OVER, HEARTBEAT_ACK */
#define PL_STOP_FAILED 1u /* the job failed; else it ends as planned */
#define PL_STOP_NOW    2u /* HEARTBEAT_ACK: no more gradients */

/* HEARTBEAT_ACK: the job is done, tell what you used; HEARTBEAT: that is it. */
#define PL_HEARTBEAT_FINAL 4u

/* The reason in STOP of one that was interrupted. */
#define PL_STOP_INTERRUPT "interrupt"
/* What follows the reason when the job ends before all servers had parameters:
 * it has nothing to save, and failed; but an interrupt is no failure. */
#define PL_STOP_EARLY " before the training began"

/* Messages to and from ps 0, as the other servers see it. */
#define PL_PEER_COORDINATOR (-2)
/* ... of a member whose connection was given up. */
#define PL_PEER_NONE (-3)

#define PL_TICK_MS  100  /* how often the cores look at the clock */
#define PL_PROBE_MS 1000 /* silence after which a request is asked about */

#endif
