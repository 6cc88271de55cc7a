/* Which task of which cluster this process is, or that it trains alone:
 * determined from flags, mpirun's environment and TF_CONFIG, in the order of
 * part.h. */
#include "app/task/part.h"

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "sync/allreduce/mpi/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define JOIN_LOCAL_S 60
#define JOIN_HAND_S  600

/* The source of the cluster, in order of precedence. */
typedef enum origin {
    FROM_FILE,
    FROM_COUNTS,
    FROM_MPI,
    FROM_TF_CONFIG,
} origin;

/* Is this one of several ranks that mpirun or srun started? */
static bool is_rank(pl_mpi_place *place)
{
    return pl_mpi_launched(place) && place->size > 1;
}

static origin find_origin(const pl_options *options, const char *tf_config)
{
    const pl_train_options *train = &options->train;
    pl_mpi_place place;
    if (PL_GIVEN(options, cluster))
        return FROM_FILE;
    if (is_rank(&place) && !PL_GIVEN(options, role) &&
        !PL_GIVEN(options, control))
        return FROM_MPI;
    if (PL_GIVEN(options, control) || PL_GIVEN(options, workers) ||
        PL_GIVEN(options, ps) ||
        (PL_GIVEN(options, strategy) &&
         train->strategy == PL_TRAIN_STRATEGY_SINGLE))
        return FROM_COUNTS;
    if (tf_config != NULL && tf_config[0] != '\0')
        return FROM_TF_CONFIG;
    return train->cluster != NULL ? FROM_FILE : FROM_COUNTS; /* recalled */
}

static pl_status check_index(const pl_options *options,
                             const pl_cluster *cluster)
{
    pl_role role = (pl_role)options->train.role;
    int32_t count = role == PL_ROLE_PS ? cluster->ps
                    : role == PL_ROLE_WORKER
                        ? cluster->workers - cluster->named_chief
                        : 1;
    if (count > 1 && !PL_GIVEN(options, index))
        return PL_FAIL(PL_USAGE, "--role %s needs --index N, from 0 to %d",
                       pl_role_text(role), count - 1);
    return PL_OK;
}

/* This process's task, given by --role. */
static pl_status take_role(pl_part *part, const pl_options *options)
{
    PL_TRY(check_index(options, &part->cluster));
    part->kind = PL_PART_TASK;
    part->task = (pl_task) { (pl_role)options->train.role,
                             (int32_t)options->train.index };
    pl_status status = pl_cluster_check(&part->cluster, part->task);
    return status == PL_OK ? PL_OK : pl_context(status, "--role");
}

/* Pairs of flags that exclude each other. */
static pl_status check_pairs(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    if (PL_GIVEN(options, batch) && PL_GIVEN(options, global_batch))
        return PL_FAIL(PL_USAGE, "--batch and --global-batch: give one of "
                                 "them, not both");
    if (train->keys != NULL && train->insecure)
        return PL_FAIL(PL_USAGE, "--keys and --insecure: give one of them, "
                                 "not both");
    if (train->chaos > 0 && train->on_worker_loss == PL_TRAIN_LOSS_ABORT)
        return PL_FAIL(PL_USAGE, "--chaos and --on-worker-loss abort: the "
                                 "first fault would end the job");
    return PL_OK;
}

static bool is_single(const pl_cluster *cluster)
{
    return cluster->workers == 1 && cluster->ps == 0;
}

static pl_status part_from_file(pl_part *part, const pl_options *options)
{
    const pl_train_options *train = &options->train;
    PL_TRY(pl_cluster_read(&part->cluster, train->cluster, train->deploy));
    if (PL_GIVEN(options, role))
        return take_role(part, options);
    if (is_single(&part->cluster))
        return PL_OK;
    return PL_FAIL(PL_USAGE, "--cluster needs --role (chief, worker, ps or "
                             "evaluator) and --index, which say which of its "
                             "tasks this process is");
}

static pl_status part_from_counts(pl_part *part, const pl_options *options)
{
    const pl_train_options *train = &options->train;
    PL_TRY(pl_cluster_local(&part->cluster,
                            train->workers > 0 ? (int32_t)train->workers : 1,
                            (int32_t)train->ps, train->evaluator));
    if (train->control > 0)
        return take_role(part, options);
    if (PL_GIVEN(options, role))
        return PL_FAIL(PL_USAGE, "--role needs --cluster FILE or TF_CONFIG "
                                 "with the addresses of the other tasks; "
                                 "--workers and --ps start all tasks here");
    part->kind = is_single(&part->cluster) ? PL_PART_ALONE : PL_PART_SUPERVISOR;
    return PL_OK;
}

/* A TF_CONFIG without a cluster, or without the task of this process, is
 * ignored: schedulers set it for local runs too. */
static pl_status drop_local_tf_config(const pl_options *options,
                                      const char **tf_config)
{
    bool cluster, task;
    PL_TRY(pl_cluster_tf_config_has(*tf_config, &cluster, &task));
    bool role = PL_GIVEN(options, role);
    if (cluster && (task || role))
        return PL_OK;
    if (role)
        return PL_FAIL(PL_USAGE, "--role needs --cluster FILE or TF_CONFIG "
                                 "with the addresses of the other tasks; "
                                 "TF_CONFIG has no cluster");
    pl_log(PL_LOG_INFO, "TF_CONFIG has no %s: this is a local run",
           cluster ? "task" : "cluster");
    *tf_config = NULL;
    return PL_OK;
}

static pl_status part_from_tf_config(pl_part *part, const pl_options *options,
                                     const char *tf_config)
{
    bool role = PL_GIVEN(options, role);
    PL_TRY(pl_cluster_tf_config(&part->cluster, role ? NULL : &part->task,
                                tf_config));
    part->kind = PL_PART_TASK;
    return role ? take_role(part, options) : PL_OK;
}

/* All ranks train; the first is the chief and the only one that prints. */
static pl_status part_from_mpi(pl_part *part, pl_options *options)
{
    pl_train_options *train = &options->train;
    pl_mpi_place place;
    if (!is_rank(&place))
        return PL_OK;
    if (train->ps > 0 || train->strategy == PL_TRAIN_STRATEGY_PS)
        return PL_FAIL(PL_USAGE,
                       "--strategy ps: mpirun started this process as rank %d "
                       "of %d, and ranks have no parameter server; leave out "
                       "mpirun, or use --strategy allreduce",
                       place.rank, place.size);
    if (PL_GIVEN(options, workers) && train->workers != place.size)
        return PL_FAIL(PL_USAGE,
                       "--workers %lld: mpirun has started %d ranks; leave "
                       "out --workers",
                       (long long)train->workers, place.size);
    PL_TRY(pl_cluster_local(&part->cluster, place.size, 0, false));
    part->kind = PL_PART_TASK;
    part->task = pl_cluster_task(&part->cluster, place.rank);
    part->beside = place.local;
    if (place.rank > 0)
        train->quiet = true;
    return PL_OK;
}

static pl_status find_part(pl_part *part, pl_options *options,
                           const char *tf_config)
{
    pl_train_options *train = &options->train;
    if (find_origin(options, tf_config) == FROM_TF_CONFIG)
        PL_TRY(drop_local_tf_config(options, &tf_config));
    switch (find_origin(options, tf_config)) {
    case FROM_FILE:
        PL_TRY(part_from_file(part, options));
        break;
    case FROM_COUNTS:
        PL_TRY(part_from_counts(part, options));
        break;
    case FROM_MPI:
        PL_TRY(part_from_mpi(part, options));
        break;
    case FROM_TF_CONFIG:
        PL_TRY(part_from_tf_config(part, options, tf_config));
        train->cluster = train->deploy = NULL; /* of a resumed run's record */
        if (!PL_GIVEN(options, strategy))
            train->strategy = -1;
        if (!PL_GIVEN(options, replicas_to_aggregate))
            train->replicas_to_aggregate = 0;
        break;
    }
    if (is_single(&part->cluster) && part->task.role != PL_ROLE_EVALUATOR)
        part->kind = PL_PART_ALONE;
    bool by_hand =
        part->kind == PL_PART_TASK && train->control == 0 && part->beside == 0;
    if (train->join_timeout == 0)
        train->join_timeout = by_hand ? JOIN_HAND_S : JOIN_LOCAL_S;
    return PL_OK;
}

/* The way the tasks are started, for pl_options_check. */
static const char *start_of(const pl_part *part, const pl_options *options)
{
    bool by_hand = part->kind == PL_PART_TASK && options->train.control == 0;
    return part->kind == PL_PART_ALONE ? "alone" : by_hand ? "hand" : "here";
}

/* Can mpirun start workers here? */
static bool has_mpirun(void)
{
    const char *at = getenv("PATH");
    char file[4096];
    while (at != NULL && *at != '\0') {
        int length = (int)strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/mpirun", length, at);
        if (access(file, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* Ranks of a launcher use MPI, and so do workers started here if mpirun exists;
 * workers started by hand have only the ring.  If MPI was not requested and is
 * not complete, the ring is used instead. */
static pl_status choose_engine(const pl_part *part, pl_options *options)
{
    pl_train_options *train = &options->train;
    bool given = PL_GIVEN(options, engine);
    bool rank = part->beside > 0;
    bool by_hand = part->kind == PL_PART_TASK && !rank;
    if (given && rank && train->engine == PL_TRAIN_ENGINE_RING)
        return PL_FAIL(PL_USAGE, "--engine ring: mpirun started this process; "
                                 "leave out --engine, or start the workers "
                                 "with --cluster or TF_CONFIG");
    if (given && by_hand && train->engine == PL_TRAIN_ENGINE_MPI)
        return PL_FAIL(PL_USAGE, "--engine mpi: start the workers with "
                                 "mpirun, or with --workers N on this machine");
    if (by_hand)
        train->engine = PL_TRAIN_ENGINE_RING;
    else if (rank)
        train->engine = PL_TRAIN_ENGINE_MPI;
    else if (train->engine < 0)
        train->engine = !pl_options_codec_needs_ring(train) && has_mpirun() &&
                                pl_mpi_check() == PL_OK
                            ? PL_TRAIN_ENGINE_MPI
                            : PL_TRAIN_ENGINE_RING;
    /* A missing MPI would be missing at the next start too. */
    if (train->engine != PL_TRAIN_ENGINE_MPI || pl_mpi_check() == PL_OK)
        return PL_OK;
    const char *why = pl_error_message();
    return PL_FAIL(PL_USAGE, "--engine mpi: %.*s", (int)pl_error_words(why),
                   why);
}

static pl_status choose_allreduce(const pl_part *part, pl_options *options)
{
    const pl_cluster *cluster = &part->cluster;
    pl_train_options *train = &options->train;
    if (cluster->ps > 0)
        return PL_FAIL(PL_USAGE,
                       "--strategy allreduce has no parameter server, but "
                       "there are %d; leave out --ps",
                       cluster->ps);
    if (train->min_workers > cluster->workers)
        return PL_FAIL(PL_USAGE, "--min-workers %lld: there are only %d",
                       (long long)train->min_workers, cluster->workers);
    if (part->kind == PL_PART_TASK && part->task.role == PL_ROLE_EVALUATOR)
        return PL_FAIL(PL_USAGE, "an evaluator needs a parameter server, and "
                                 "the cluster has none");
    if (part->kind != PL_PART_ALONE)
        return choose_engine(part, options);
    if (train->engine == PL_TRAIN_ENGINE_MPI && part->beside == 0)
        return PL_FAIL(PL_USAGE, "--engine mpi: one worker exchanges no "
                                 "gradients; leave it out, or add --workers N");
    if (train->engine < 0) /* one worker: nothing to sum */
        train->engine = PL_TRAIN_ENGINE_RING;
    return PL_OK;
}

/* Flags that a sparse model does not support with other processes. */
static pl_status check_sparse(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    if (train->strategy == PL_TRAIN_STRATEGY_SINGLE)
        return PL_OK;
    if (train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE)
        return PL_FAIL(PL_USAGE,
                       "--strategy allreduce: a batch needs only a few "
                       "thousand of the millions of weights of the model %s; "
                       "use parameter servers: --ps N",
                       options->model->name);
    if (train->micro_batches > 1)
        return PL_FAIL(PL_USAGE,
                       "--micro-batches %lld: not supported by the model %s "
                       "with parameter servers; give a larger --batch",
                       (long long)train->micro_batches, options->model->name);
    return PL_OK;
}

static pl_status choose_strategy(const pl_part *part, pl_options *options)
{
    pl_train_options *train = &options->train;
    const pl_cluster *cluster = &part->cluster;
    bool sums = cluster->workers > 1 || PL_GIVEN(options, engine);
    if (train->strategy < 0)
        train->strategy = cluster->ps > 0 ? PL_TRAIN_STRATEGY_PS
                          : sums          ? PL_TRAIN_STRATEGY_ALLREDUCE
                                          : PL_TRAIN_STRATEGY_SINGLE;
    if (options->model->sparse)
        PL_TRY(check_sparse(options));
    switch ((pl_train_strategy)train->strategy) {
    case PL_TRAIN_STRATEGY_ALLREDUCE:
        return choose_allreduce(part, options);
    case PL_TRAIN_STRATEGY_PS:
        if (cluster->ps == 0)
            return PL_FAIL(PL_USAGE, "--strategy ps needs a parameter server: "
                                     "add --ps N");
        return PL_OK;
    case PL_TRAIN_STRATEGY_SINGLE:
        if (cluster->ps > 0 || cluster->workers > 1)
            return PL_FAIL(PL_USAGE,
                           "--strategy single is one process, but there are "
                           "%d workers and %d parameter servers",
                           cluster->workers, cluster->ps);
        if (part->kind == PL_PART_TASK) /* the evaluator */
            return PL_FAIL(PL_USAGE, "an evaluator needs a parameter server, "
                                     "and the cluster has none");
        return PL_OK;
    }
    return PL_OK;
}

/* The limit on gradients of a step, and the reaction to a lost worker. */
static pl_status fill_mode(pl_options *options)
{
    pl_train_options *train = &options->train;
    if (train->on_worker_loss < 0)
        train->on_worker_loss = train->mode == PL_TRAIN_MODE_SYNC
                                    ? PL_TRAIN_LOSS_WAIT
                                    : PL_TRAIN_LOSS_CONTINUE;
    if (train->replicas_to_aggregate > train->workers) {
        if (PL_GIVEN(options, replicas_to_aggregate))
            return PL_FAIL(PL_USAGE,
                           "--replicas-to-aggregate %lld: there are only %lld "
                           "workers",
                           (long long)train->replicas_to_aggregate,
                           (long long)train->workers);
        train->replicas_to_aggregate = 0; /* of a run with more workers */
    }
    if (train->replicas_to_aggregate == 0)
        train->replicas_to_aggregate = train->workers;
    return PL_OK;
}

static pl_status divide_batch(pl_train_options *train)
{
    if (train->global_batch == 0)
        return PL_OK;
    if (train->global_batch % train->workers != 0)
        return PL_FAIL(
            PL_USAGE, "--global-batch %lld cannot be divided by %lld workers",
            (long long)train->global_batch, (long long)train->workers);
    int64_t batch = train->global_batch / train->workers;
    if (train->batch != 0 && train->batch != batch)
        return PL_FAIL(PL_USAGE,
                       "--global-batch %lld: the run was started with %lld "
                       "examples a worker, that would be %lld; resume with "
                       "the same, or start a new --run",
                       (long long)train->global_batch, (long long)train->batch,
                       (long long)batch);
    train->batch = batch;
    return PL_OK;
}

/* This process's address; NULL if it has none. */
static const char *own_address(const pl_part *part)
{
    const pl_cluster *cluster = &part->cluster;
    int32_t worker = pl_cluster_worker(cluster, part->task);
    if (part->task.role == PL_ROLE_PS)
        return cluster->ps_address[part->task.index];
    return worker < 0 || cluster->worker_address == NULL
               ? NULL
               : cluster->worker_address[worker];
}

/* The number of workers that share this machine's cores, at least one. */
static int32_t workers_here(const pl_part *part)
{
    const pl_cluster *cluster = &part->cluster;
    if (part->kind == PL_PART_ALONE)
        return 1;
    if (part->beside > 0)
        return part->beside;
    if (cluster->worker_address == NULL)
        return cluster->workers > 0 ? cluster->workers : 1; /* all of them */
    const char *own = own_address(part);
    if (own == NULL)
        return 1;
    size_t host = (size_t)(strrchr(own, ':') - own) + 1; /* with the colon */
    int32_t count = 0;
    for (int32_t w = 0; w < cluster->workers; w++)
        count += strncasecmp(cluster->worker_address[w], own, host) == 0;
    return count > 0 ? count : 1;
}

static pl_status fill_in(pl_part *part, pl_options *options,
                         const char *tf_config)
{
    pl_train_options *train = &options->train;
    PL_TRY(pl_options_check(options, NULL));
    PL_TRY(find_part(part, options, tf_config));
    PL_TRY(choose_strategy(part, options));
    PL_TRY(pl_options_check(options, start_of(part, options)));
    PL_TRY(pl_options_check_codec(options));
    PL_TRY(check_pairs(options));
    train->workers = part->cluster.workers;
    train->ps = part->cluster.ps;
    PL_TRY(fill_mode(options));
    PL_TRY(divide_batch(train));
    int32_t here = workers_here(part);
    if (train->threads == 0)
        train->threads =
            pl_thread_cores() > here ? pl_thread_cores() / here : 1;
    return PL_OK;
}

pl_status pl_part_init(pl_part *part, pl_options *options,
                       const char *tf_config)
{
    *part = (pl_part) { .kind = PL_PART_ALONE };
    pl_status status = fill_in(part, options, tf_config);
    if (status != PL_OK)
        pl_part_close(part);
    return status;
}

void pl_part_close(pl_part *part)
{
    pl_cluster_close(&part->cluster);
}
