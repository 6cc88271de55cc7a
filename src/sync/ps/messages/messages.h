/* messages.h - the messages between the tasks of a parameter-server job, one
 * struct for each kind.
 *
 * A task sends a request with a sequence number to a server, which sends one
 * final answer: PARAMS, REPORT, or an ACK with DONE and the result.  The
 * servers report to server 0 what is complete (HAVE, SAVED), and server 0 sends
 * them its decisions (APPLY).
 *
 * encode gives the header of a message, without generation and incarnation,
 * which the sender stamps; decode checks all that can be checked without
 * knowing the job, false: malformed.  A payload is not copied: its size agrees
 * with the struct.  docs/formats/wire.md describes the bytes.
 *
 * Threads: any. */
#ifndef PL_SYNC_PS_MESSAGES_MESSAGES_H
#define PL_SYNC_PS_MESSAGES_MESSAGES_H

#include "job/member/liveness.h"
#include "net/endpoint.h"
#include "sync/ps/messages/protocol.h"
#include "train/loop/deal.h"

#define PL_COUNT_MOST (INT64_MAX / 4) /* steps and gradients of a job */

typedef enum pl_ps_request_kind {
    PL_REQUEST_NONE,
    PL_REQUEST_INIT,        /* chief: the first parameters */
    PL_REQUEST_LOAD,        /* chief: read your shard of a checkpoint */
    PL_REQUEST_PULL,        /* task: send parameters */
    PL_REQUEST_PUSH,        /* worker: a gradient */
    PL_REQUEST_PAUSE,       /* chief: evaluating, do not wait for me */
    PL_REQUEST_FREEZE,      /* chief: make all workers wait */
    PL_REQUEST_THAW,        /* chief: ... and continue */
    PL_REQUEST_SAVE,        /* chief: write your shard of a checkpoint */
    PL_REQUEST_SAVE_STATUS, /* chief: how did the last checkpoint end? */
    PL_REQUEST_SHARE,       /* worker: which data share is next? */
    PL_REQUEST_DEAL,        /* worker, sync: how is the data dealt? */
    PL_REQUEST_STOP,        /* task: end the job; text: why */
    PL_REQUEST_BYE,         /* task: I am done; text: my report */
} pl_ps_request_kind;

/* Floats or, for sparse parameters, a description as text.  Without either it
 * is a probe: a query for the state of the request. */
typedef struct pl_ps_init {
    int64_t step;
    int64_t first; /* place of the floats in the block */
    uint32_t count;
} pl_ps_init;

/* The payload: an int64 per worker, then a plan (pl_ps_plan). */
typedef struct pl_ps_load {
    int64_t step; /* of the checkpoint */
} pl_ps_load;

typedef struct pl_ps_pull {
    unsigned flags; /* PL_PULL_ */
    int64_t step;   /* answer at this step, or at the end */
    /* Sparse: the payload has the keys of this list, or a range is
     * requested. */
    int64_t list; /* 0: none */
    uint32_t key_count;
    int64_t first, count; /* with PL_PULL_RANGE */
} pl_ps_pull;

/* Dense: `count` floats as the job's codec has encoded them.  Sparse: floats,
 * then the requested keys, then those of the gradient (with_list).  Without
 * data it is a probe. */
typedef struct pl_ps_push {
    int64_t step;  /* at which the gradient was computed */
    int64_t first; /* dense: place of the floats in the block */
    uint32_t count;
    bool has_data, with_list;
    int64_t of, want; /* sparse: the lists of the gradient and of the request;
                         want 0: none */
    uint32_t key_count;
} pl_ps_push;

/* The payload: an int64 per worker, then a plan (pl_ps_plan). */
typedef struct pl_ps_save {
    int64_t step;
    int64_t number; /* rises with each save */
} pl_ps_save;

typedef struct pl_ps_save_status {
    bool wait; /* answer when the save has ended */
} pl_ps_save_status;

typedef struct pl_ps_share {
    int64_t count;  /* gradients of its own share so far */
    int32_t worker; /* the sender */
    bool wait;      /* answer when a share is available, or all others are
                       done */
} pl_ps_share;

typedef struct pl_ps_deal {
    int64_t step; /* the first one of an epoch; -1: only query */
    int64_t epoch;
} pl_ps_deal;

typedef struct pl_ps_stop {
    bool failed; /* otherwise the job ends as planned */
} pl_ps_stop;

typedef struct pl_ps_request {
    pl_ps_request_kind kind;
    union {
        pl_ps_init init;
        pl_ps_load load;
        pl_ps_pull pull;
        pl_ps_push push;
        pl_ps_save save;
        pl_ps_save_status save_status;
        pl_ps_share share;
        pl_ps_deal deal;
        pl_ps_stop stop;
    };
} pl_ps_request;

pl_frame pl_ps_request_encode(const pl_ps_request *request, uint64_t sequence,
                              uint32_t payload_bytes);
bool pl_ps_request_decode(pl_ps_request *out, const pl_message *message);
const char *pl_ps_request_text(pl_ps_request_kind kind); /* "push" */

/* Whether it carries floats or keys; otherwise it is a probe. */
bool pl_ps_request_has_data(const pl_ps_request *request);

/* The payload of LOAD and SAVE. */
typedef struct pl_ps_plan {
    const void *counts; /* an int64 per worker, ~count if it is lost;
                           unaligned */
    const char *text;
    size_t text_bytes;
} pl_ps_plan;

static inline size_t pl_ps_counts_bytes(int32_t workers)
{
    return (size_t)workers * sizeof(int64_t);
}

bool pl_ps_plan_decode(pl_ps_plan *out, const pl_message *message,
                       int32_t workers);

/* PARAMS: a piece of the parameters, as floats or encoded by the job's codec,
 * or the result of a push. */
typedef struct pl_ps_params {
    unsigned answer; /* PL_ANSWER_ */
    int64_t step;
    int64_t first;
    uint32_t count;
    int64_t made, own; /* gradients applied: made by this worker, and of its
                          share */
    uint32_t bytes;    /* of the piece; default: the size of `count` floats */
} pl_ps_params;

pl_frame pl_ps_params_encode(const pl_ps_params *params);
bool pl_ps_params_decode(pl_ps_params *out, const pl_message *message);

typedef enum pl_ps_ack_kind {
    PL_ACKED_PIECE,    /* this piece has arrived, or (without a piece) the
                          REPORT */
    PL_ACKED_COMPLETE, /* all pieces have arrived; the answer is not due */
    PL_ACKED_NEED,     /* send what was not acknowledged */
    PL_ACKED_DONE,     /* the request is done */
} pl_ps_ack_kind;

typedef struct pl_ps_ack {
    pl_ps_ack_kind kind;
    int64_t first, count, step; /* of a piece; step: that of its PARAMS */
} pl_ps_ack;

pl_frame pl_ps_ack_encode(const pl_ps_ack *ack);
bool pl_ps_ack_decode(pl_ps_ack *out, const pl_message *message);

/* ACK with DONE, to FREEZE: the payload has an int64 per worker. */
pl_frame pl_ps_counts_encode(int64_t step, int32_t workers);
bool pl_ps_counts_decode(int64_t *step, const pl_message *message,
                         int32_t workers);

/* ... to SHARE. */
typedef struct pl_ps_share_answer {
    int32_t worker; /* the owner of the share to read */
    int64_t own;    /* gradients of that share that were applied */
} pl_ps_share_answer;

pl_frame pl_ps_share_answer_encode(const pl_ps_share_answer *answer);
bool pl_ps_share_answer_decode(pl_ps_share_answer *out,
                               const pl_message *message);

/* ... to DEAL: the payload has a bit per worker for each set. */
typedef struct pl_ps_deal_answer {
    pl_deal deal;
    pl_workers present;
} pl_ps_deal_answer;

#define PL_DEAL_ANSWER_MOST (2 * PL_DEAL_WORKERS / 8)

pl_frame pl_ps_deal_answer_encode(const pl_ps_deal_answer *answer,
                                  int32_t workers,
                                  uint8_t payload[PL_DEAL_ANSWER_MOST]);
bool pl_ps_deal_answer_decode(pl_ps_deal_answer *out, const pl_message *message,
                              int32_t workers);

/* ... to SAVE_STATUS; text: why the save failed. */
pl_frame pl_ps_save_answer_encode(int64_t step, pl_saved outcome);
bool pl_ps_save_answer_decode(pl_saved *outcome, const pl_message *message);

/* REPORT: the reports of all tasks, as text. */
typedef struct pl_ps_report {
    int64_t step;
    int64_t dropped;   /* gradients of the job */
    int64_t update_ns; /* from the first update to the last */
} pl_ps_report;

pl_frame pl_ps_report_encode(const pl_ps_report *report);
bool pl_ps_report_decode(pl_ps_report *out, const pl_message *message);

/* Text: JSON of the resources used so far (base/record/report.h). */
typedef struct pl_ps_heartbeat {
    uint64_t number;
    bool final; /* as requested: the job is done */
    pl_vital vital;
} pl_ps_heartbeat;

pl_frame pl_ps_heartbeat_encode(const pl_ps_heartbeat *heartbeat);
bool pl_ps_heartbeat_decode(pl_ps_heartbeat *out, const pl_message *message);

/* Text: why the job ends. */
typedef struct pl_ps_heartbeat_ack {
    uint64_t number; /* of the heartbeat; 0: none */
    bool failed, stopping;
    bool final; /* to a server: the job is done, report your usage */
    int64_t step;
    int64_t clock_ns; /* server 0's; 0: not given */
} pl_ps_heartbeat_ack;

pl_frame pl_ps_heartbeat_ack_encode(const pl_ps_heartbeat_ack *ack);
bool pl_ps_heartbeat_ack_decode(pl_ps_heartbeat_ack *out,
                                const pl_message *message);

/* JOIN and WELCOME; join.h has their text. */
typedef struct pl_ps_join {
    uint64_t number;       /* of the task's attempts */
    uint64_t last_request; /* requests up to this sequence are void */
} pl_ps_join;

pl_frame pl_ps_join_encode(const pl_ps_join *join);
bool pl_ps_join_decode(pl_ps_join *out, const pl_message *message);

typedef struct pl_ps_welcome {
    uint64_t number; /* of the JOIN that it answers */
    int64_t step;
    int64_t own; /* gradients of the task's share that were applied */
    bool ready;  /* all servers have parameters, and the chief has continued */
} pl_ps_welcome;

pl_frame pl_ps_welcome_encode(const pl_ps_welcome *welcome);
bool pl_ps_welcome_decode(pl_ps_welcome *out, const pl_message *message);

/* REFUSE the request with that sequence; text: why. */
pl_frame pl_ps_refuse_encode(bool unknown, uint64_t sequence);
/* REFUSE: the server is new and knows no task. */
bool pl_ps_refuse_is_unknown(const pl_message *message);

/* OVER; text: why. */
pl_frame pl_ps_over_encode(bool failed);
bool pl_ps_over_has_failed(const pl_message *message);

/* HAVE: the gradient of a worker is complete on this server. */
typedef struct pl_ps_have {
    int32_t worker;
    int64_t step;         /* sync: of the gradient */
    uint32_t incarnation; /* async: the worker's... */
    uint64_t push;        /* ... and the sequence of its push */
} pl_ps_have;

pl_frame pl_ps_have_encode(const pl_ps_have *have);
bool pl_ps_have_decode(pl_ps_have *out, const pl_message *message);

/* APPLY in sync: the payload has a byte per worker. */
pl_frame pl_ps_choice_encode(int64_t step, int32_t workers);
bool pl_ps_choice_decode(int64_t *step, const pl_message *message,
                         int32_t workers);

/* APPLY in async and ssp: the verdict on a gradient. */
typedef struct pl_ps_verdict {
    int32_t worker;
    uint32_t incarnation; /* the worker's, and... */
    uint64_t push;        /* ... the sequence of its push */
    bool dropped;         /* no server applies it */
    int32_t share;        /* otherwise: the data share that it counts for */
} pl_ps_verdict;

pl_frame pl_ps_verdict_encode(const pl_ps_verdict *verdict);
bool pl_ps_verdict_decode(pl_ps_verdict *out, const pl_message *message);

/* SAVED: a server's shard of a checkpoint; text: why it failed.  Server 0
 * acknowledges it with the number only. */
typedef struct pl_ps_saved {
    int64_t number; /* of the save */
    pl_saved outcome;
    int64_t step;
    int64_t bytes; /* of the file */
    uint32_t crc32c;
} pl_ps_saved;

pl_frame pl_ps_saved_encode(const pl_ps_saved *saved);
bool pl_ps_saved_decode(pl_ps_saved *out, const pl_message *message);

#endif
