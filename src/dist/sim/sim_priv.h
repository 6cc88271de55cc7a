/* sim_priv.h - the parts of a simulated job.
 *
 * sim.c       servers, the event loop
 * sim_faults.c  settings from the seed, clocks, faults
 * sim_check.c what must hold, on the way and at the end
 * sim_ledger.c  which gradients each server's parameters are the sum of
 * sim_disk.c  checkpoints
 * sim_net.c   events in order of time; messages on their way
 * sim_worker.c  a worker: what the training loop does, without computing */
#ifndef PL_DIST_SIM_SIM_PRIV_H
#define PL_DIST_SIM_SIM_PRIV_H

#include "dist/ps_client.h"
#include "dist/ps_core.h"
#include "dist/sim/sim.h"

#define SIM_WORKERS   5
#define SIM_SERVERS   3
#define SIM_FLOATS    200
#define SIM_STEPS     40
#define SIM_SLOTS     2           /* of an optimizer, at most */
#define SIM_KEPT      3           /* complete checkpoints */
#define SIM_PLAN      32          /* bytes of a plan */
#define SIM_EVALUATOR SIM_WORKERS /* its place among the tasks */
#define SIM_TASKS     (SIM_WORKERS + 1)
#define SIM_NODES     (SIM_TASKS + SIM_SERVERS)
#define SIM_PUSHES    1024    /* of a worker, in all its lives */
#define SIM_INTRUDER  2000000 /* a peer that is none */
#define MS_NS         INT64_C(1000000)

typedef enum sim_event_kind {
    SIM_DELIVER,
    SIM_TICK_PS,
    SIM_TICK_WORKER,
    SIM_COMPUTED,
    SIM_KILL,
    SIM_KILL_PS,
    SIM_START_PS,
    SIM_START,
    SIM_FREEZE,
    SIM_THAW,
    SIM_FREEZE_PS, /* as by SIGSTOP */
    SIM_THAW_PS,
    SIM_STICK,     /* a worker lives on without getting anything done */
    SIM_INTERRUPT, /* a server, as by Ctrl-C */
    SIM_STORED,    /* a server's disk has done something */
    SIM_INTRUDE,   /* somebody speaks to a server under a false name */
} sim_event_kind;

/* Who a message is from or to: a server, or one life of a worker. */
typedef struct sim_event {
    int64_t at_ns;
    uint64_t order;
    sim_event_kind kind;
    int32_t node; /* server or worker */
    int32_t life; /* of the worker; events of an earlier one are void */
    bool to_ps, from_ps, heart;
    int32_t from; /* server or worker */
    int32_t from_life;
    int32_t to_life; /* of a server */
    pl_frame frame;
    void *payload;
} sim_event;

typedef enum sim_stage {
    SIM_JOINING,
    SIM_INITIALIZING, /* or loading */
    SIM_PULLING,
    SIM_COMPUTING,
    SIM_PUSHING,
    SIM_SHARING, /* asks whose share to read on */
    SIM_PAUSING,
    SIM_EVALUATING,
    SIM_LOOKING, /* whether the checkpoint before is done */
    SIM_FREEZING,
    SIM_SAVING,
    SIM_THAWING,
    SIM_WRITTEN, /* waits until it is */
    SIM_STOPPING,
    SIM_LAST_PULL,
    SIM_LEAVING,
    SIM_GONE,
} sim_stage;

/* Why the chief saves; the first and the last are waited for. */
typedef enum sim_saving {
    SIM_SAVE_ON,
    SIM_SAVE_FIRST,
    SIM_SAVE_LAST,
} sim_saving;

/* async, ssp: one gradient that a worker pushed. */
typedef struct sim_push {
    int32_t share;    /* whose data it is of... */
    int64_t position; /* ... and which gradient of that */
    uint32_t generation;
    int32_t life; /* of server 0: a new one may count generations anew */
    bool applied, dropped; /* the worker was told so */
} sim_push;

/* A set of pushes: bit n of a worker is its push n, from 1. */
typedef struct sim_set {
    uint8_t bits[SIM_WORKERS][SIM_PUSHES / 8];
} sim_set;

typedef struct sim_worker {
    struct sim *sim;
    int32_t index;
    int32_t life; /* counts its processes */
    bool alive, frozen, stuck;
    bool was_stuck; /* in any life */
    bool gone;      /* for good: nobody starts it again */
    int32_t boots;
    int64_t booted_ns;
    sim_stage stage;
    pl_ps_client *client;
    float params[SIM_FLOATS], grad[SIM_FLOATS];
    int64_t heart_ns, beat_ns;
    int64_t progress; /* as its hearts tell it */
    int64_t evaluated, saved;
    sim_saving saving;
    bool saved_first; /* or began to */
    char plan[SIM_PLAN];
    int32_t turn;  /* counts its joinings */
    bool leaving;  /* it was done when server 0 fell silent */
    bool half;     /* of the gradient is ready */
    bool was_lost; /* by hand, the others may have gone on without it */
    /* What it reads: its own share, or another's up to an end. */
    int32_t reads;
    int64_t own, other_own;
    bool astray, asked;
    /* What it was told of its gradients, in all lives. */
    int64_t applied, dropped;
    sim_push pushes[SIM_PUSHES];
    int32_t pushed;
} sim_worker;

typedef enum sim_task {
    SIM_TASK_NONE,
    SIM_TASK_SAVE,
    SIM_TASK_COMMIT,
    SIM_TASK_LOAD,
} sim_task;

typedef struct sim_checkpoint {
    int32_t serial; /* 0: none */
    int32_t parts;
    bool damaged;
    int64_t step, counts[SIM_WORKERS];
    int64_t part_step[SIM_SERVERS];
    sim_set set[SIM_SERVERS];
    float params[SIM_FLOATS];
    float slots[SIM_SLOTS][SIM_FLOATS];
} sim_checkpoint;

typedef struct sim_server {
    struct sim *sim;
    int32_t index;
    int64_t first, count;
    pl_ps_core *core; /* NULL: it is down */
    int32_t life;
    pl_optim *optim;
    pl_params *shape;
    float params[SIM_FLOATS];
    bool interrupted, frozen;
    int64_t frozen_ns, slept_ns; /* since; in all, before this time */
    /* Its disk. */
    sim_task task;
    bool cancelled;
    int32_t serial;
    float image[SIM_FLOATS]; /* as it was when the save began */
    float image_slots[SIM_SLOTS][SIM_FLOATS];
    /* The ledger: what its parameters were when last looked at... */
    bool based, loaded;
    uint32_t generation;
    int64_t step;
    float last[SIM_FLOATS];
    sim_set set; /* async: ... and which gradients they are the sum of */
    /* sync: its parameters at each step, and whose gradients made it; noted
     * from and up to here in this generation. */
    float history[SIM_STEPS + 1][SIM_FLOATS];
    uint32_t chosen[SIM_STEPS + 1];
    int64_t noted_from, noted;
} sim_server;

/* Messages between a group of nodes and the others are lost for a while. */
typedef struct sim_cut {
    uint32_t group; /* bit i: node i */
    bool one_way;   /* only what the group says is lost */
    int64_t from_ns, to_ns;
} sim_cut;

typedef struct sim_clock {
    int64_t offset_ns;
    int32_t drift; /* thousandths */
    uint32_t slow; /* times as long for all it does */
    int64_t jump_at_ns, jump_ns;
} sim_clock;

typedef struct sim {
    uint64_t key, draws;
    pl_sim_result *result;
    bool verbose, by_hand;
    /* What the seed chose. */
    int32_t workers, servers, replicas, staleness;
    pl_ps_mode mode;
    pl_on_loss on_loss;
    bool sum, by_steps, stops_early, evaluator;
    const char *optim;
    int64_t end_step, own_steps, piece, floats;
    uint32_t loss, doubling; /* per thousand */
    int64_t delay_ns;        /* most */
    sim_cut cut[SIM_WORKERS + 1];
    int32_t cuts;
    sim_clock clock[SIM_NODES];

    bool interrupted; /* from now on nobody is started again */
    bool worker_left; /* ... who was gone */
    int64_t now_ns;
    uint64_t state;   /* of all workers, as one number... */
    int64_t moved_ns; /* ... and when it became that */
    uint64_t order;
    sim_event *queue;
    size_t queued, room;
    pl_status status;             /* PL_NOMEM ends it */
    sim_worker worker[SIM_TASKS]; /* the last is the evaluator */
    sim_server server[SIM_SERVERS];
    pl_schedule schedule;
    struct {
        uint32_t slow_ms, failing; /* failing: per thousand */
        bool small_pool;
        int32_t serials;
        sim_checkpoint making;
        sim_checkpoint kept[SIM_KEPT]; /* newest first */
    } disk;
    int32_t turns; /* times somebody joined anew */
    bool has_final;
    float final[SIM_FLOATS]; /* what the chief ended with */
    /* What one process would compute: parameters before each step. */
    float truth[SIM_STEPS + 1][SIM_FLOATS];
} sim;

uint64_t sim_draw(sim *s, uint32_t bound);
void sim_broken(sim *s, const char *format, ...) PL_PRINTF(2, 3);
void sim_trace(const sim *s, const char *format, ...) PL_PRINTF(2, 3);

/* sim_net.c */
void sim_at(sim *s, int64_t after_ns, sim_event event);
bool sim_next(sim *s, sim_event *out);
void sim_net_close(sim *s);
/* Put a message on its way: it may arrive once, twice or never. */
void sim_send(sim *s, sim_event event, const pl_frame *frame,
              const void *payload);

/* sim_check.c */
pl_status sim_truth(sim *s) PL_MUST_CHECK;
/* Sync with all workers: there is one truth. */
bool sim_exact(const sim *s);
void sim_check_compute(sim_worker *w);
void sim_check_staleness(sim_worker *w);
void sim_check_end(sim *s);

/* sim_ledger.c */
/* Look what changed in a server's parameters: whole gradients, each once. */
void sim_note(sim *s, sim_server *server);
/* async: gradient `n` of a worker, which tells it from all others. */
void sim_stamp(const sim *s, int32_t worker, int32_t n, float *grad);
/* What became of a worker's last push, as it was told. */
void sim_note_told(sim_worker *w, bool dropped);
/* These sets, one a server, are the same and have as many gradients of each
 * share as the counts say. */
void sim_check_sets(sim *s, const sim_set *const *sets, const int64_t *counts,
                    const char *what);
void sim_check_ledger(sim *s); /* at the end */
pl_status sim_optim(const sim *s, pl_optim **out,
                    const pl_params *shape) PL_MUST_CHECK;

/* sim_faults.c */
void sim_plan_push_fault(sim *s, int32_t worker);
void sim_freeze_server(sim *s, int32_t index);
void sim_thaw_server(sim *s, int32_t index, int32_t life);
void sim_stick(sim *s, int32_t worker);
void sim_choose(sim *s);
void sim_plan_faults(sim *s);
void sim_plan_save_fault(sim *s);
int32_t sim_node(const sim *s, bool is_ps, int32_t index);
/* What the clock of a node says. */
int64_t sim_time(const sim *s, bool is_ps, int32_t index);
void sim_freeze(sim *s, int32_t worker);
void sim_interrupt(sim *s, int32_t server);
void sim_intrude(sim *s, int32_t index);

/* sim_disk.c */
const char *sim_disk_plan(char text[SIM_PLAN], int32_t serial);
const sim_checkpoint *sim_disk_newest(const sim *s); /* or NULL */
/* The chief makes the folder; returns its serial number. */
int32_t sim_disk_begin(sim *s, int64_t step, const int64_t *counts);
void sim_disk_damage(sim *s);
void sim_disk_done(sim *s, int32_t index, int32_t life);
void sim_disk_die(sim_server *server);
bool sim_disk_save(void *context, const char *plan, size_t bytes);
bool sim_disk_commit(void *context, const pl_ps_part *parts);
bool sim_disk_load(void *context, const char *plan, size_t bytes);
void sim_disk_cancel(void *context);
bool sim_disk_touch(void *context, int64_t first, int64_t count);

/* sim_worker.c */
/* The worker whose gradients this element counts, or -1: it counts none. */
int32_t sim_counter(const sim *s, int64_t element);
void sim_gradient(const sim *s, int32_t worker, int64_t index,
                  const float *params, float *grad);
void sim_worker_start(sim *s, int32_t worker);
void sim_worker_end(sim_worker *w, const char *why);
void sim_worker_receive(sim_worker *w, const sim_event *event);
void sim_worker_tick(sim_worker *w);
void sim_worker_computed(sim_worker *w);

#endif
