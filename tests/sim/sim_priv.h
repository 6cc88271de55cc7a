/* sim_priv.h - the parts of a simulated job.
 *
 * sim.c       servers, the event loop
 * sim_faults.c  settings from the seed, clocks, faults
 * sim_check.c what must hold, on the way and at the end
 * sim_ledger.c  which gradients each server's parameters are the sum of
 * sim_disk.c  checkpoints
 * sim_net.c   events in order of time; messages on their way
 * sim_worker.c  feeds the real worker machine and the real course
 * sim_batch.c  gradients, and the keys of batches */
#ifndef PL_TESTS_SIM_SIM_PRIV_H
#define PL_TESTS_SIM_SIM_PRIV_H

#include "sim/sim.h"
#include "sync/ps/core/core.h"
#include "sync/ps/worker/pulse.h"
#include "sync/ps/worker/worker.h"
#include "train/loop/course.h"

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
#define SIM_BATCHES   4       /* asked for and not used up */
#define SIM_INTRUDER  2000000 /* an invalid peer */
#define SIM_JOIN_MS   60000   /* --join-timeout, --rejoin-timeout */
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
    SIM_STORED,    /* a server's disk has finished something */
    SIM_INTRUDE,   /* a stranger claims a false identity */
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

/* What a task does within an act of its course. */
typedef enum sim_doing {
    SIM_NOTHING, /* or its machine does */
    SIM_DEALING,
    SIM_DEALING_NEXT, /* before the keys of the next batch go out */
    SIM_SKIPPING,
    SIM_TAKING,
    SIM_COMPUTING,
    SIM_COMMITTING,
    SIM_READING,
} sim_doing;

/* A batch: whose share of the data, and which of its batches. */
typedef struct sim_batch {
    int32_t share;
    int64_t position;
} sim_batch;

/* async, ssp: one gradient that a worker pushed. */
typedef struct sim_push {
    sim_batch batch;
    uint32_t generation;
    int32_t life; /* of server 0: a new one may restart its generations */
    bool applied, dropped; /* the worker received this */
} sim_push;

/* A set of pushes: bit n of a worker is its push n, from 1. */
typedef struct sim_set {
    uint8_t bits[SIM_WORKERS][SIM_PUSHES / 8];
} sim_set;

typedef struct sim_worker {
    struct sim *sim;
    int32_t index;
    char name[32];
    int32_t life; /* counts its processes */
    bool alive, frozen, stuck;
    bool was_stuck; /* in any life */
    bool gone;      /* for good: it is not restarted */
    bool ended;     /* it did all that it was to do */
    int32_t boots;
    int64_t booted_ns;
    pl_ps_worker *machine;
    pl_course course;
    pl_act act;
    sim_doing doing;
    bool member; /* and its heartbeats: */
    pl_pulse pulse;
    pl_phase phase;
    int64_t told_step, progress;
    float params[SIM_FLOATS], grad[SIM_FLOATS];
    int32_t turn;  /* counts its joinings */
    bool half;     /* of the gradient is ready */
    bool paused;   /* the job, at least once */
    bool was_lost; /* by hand, the others may have gone on without it */
    int32_t known; /* servers whose last parameters it has read */
    /* What it reads. */
    int64_t next_read;
    sim_batch batch;                /* of the current gradient */
    sim_batch batches[SIM_BATCHES]; /* keyed: those asked for */
    int64_t asked, taken;
    int64_t dealt_step; /* sync: where it last asked who shares the data */
    bool skips;         /* the request is not wanted */
    /* sync: the position that a step's gradient was made from, plus 1; -1:
     * several, of several lives. */
    int64_t positions[SIM_STEPS + 1];
    uint32_t generation; /* of that */
    int32_t told;        /* dense, async: applied, as server 0 says; or 0 */
    int32_t open_push;   /* keyed, async: its outcome is unknown; 0: none... */
    bool unsure;         /* ... or will not be: a share was asked for since */
    /* The outcomes of its gradients, in all lives, as received from the present
     * life of server 0 since the servers last rolled back. */
    uint32_t told_life, told_generation;
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
    bool up;          /* its process runs, or ... */
    bool gave_up;     /* ... ended, as no worker came */
    pl_ps_core *core; /* from the first JOIN of a worker; else NULL */
    int32_t life;
    int64_t began_ns;
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
    bool sum, by_steps, stops_early, evaluator, keyed;
    const char *optim;
    int64_t end_step, own_steps, per_epoch, piece, floats;
    uint32_t loss, doubling; /* per thousand */
    int64_t delay_ns;        /* most */
    sim_cut cut[SIM_WORKERS + 1];
    int32_t cuts;
    sim_clock clock[SIM_NODES];

    bool interrupted; /* from now on no task is restarted */
    bool worker_left; /* ... that was gone */
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
    /* Which workers share the data from a step on, as sent to workers (D1). */
    struct {
        uint32_t generation; /* 0: not requested */
        int32_t life;        /* of server 0 */
        pl_deal deal;
    } deals[SIM_STEPS + 1];
    int32_t turns; /* times a task joined again */
    bool has_final;
    float final[SIM_FLOATS]; /* what the chief ended with */
    /* What one process would compute: parameters before each step. */
    float truth[SIM_STEPS + 1][SIM_FLOATS];
} sim;

uint64_t sim_draw(sim *s, uint32_t bound);
void sim_broken(sim *s, const char *format, ...) PL_PRINTF(2, 3);
void sim_trace(const sim *s, const char *format, ...) PL_PRINTF(2, 3);

/* sim.c */
bool sim_server_runs(const sim_server *server);

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
/* Of server 0, when it let a worker in: it gives incarnations from its life on
 * (members.c). */
uint32_t sim_life_of(pl_ps_client_view view);
void sim_check_compute(sim_worker *w);
void sim_check_staleness(sim_worker *w);
void sim_check_end(sim *s);

/* sim_ledger.c */
/* Look what changed in a server's parameters: whole gradients, each once. */
void sim_note(sim *s, sim_server *server);
/* async: gradient `n` of a worker, which differs from all others. */
void sim_stamp(const sim *s, int32_t worker, int32_t n, float *grad);
/* A commit is done: what became of a push. */
void sim_note_commit(sim_worker *w);
/* All servers have answered: all have it, or none. */
void sim_check_told(sim_worker *w);
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

/* sim_batch.c */
/* The worker whose gradients this element counts, or -1: it counts none. */
int32_t sim_counter(const sim *s, int64_t element);
/* Is this element one of the keys of the batch? */
bool sim_has_key(const sim *s, int32_t worker, sim_batch batch,
                 int64_t element);
pl_status sim_batch_keys(const sim *s, int32_t worker, sim_batch batch,
                         pl_key_batch *out) PL_MUST_CHECK;
void sim_gradient(const sim *s, int32_t worker, int64_t step, int64_t position,
                  const float *params, float *grad);
/* Combine gradients of a step as servers do. */
void sim_combine(const sim *s, int64_t n, int32_t count,
                 const float *const *terms, float *sum);
/* The gradient of the current batch, to w->grad. */
void sim_make_gradient(sim_worker *w);

/* sim_worker.c */
void sim_worker_start(sim *s, int32_t worker);
void sim_worker_end(sim_worker *w, const char *why);
void sim_worker_receive(sim_worker *w, const sim_event *event);
void sim_worker_tick(sim_worker *w);
void sim_worker_computed(sim_worker *w);
pl_ps_client_view sim_view(const sim_worker *w);

#endif
