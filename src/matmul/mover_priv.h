/* mover_priv.h - what the files of the mover share.
 *
 * One thread owns the endpoints and everything not guarded by the lock. */
#ifndef PL_MATMUL_MOVER_PRIV_H
#define PL_MATMUL_MOVER_PRIV_H

#include "base/error.h"
#include "base/thread.h"
#include "job/member/member.h"
#include "matmul/mover.h"
#include "net/endpoint.h"

#include <stdatomic.h>

#define PL_MOVER_ASKS 8 /* requests in flight */

/* The phase of the computing thread. */
typedef enum pl_worker_phase {
    PL_WORKER_PHASE_MAKING,
    PL_WORKER_PHASE_READY,
    PL_WORKER_PHASE_DONE,
} pl_worker_phase;

/* The phase of the job. */
typedef enum pl_matmul_phase {
    PL_MATMUL_WAITS,
    PL_MATMUL_RUNS,
    PL_MATMUL_OVER,
    PL_MATMUL_FAILED,
} pl_matmul_phase;

/* This worker's state of another one. */
typedef struct pl_colleague {
    char *address;
    pl_endpoint *end; /* ours to it; NULL: not needed */
    bool linked;
    int64_t asked_ns; /* when a LINK was last sent */
    int64_t heard_ns; /* its last answer; 0: none yet */
} pl_colleague;

/* A requested piece of a block. */
typedef struct pl_ask {
    uint64_t sequence; /* 0: free */
    int32_t step, owner;
    const pl_want *want;
    int64_t first, count; /* floats of the block */
    int64_t sent_ns;
} pl_ask;

typedef struct pl_slot {
    float *memory; /* [plan.slot_floats] */
    int32_t step;
    int64_t left; /* floats to arrive */
} pl_slot;

/* The endpoint functions in use; tests replace them. */
typedef struct pl_mover_net {
    pl_status (*send)(pl_endpoint *end, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting);
    pl_status (*offer)(pl_endpoint *client, char offer[PL_OFFER_BYTES]);
    pl_status (*accept)(pl_endpoint *server, pl_peer peer, const char *offer,
                        char answer[PL_OFFER_BYTES]);
    pl_status (*complete)(pl_endpoint *client, const char *answer);
} pl_mover_net;

struct pl_mover {
    pl_mover_opts opts;
    const pl_mover_net *net;
    pl_job_keys keys;
    pl_endpoint *server;
    pl_colleague *others; /* [workers], the own entry is unused */
    pl_thread *thread;
    atomic_bool stop;
    pl_membership *membership; /* the thread's */
    bool ready, finished;      /* ... as passed to membership */
    pl_error broken;           /* a failure that ends the job, outside
                                  membership */
    /* Fetching. */
    pl_ask asks[PL_MOVER_ASKS];
    uint64_t sequence;  /* of the last request */
    int32_t step, want; /* to request next */
    int64_t first;      /* ... from this float of the want on */
    /* Shared with the computing thread. */
    pl_mutex lock;
    pl_cond moved;
    pl_slot slots[PL_MATMUL_SLOTS];
    int32_t released; /* steps that are computed */
    pl_worker_phase phase;
    pl_matmul_phase job;
    char *report;
    pl_error failed;
    pl_mover_counts counts;
};

/* Initialize a mover without its endpoints and thread. */
pl_status pl_mover_init(pl_mover *m, const pl_mover_opts *opts,
                        const pl_mover_net *net) PL_MUST_CHECK;
void pl_mover_close(pl_mover *m);

/* Fetch: send the possible requests; store a piece. */
pl_status pl_mover_ask(pl_mover *m) PL_MUST_CHECK;
pl_status pl_mover_take_piece(pl_mover *m, int32_t from,
                              const pl_message *message) PL_MUST_CHECK;
/* Serve: answer a request for a piece. */
pl_status pl_mover_serve(pl_mover *m, const pl_message *message) PL_MUST_CHECK;

/* Membership and links: handle the messages of a worker to our server, or its
 * answers; send what is due.  tend fails when the job fails. */
pl_status pl_mover_members_init(pl_mover *m) PL_MUST_CHECK;
void pl_mover_join(pl_mover *m);
pl_status pl_mover_take_request(pl_mover *m,
                                const pl_message *message) PL_MUST_CHECK;
pl_status pl_mover_take_answer(pl_mover *m, int32_t from,
                               const pl_message *message) PL_MUST_CHECK;
pl_status pl_mover_tend(pl_mover *m) PL_MUST_CHECK;

#endif
