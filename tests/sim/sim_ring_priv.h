/* sim_ring_priv.h - what the files of the ring's simulation share.
 *
 *   sim_ring.c         the clock, the network, faults
 *   sim_ring_worker.c  a process of a worker, the ledger */
#ifndef PL_TESTS_SIM_SIM_RING_PRIV_H
#define PL_TESTS_SIM_SIM_RING_PRIV_H

#include "sim/sim_ring.h"
#include "sync/allreduce/allreduce.h"
#include "sync/allreduce/ring/core_priv.h"

#include <ucontext.h>

#define RING_WORKERS 6
#define RING_STEPS   10
#define RING_FLOATS  320
#define RING_MS      INT64_C(1000000)

typedef struct ring_sim ring_sim;

/* A process of a worker. */
typedef struct ring_node {
    pl_collective base; /* first: what pl_allreduce_sync is given */
    ring_sim *sim;
    int32_t worker;
    int process; /* how many there were; messages name theirs */
    bool runs;   /* the process; not: killed, or ended */
    bool ended;  /* by itself, with `status` */
    bool dying;  /* killed: every wait fails */
    pl_status status;
    char why[256];
    int64_t frozen_ns;  /* until then; 0: not */
    int64_t restart_ns; /* then; 0: not */
    int64_t compute_ns; /* a step takes */
    /* Its clock: drift in thousandths, and a jump, forward or back. */
    int64_t offset_ns, drift, jump_at_ns, jump_ns;
    int32_t next; /* worker, by connection number `link` */
    int link;

    pl_ring_core *core;
    float *memory;
    pl_params *params;
    pl_optim *optim;
    pl_allreduce_sync *sync;

    /* What it waits for. */
    bool (*awaits)(struct ring_node *n);
    int32_t ticket;
    int64_t wake_ns;
    ucontext_t context;
    char *stack;
} ring_node;

typedef struct ring_step {
    bool known;
    uint64_t generation; /* that made it */
    float params[RING_FLOATS];
} ring_step;

struct ring_sim {
    uint64_t key, draws;
    bool verbose;
    int64_t now_ns;
    int32_t workers;
    int64_t floats;
    bool shared, supervised;
    pl_on_loss on_loss;
    ring_node node[RING_WORKERS];
    char addresses[RING_WORKERS][16];
    char *address[RING_WORKERS];
    pl_pool *pool;
    pl_schedule schedule;
    ucontext_t scheduler;
    uint32_t lives;
    int links;
    struct {
        int64_t until_ns; /* no message until then... */
        bool one_way;     /* ... from it; not: nor to it */
    } cut[RING_WORKERS];
    int faults;
    /* The ledger, and the chief's last checkpoint. */
    ring_step steps[RING_STEPS + 1];
    int64_t saved;
    uint64_t generation; /* that the chief joined last */
    pl_sim_result *result;
    /* Events, a heap. */
    struct ring_event *events;
    int count, room;
    uint64_t order;
};

uint32_t ring_draw(ring_sim *sim, uint32_t bound);
bool ring_broken(ring_sim *sim, const char *format, ...) PL_PRINTF(2, 3);

/* What the clock of a worker's host says. */
int64_t ring_time(const ring_node *n);
/* The core's way into the network. */
extern const pl_ring_core_ops ring_net_ops;

pl_status ring_node_start(ring_node *n) PL_MUST_CHECK;
void ring_node_kill(ring_node *n);
/* Continue if what it waits for has come. */
void ring_node_resume(ring_node *n);

#endif
