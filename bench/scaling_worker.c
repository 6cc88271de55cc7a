/* scaling_worker - one worker of bench/scaling.py.
 *
 * usage: scaling_worker measure MODEL BATCH
 *        scaling_worker run MODEL PROFILE STEPS LOCAL_STEPS CODEC INDEX
 *                           ADDRESS...
 *
 * `measure` trains on one thread, and prints when in a step each gradient and
 * the whole step is done, and how long it takes to form the gradient of a dense
 * layer from its factors.  `run` is a worker of an all-reduce job that waits
 * for that time instead of computing: the sums, the status exchanges and the
 * updates are those of `paceline train --engine ring`, with --codec auto or
 * plain.  So a machine can simulate more hosts than it has cores. */
#include "sync/allreduce/allreduce.h"
#include "sync/allreduce/ring/engine.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "data/source.h"
#include "net/transport.h"
#include "nn/models.h"
#include "sync/allreduce/factors.h"
#include "sync/single/single.h"
#include "train/compute/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define MEASURE_NS   INT64_C(3000000000)
#define LEAST_STEPS  5
#define WARM_STEPS   3
#define PARAMS_MOST  64
#define EXAMPLES     2048
#define JOIN_MS      60000
#define HEARTBEAT_MS 20000 /* more processes than cores */

/* Nanoseconds since the start of a step; the least of all steps. */
typedef struct profile {
    int params;
    int64_t ready_ns[PARAMS_MOST];   /* of each gradient */
    int64_t compute_ns;              /* of all gradients */
    int64_t step_ns;                 /* of the update */
    int64_t product_ns[PARAMS_MOST]; /* from the factors of another worker */
    int64_t added_ns[PARAMS_MOST];   /* ... and added in place; 0: not
                                        possible */
    int64_t batch;
} profile;

typedef struct rig {
    pl_dataset *set;
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim;
    pl_schedule schedule;
    /* measure */
    pl_reader *reader;
    pl_compute *compute;
    pl_sync *alone;
    profile now, best;
    int64_t begin_ns;
    pl_factors *factors; /* also of run */
    /* run */
    pl_cluster cluster;
    pl_endpoint *listen;
    pl_collective *ring;
    pl_allreduce_sync *together;
} rig;

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static pl_status open_rig(rig *r, const char *name)
{
    bool lenet = strcmp(name, "lenet") == 0;
    const pl_model *model = lenet ? &pl_model_lenet : &pl_model_alexnet;
    pl_source_opts source = { .examples = EXAMPLES, .threads = 1 };
    if (!lenet && strcmp(name, "alexnet") != 0)
        return PL_FAIL(PL_USAGE, "model %s: lenet or alexnet", name);
    if (!lenet) {
        source.shape = PL_SHAPE(3, 224, 224);
        source.classes = 1000;
        source.examples = 64;
    }
    r->schedule = (pl_schedule) { .lr = 0.001 };
    PL_TRY(pl_source_open(&r->set, lenet ? "digits" : "synthetic",
                          PL_SPLIT_TRAIN, &source));
    PL_TRY(pl_network_new(&r->network, model,
                          &(pl_network_opts) { .example = r->set->shape,
                                               .classes = r->set->classes,
                                               .seed = 1 }));
    PL_TRY(pl_pool_new(&r->pool, 1));
    return pl_optim_new(&r->optim, &(pl_optim_opts) { .name = "sgd" },
                        r->network->params, pl_kernels_best());
}

static void close_rig(rig *r)
{
    if (r->together != NULL)
        pl_allreduce_sync_base(r->together)
            ->ops->free(pl_allreduce_sync_base(r->together));
    if (r->ring != NULL)
        r->ring->ops->free(r->ring);
    pl_endpoint_free(r->listen, JOIN_MS);
    if (r->alone != NULL)
        r->alone->ops->free(r->alone);
    pl_compute_free(r->compute);
    pl_reader_free(r->reader);
    pl_factors_free(r->factors);
    pl_optim_free(r->optim);
    pl_pool_free(r->pool);
    pl_network_free(r->network);
    pl_dataset_free(r->set);
}

/* --- measure ---------------------------------------------------------- */

static pl_status need(void *context, int param)
{
    (void)context, (void)param;
    return PL_OK;
}

static pl_status note_ready(void *context, int param)
{
    rig *r = context;
    r->now.ready_ns[param] = now_ns() - r->begin_ns;
    return PL_OK;
}

/* As the training loop does it. */
static pl_status measure_step(rig *r, int64_t step)
{
    pl_exec_hooks hooks = { need, note_ready, r, PL_OK };
    pl_commit committed;
    pl_batch batch;
    double loss;
    int count = pl_params_count(r->network->params);
    r->begin_ns = now_ns();
    PL_TRY(pl_reader_next(r->reader, &batch));
    if (pl_compute_shards(r->compute) == 1)
        PL_TRY(pl_compute_stream(r->compute, &batch, step, 0, &hooks, &loss));
    else
        (void)pl_compute_gradient(r->compute, &batch, step, 0, NULL);
    r->now.compute_ns = now_ns() - r->begin_ns;
    for (int p = count - 1; p >= 0; p--) {
        const pl_keys *keys;
        const float *grad = pl_compute_grad(r->compute, p, &keys);
        if (pl_compute_shards(r->compute) > 1)
            PL_TRY(note_ready(r, p));
        PL_TRY(r->alone->ops->ready(r->alone, p, grad, keys));
    }
    PL_TRY(r->alone->ops->commit(r->alone, &committed));
    r->now.step_ns = now_ns() - r->begin_ns;
    return PL_OK;
}

/* The fastest step, to exclude other load on the machine. */
static pl_status measure_steps(rig *r)
{
    int64_t begin = now_ns();
    for (int64_t step = 1; step <= LEAST_STEPS || now_ns() - begin < MEASURE_NS;
         step++) {
        PL_TRY(measure_step(r, step));
        if (step == 1 || r->now.step_ns < r->best.step_ns)
            r->best = r->now;
    }
    return PL_OK;
}

/* The fastest of several, as above; 0: it cannot be added in place. */
static int64_t time_product(const pl_factors *factors, int layer, bool add,
                            float *room, float *product)
{
    int64_t best = 0;
    for (int try = 0; try < LEAST_STEPS; try++) {
        int64_t begin = now_ns();
        if (!add)
            factors->multiply(factors->source, layer, factors->own, room,
                              product);
        else if (!factors->multiply_add(factors->source, layer, factors->own,
                                        product))
            return 0;
        int64_t took = now_ns() - begin;
        if (try == 0 || took < best)
            best = took;
    }
    return best;
}

static pl_status measure_products(rig *r)
{
    const pl_factors *factors = r->factors;
    float *room, *product;
    size_t most = (size_t)pl_params_block_count(r->network->params);
    if (factors == NULL)
        return PL_OK;
    PL_TRY(PL_NEW_ALIGNED(room, most));
    pl_status status = PL_NEW_ALIGNED(product, most);
    for (int i = 0; status == PL_OK && i < factors->count; i++) {
        int param = factors->layers[i].param;
        r->best.product_ns[param] =
            time_product(factors, i, false, room, product);
        r->best.added_ns[param] = time_product(factors, i, true, room, product);
    }
    pl_mem_free(room);
    if (status == PL_OK)
        pl_mem_free(product);
    return status;
}

static void print_list(const char *name, const int64_t *list, int count)
{
    for (int p = 0; p < count; p++)
        printf("%s%s%s%lld", p > 0 ? ", " : ", \"", p > 0 ? "" : name,
               p > 0 ? "" : "\": [", (long long)list[p]);
    printf("]");
}

static pl_status measure(rig *r, int64_t batch)
{
    int64_t floats[PARAMS_MOST];
    int count = pl_params_count(r->network->params);
    if (count > PARAMS_MOST)
        return PL_FAIL(PL_USAGE, "a model of %d parameters", count);
    /* Larger jobs choose among these. */
    PL_TRY(pl_factors_new(&r->factors, r->network, batch, 2));
    PL_TRY(pl_reader_new(&r->reader, r->set,
                         &(pl_reader_opts) { .batch = batch, .seed = 1 }));
    PL_TRY(
        pl_compute_new(&r->compute, &(pl_compute_opts) { .network = r->network,
                                                         .batch = batch,
                                                         .factors = r->factors,
                                                         .pool = r->pool }));
    PL_TRY(pl_single_new(&r->alone,
                         &(pl_single_opts) { .params = r->network->params,
                                             .optim = r->optim,
                                             .schedule = &r->schedule,
                                             .pool = r->pool }));
    PL_TRY(measure_steps(r));
    PL_TRY(measure_products(r));
    for (int p = 0; p < count; p++)
        floats[p] = pl_params_get(r->network->params, p)->count;
    printf("{\"batch\": %lld, \"step_ns\": %lld, \"compute_ns\": %lld",
           (long long)batch, (long long)r->best.step_ns,
           (long long)r->best.compute_ns);
    print_list("ready_ns", r->best.ready_ns, count);
    print_list("product_ns", r->best.product_ns, count);
    print_list("added_ns", r->best.added_ns, count);
    print_list("floats", floats, count);
    printf("}\n");
    return PL_OK;
}

/* --- run -------------------------------------------------------------- */

static pl_status read_list(const pl_json *json, const char *name, int count,
                           int64_t *out)
{
    const pl_json *list;
    PL_TRY(pl_json_get_array(json, name, &list));
    if (pl_json_length(list) != (size_t)count || count > PARAMS_MOST)
        return PL_FAIL(PL_USAGE, "the profile is of another model");
    for (int i = 0; i < count; i++)
        PL_TRY(pl_json_int_at(list, (size_t)i, 0, INT64_MAX, &out[i]));
    return PL_OK;
}

static pl_status read_profile(const rig *r, const char *path, profile *out)
{
    pl_json *json;
    pl_status status;
    out->params = pl_params_count(r->network->params);
    PL_TRY(pl_json_read_file(&json, path, 1 << 16));
    PL_TRY_OUT(status, pl_json_get_int(json, "compute_ns", 0, INT64_MAX,
                                       &out->compute_ns));
    PL_TRY_OUT(status,
               pl_json_get_int(json, "batch", 1, INT64_MAX, &out->batch));
    PL_TRY_OUT(status, read_list(json, "ready_ns", out->params, out->ready_ns));
    PL_TRY_OUT(status,
               read_list(json, "product_ns", out->params, out->product_ns));
    PL_TRY_OUT(status, read_list(json, "added_ns", out->params, out->added_ns));
out:
    pl_json_free(json);
    return status;
}

static void wait_until(int64_t at_ns)
{
    struct timespec at = { .tv_sec = at_ns / 1000000000,
                           .tv_nsec = at_ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        continue;
}

/* A gradient may be sent once those of all later parameters were sent. */
static pl_status run_step(const rig *r, const profile *p, pl_sync *sync)
{
    pl_commit committed;
    int64_t begin = now_ns();
    const float *grads = sync->ops->gradient(sync);
    for (int i = p->params - 1; i >= 0; i--) {
        const pl_params_item *item = pl_params_get(r->network->params, i);
        wait_until(begin + p->ready_ns[i]);
        PL_TRY(sync->ops->ready(sync, i, grads + item->offset, NULL));
    }
    wait_until(begin + p->compute_ns);
    return sync->ops->commit(sync, &committed);
}

typedef struct pacing {
    int64_t steps, local_steps;
    bool plain;
} pacing;

/* Wait for the time of one product; the numbers do not matter. */
static void wait_product(const void *source, int layer, const float *block,
                         float *room, float *out)
{
    const rig *r = source;
    (void)block, (void)room, (void)out;
    wait_until(now_ns() + r->best.product_ns[r->factors->layers[layer].param]);
}

static bool wait_added(const void *source, int layer, const float *block,
                       float *sum)
{
    const rig *r = source;
    int64_t added = r->best.added_ns[r->factors->layers[layer].param];
    (void)block, (void)sum;
    wait_until(now_ns() + added);
    return added > 0;
}

/* The gradients that may be sent as factors. */
static pl_status open_factors(rig *r, const pacing *pace)
{
    if (pace->plain || pace->local_steps > 1)
        return PL_OK;
    PL_TRY(pl_factors_new(&r->factors, r->network, r->best.batch,
                          r->cluster.workers));
    if (r->factors == NULL)
        return PL_OK;
    memset(r->factors->own, 0, (size_t)r->factors->floats * sizeof(float));
    r->factors->own[0] = 1;
    r->factors->multiply = wait_product;
    r->factors->multiply_add = wait_added;
    r->factors->source = r;
    return PL_OK;
}

/* A mean of parameters leaves data there that is not a gradient. */
static void clear_gradient(const rig *r, pl_sync *sync)
{
    memset(sync->ops->gradient(sync), 0,
           (size_t)pl_params_block_count(r->network->params) * sizeof(float));
}

static pl_status join_ring(rig *r, int32_t index, const pacing *pace)
{
    PL_TRY(pl_endpoint_listen(
        &r->listen,
        &(pl_endpoint_opts) { .address = r->cluster.worker_address[index],
                              .name = "bench" }));
    PL_TRY(open_factors(r, pace));
    int64_t floats = pl_params_block_count(r->network->params);
    PL_TRY(pl_ring_engine_new(
        &r->ring, &(pl_ring_engine_opts) {
                      .cluster = &r->cluster,
                      .worker = index,
                      .listen = r->listen,
                      .floats = floats,
                      .extra = pl_factor_step_extra(
                          r->factors, r->network->params, r->cluster.workers,
                          pl_ring_engine_grain(floats)),
                      .transport = &pl_transport_tcp,
                      .heartbeat_ms = HEARTBEAT_MS,
                      .join_ms = JOIN_MS,
                      .kernels = pl_kernels_best(),
                  }));
    PL_TRY(pl_allreduce_sync_new(
        &r->together,
        &(pl_allreduce_sync_opts) { .collective = r->ring,
                                    .worker = index,
                                    .workers = r->cluster.workers,
                                    .local_steps = pace->local_steps,
                                    .outer_lr = 1,
                                    .end_step = WARM_STEPS + pace->steps,
                                    .params = r->network->params,
                                    .optim = r->optim,
                                    .factors = r->factors,
                                    .schedule = &r->schedule,
                                    .pool = r->pool }));
    pl_sync *sync = pl_allreduce_sync_base(r->together);
    pl_standing at = { 0 };
    PL_TRY(sync->ops->join(sync, &at));
    clear_gradient(r, sync);
    return PL_OK;
}

static pl_status run(rig *r, const char *path, const pacing *pace,
                     int32_t index)
{
    int64_t steps = pace->steps, before = 0;
    PL_TRY(read_profile(r, path, &r->best));
    PL_TRY(join_ring(r, index, pace));
    pl_sync *sync = pl_allreduce_sync_base(r->together);
    int64_t begin = 0;
    for (int64_t step = -WARM_STEPS; step < steps; step++) {
        if (step == 0) {
            begin = now_ns();
            before = r->ring->ops->look(r->ring).sent_bytes;
        }
        PL_TRY(run_step(r, &r->best, sync));
        if (pace->local_steps > 1)
            clear_gradient(r, sync);
    }
    double ns = (double)(now_ns() - begin) / (double)steps;
    pl_allreduce_sync_view view = pl_allreduce_sync_look(r->together);
    int64_t sent = r->ring->ops->look(r->ring).sent_bytes - before;
    printf("{\"step_ns\": %.0f, \"bucket_bytes\": %lld, "
           "\"sent_bytes\": %lld, \"factors\": %s}\n",
           ns, (long long)view.bucket_bytes, (long long)(sent / steps),
           view.factors ? "true" : "false");
    return sync->ops->finish(sync);
}

static pl_status obey(rig *r, int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "measure") == 0) {
        PL_TRY(open_rig(r, argv[2]));
        return measure(r, atoll(argv[3]));
    }
    if (argc < 10 || strcmp(argv[1], "run") != 0)
        return PL_FAIL(PL_USAGE, "see bench/scaling.py, which runs this");
    pacing pace = { .steps = atoll(argv[4]),
                    .local_steps = atoll(argv[5]),
                    .plain = strcmp(argv[6], "plain") == 0 };
    int32_t index = atoi(argv[7]);
    r->cluster =
        (pl_cluster) { .workers = argc - 8, .worker_address = argv + 8 };
    if (index < 0 || index >= r->cluster.workers)
        return PL_FAIL(PL_USAGE, "there is no worker %s", argv[7]);
    PL_TRY(open_rig(r, argv[2]));
    return run(r, argv[3], &pace, index);
}

int main(int argc, char **argv)
{
    rig r = { .set = NULL };
    pl_mem_keep_freed();
    (void)!prctl(PR_SET_TIMERSLACK, 1);
    pl_status status = obey(&r, argc, argv);
    if (status != PL_OK)
        fprintf(stderr, "scaling_worker: %s\n", pl_error_message());
    close_rig(&r);
    return status == PL_OK ? 0 : 1;
}
