#include "base/thread.h"
#include "bench.h"
#include "data/synthetic_sparse.h"
#include "nn/models.h"
#include "sync/single/single.h"
#include "train/compute/compute.h"

#define EXAMPLES      200000
#define HOGWILD_BATCH 20000
#define GATHER_ROWS   1000 /* of one item */

/* Everything a step needs, run like the training loop. */
typedef struct sparse_run {
    pl_dataset *set;
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim;
    pl_sync *sync;
    pl_schedule schedule;
    pl_reader *reader;
    pl_compute *compute;
    bool hogwild;
    int64_t step;
    float sums[EXAMPLES / GATHER_ROWS]; /* of gathering only */
    pl_status status;
} sparse_run;

/* The limit: add up the weights of all non-zeros, in file order. */
static void gather_item(void *arg, int item, int thread)
{
    (void)thread;
    sparse_run *r = arg;
    const float *weights = pl_params_data(r->network->params, 0);
    int64_t first = (int64_t)item * GATHER_ROWS;
    float sum = 0;
    for (int64_t j = r->set->row_start[first];
         j < r->set->row_start[first + GATHER_ROWS]; j++)
        sum += weights[r->set->ids[j]];
    r->sums[item] = sum;
}

static void run_gather(void *arg, int64_t times)
{
    sparse_run *r = arg;
    for (int64_t i = 0; i < times; i++)
        pl_pool_run(r->pool, EXAMPLES / GATHER_ROWS, gather_item, r);
    measure_keep(r->sums);
}

static pl_status hand_over(sparse_run *r)
{
    for (int p = 1; p >= 0; p--) {
        const pl_keys *keys;
        const float *grad = pl_compute_grad(r->compute, p, &keys);
        PL_TRY(r->sync->ops->ready(r->sync, p, grad, keys));
    }
    return PL_OK;
}

static pl_status one_step(sparse_run *r)
{
    pl_batch batch;
    pl_commit committed;
    PL_TRY(pl_reader_next(r->reader, &batch));
    PL_TRY(pl_compute_prepare(r->compute, &batch));
    pl_compute_gradient(r->compute, &batch, ++r->step, 0,
                        r->hogwild ? r->sync : NULL);
    if (!r->hogwild)
        PL_TRY(hand_over(r));
    return r->sync->ops->commit(r->sync, &committed);
}

static void run_steps(void *arg, int64_t times)
{
    sparse_run *r = arg;
    for (int64_t i = 0; i < times && r->status == PL_OK; i++)
        r->status = one_step(r);
}

static void put_row(bench *b, const sparse_run *r, const char *what,
                    int64_t examples, measurement m, double gather_ns)
{
    double rows = (double)examples;
    table_text(&b->table, "what", what);
    table_count(&b->table, "batch", examples);
    table_count(&b->table, "threads", pl_pool_threads(r->pool));
    table_measured(
        &b->table, "ns per example",
        (measurement) { m.median / rows, m.least / rows, m.most / rows });
    table_number(&b->table, "examples/s", 1e9 * rows / m.median);
    table_share(&b->table, "share of gathering", gather_ns, m.median / rows);
    table_row_end(&b->table);
}

static double measure_gather(bench *b, sparse_run *r)
{
    measurement m = measure(&(measure_opts) {
        .run = run_gather, .arg = r, .window_s = b->window_s });
    return m.median / EXAMPLES;
}

/* Train in batches of `batch`, compared with gathering at the same time. */
static pl_status bench_batch(bench *b, sparse_run *r, int64_t batch,
                             const pl_hogwild_opts *hogwild)
{
    r->hogwild = hogwild != NULL;
    double gather_ns = measure_gather(b, r);
    PL_TRY(pl_reader_new(&r->reader, r->set,
                         &(pl_reader_opts) { .batch = batch, .seed = 1 }));
    pl_status status = pl_compute_new(
        &r->compute, &(pl_compute_opts) { .network = r->network,
                                          .batch = batch,
                                          .pool = r->pool,
                                          .hogwild = hogwild,
                                          .any_key_order = true });
    if (status == PL_OK) {
        measurement m = measure(&(measure_opts) {
            .run = run_steps, .arg = r, .window_s = b->window_s });
        put_row(b, r, r->hogwild ? "hogwild" : r->optim->ops->name, batch, m,
                gather_ns);
        status = r->status;
    }
    pl_compute_free(r->compute);
    pl_reader_free(r->reader);
    return status;
}

static pl_status bench_optimizer(bench *b, sparse_run *r, const char *name)
{
    pl_hogwild_opts hogwild = { .schedule = &r->schedule };
    bool sgd = name[0] == 's';
    PL_TRY(pl_optim_new(&r->optim, &(pl_optim_opts) { .name = name },
                        r->network->params, pl_kernels_best()));
    pl_status status = pl_single_new(
        &r->sync, &(pl_single_opts) { .params = r->network->params,
                                      .optim = r->optim,
                                      .schedule = &r->schedule,
                                      .pool = r->pool });
    if (status == PL_OK)
        status = bench_batch(b, r, 100, NULL);
    if (status == PL_OK)
        status = bench_batch(b, r, 1000, NULL);
    if (status == PL_OK && sgd)
        status = bench_batch(b, r, HOGWILD_BATCH, &hogwild);
    if (r->sync != NULL)
        r->sync->ops->free(r->sync);
    pl_optim_free(r->optim);
    r->sync = NULL;
    r->optim = NULL;
    return status;
}

static pl_status bench_threads(bench *b, sparse_run *r, int threads)
{
    static const char *const optimizers[] = { "sgd", "adagrad", "ftrl" };
    PL_TRY(pl_pool_new(&r->pool, threads));
    pl_status status = PL_OK;
    for (size_t i = 0; i < 3 && status == PL_OK; i++)
        status = bench_optimizer(b, r, optimizers[i]);
    pl_pool_free(r->pool);
    return status;
}

pl_status bench_sparse(bench *b)
{
    sparse_run r;
    r = (sparse_run) { .schedule = { .lr = 0.02 } };
    PL_TRY(pl_synthetic_sparse_open(
        &r.set, PL_SPLIT_TRAIN, &(pl_source_opts) { .examples = EXAMPLES }));
    pl_status status = pl_network_new(
        &r.network, &pl_model_sparse,
        &(pl_network_opts) { .example = r.set->shape, .classes = 2 });
    table_begin(&b->table, "sparse", "Sparse logistic regression",
                "33,762,578 features, 39 non-zeros an example by Zipf's law, "
                "in memory, shuffled.\nGathering adds up the weights of the "
                "same non-zeros in file order, measured just before.");
    if (status == PL_OK)
        status = bench_threads(b, &r, 1);
    if (status == PL_OK && b->threads > 1)
        status = bench_threads(b, &r, b->threads);
    table_end(&b->table);
    pl_network_free(r.network);
    pl_dataset_free(r.set);
    return status;
}
