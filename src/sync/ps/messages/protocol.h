/* protocol.h - the meaning of flags and values of frames between the tasks of a
 * parameter-server job; docs/formats/wire.md describes the protocol.
 *
 * A task has at most one request in flight to each server, numbered by
 * `sequence` from 1.  If the answer does not arrive in time, the task sends an
 * empty frame of the same kind (a probe): the server replies that data is
 * missing (ACK with PL_ACK_NEED), that it has everything (PL_ACK_COMPLETE), or
 * repeats the answer.  So every update is made exactly once, however often
 * messages are lost or duplicated.
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
#define PL_ANSWER_BROKEN  4u /* ... because a task was interrupted */

/* PULL. value[0]: answer when the job is at this step, or over. */
#define PL_PULL_FINAL 1u /* ... when all other workers are done */
#define PL_PULL_PEEK  2u /* sparse: no gradient will follow */
#define PL_PULL_RANGE 4u /* sparse: value[1] floats from `first` on */
#define PL_PULL_EXACT 8u /* dense: floats, whatever the job's codec */

/* PUSH of sparse parameters; a probe has neither. */
#define PL_PUSH_DATA 1u /* all of it is in this message */
#define PL_PUSH_LIST 2u /* ... also the keys of the gradient */

/* SAVE, to server 0: do not write, but report the state of the last save. */
#define PL_SAVE_LOOK 1u /* immediately */
#define PL_SAVE_WAIT 2u /* when it has ended */

/* The outcome of a checkpoint, or of a shard of it. */
typedef enum pl_saved {
    PL_SAVED_GOOD, /* or there was none */
    PL_SAVED_WRITING,
    PL_SAVED_FAILED,
    PL_SAVED_NUMERIC, /* a parameter is not finite */
} pl_saved;

/* ACK. `first`, value[0]: the piece and its plane; or one of these. */
#define PL_ACK_COMPLETE 1u /* all pieces of the request have arrived */
#define PL_ACK_NEED     2u /* send what was not acknowledged */
#define PL_ACK_DONE     4u /* a request without data is done */

/* APPLY, async and ssp. */
#define PL_APPLY_DROPPED 1u /* the gradient counts on no server */

/* REFUSE. */
#define PL_REFUSE_UNKNOWN                                                      \
    1u /* the server is new and knows no task: rejoin                          \
        */

/* SHARE.  value: gradients of its own share so far, the worker's number. */
#define PL_SHARE_WAIT 1u /* answer when one is left, or all others are done */
/* In sync.  value: the first step of an epoch, or -1: only query; the epoch. */
#define PL_SHARE_DEAL 2u

/* PAUSE */
#define PL_PAUSE_FREEZE                                                        \
    1u /* answer, with each worker's count, when all wait                      \
        */
#define PL_PAUSE_THAW 2u

/* STOP, OVER, HEARTBEAT_ACK */
#define PL_STOP_FAILED 1u /* the job failed; otherwise it ends as planned */
#define PL_STOP_NOW    2u /* HEARTBEAT_ACK: no more gradients */

/* HEARTBEAT_ACK: the job is done, report your usage; HEARTBEAT: the report. */
#define PL_HEARTBEAT_FINAL 4u

/* The reason in the STOP of an interrupted task. */
#define PL_STOP_INTERRUPT "interrupt"
/* Appended to the reason when the job ends before all servers had parameters:
 * there is nothing to save and the job failed; but an interrupt is not a
 * failure. */
#define PL_STOP_EARLY " before the training began"

/* Messages to and from ps 0, as the other servers see it. */
#define PL_PEER_COORDINATOR (-2)
/* ... of a member whose connection was dropped. */
#define PL_PEER_NONE (-3)

#define PL_TICK_MS  100  /* how often the cores check the clock */
#define PL_PROBE_MS 1000 /* silence after which a probe is sent */

#endif
