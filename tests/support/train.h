/* train.h - a small model with its data, for tests of training.
 *
 * A rig holds everything a loop needs; two rigs of the same options are the
 * same, bit for bit. */
#ifndef PL_TESTS_TRAIN_H
#define PL_TESTS_TRAIN_H

#include "base/record/metric.h"
#include "data/synthetic.h"
#include "data/synthetic_sparse.h"
#include "nn/models.h"
#include "support/unit.h"
#include "sync/single/single.h"
#include "train/compute/compute.h"
#include "train/loop/loop.h"

/* Two dense layers with a tanh between them. */
static inline pl_status two_layers_build(pl_build *b)
{
    pl_node *hidden = pl_tanh(pl_dense(b, "hidden", b->input, 24));
    b->logits = pl_dense(b, "output", hidden, b->classes);
    return PL_OK;
}

static const pl_model two_layers = {
    .name = "two_layers",
    .help = "two dense layers",
    .build = two_layers_build,
};

typedef struct rig_opts {
    const pl_model *model;     /* default: two_layers */
    int64_t side;              /* examples are [side, side]; default 8 */
    int32_t classes;           /* default 4 */
    int64_t examples;          /* default 512 */
    int64_t features;          /* of sparse models; default 5000 */
    int threads;               /* default 1 */
    const pl_kernels *kernels; /* default: the best */
    pl_optim_opts optim;       /* default: sgd */
    double lr;                 /* default 0.1 */
    const char *folder;        /* of checkpoints; NULL: none */
    const char *settings;      /* as JSON; default {} */
} rig_opts;

typedef struct rig {
    pl_dataset *train, *test;
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim;
    pl_schedule schedule;
    pl_metrics *metrics;
    pl_json *settings;
    pl_snapshot *snapshot; /* NULL without a folder */
    pl_sync *sync;
} rig;

static inline void rig_data(rig *r, const rig_opts *opts)
{
    int64_t side = opts->side > 0 ? opts->side : 8;
    bool sparse = opts->model != NULL && opts->model->sparse;
    pl_source_opts source = {
        .shape = PL_SHAPE(side, side),
        .classes = opts->classes > 0 ? opts->classes : 4,
        .examples = opts->examples > 0 ? opts->examples : 512,
        .features = opts->features > 0 ? opts->features : 5000,
        .seed = 3,
    };
    if (sparse) {
        assert_ok(pl_synthetic_sparse_open(&r->train, PL_SPLIT_TRAIN, &source));
        assert_ok(pl_synthetic_sparse_open(&r->test, PL_SPLIT_TEST, &source));
        return;
    }
    assert_ok(pl_synthetic_open(&r->train, PL_SPLIT_TRAIN, &source));
    assert_ok(pl_synthetic_open(&r->test, PL_SPLIT_TEST, &source));
}

static inline pl_planes rig_planes(const rig *r)
{
    return pl_optim_planes(r->optim, pl_params_block(r->network->params));
}

static inline void rig_init(rig *r, const rig_opts *opts)
{
    const pl_model *model = opts->model != NULL ? opts->model : &two_layers;
    const pl_kernels *kernels =
        opts->kernels != NULL ? opts->kernels : pl_kernels_best();
    const char *settings = opts->settings != NULL ? opts->settings : "{}";
    *r = (rig) { .schedule = { .lr = opts->lr != 0 ? opts->lr : 0.1 } };
    rig_data(r, opts);
    assert_ok(pl_network_new(&r->network, model,
                             &(pl_network_opts) {
                                 .example = r->train->shape,
                                 .classes = r->train->classes,
                                 .seed = 5,
                             }));
    assert_ok(pl_pool_new(&r->pool, opts->threads > 0 ? opts->threads : 1));
    assert_ok(
        pl_optim_new(&r->optim, &opts->optim, r->network->params, kernels));
    assert_ok(pl_metrics_new(&r->metrics, &(pl_metrics_opts) { 0 }));
    assert_ok(pl_json_parse(&r->settings, settings, strlen(settings), "s"));
    if (opts->folder != NULL)
        assert_ok(
            pl_snapshot_new(&r->snapshot, &(pl_snapshot_opts) {
                                              .folder = opts->folder,
                                              .model = model->name,
                                              .settings = r->settings,
                                              .params = r->network->params,
                                              .planes = rig_planes(r),
                                              .kernels = kernels->name,
                                          }));
    assert_ok(pl_single_new(&r->sync, &(pl_single_opts) {
                                          .params = r->network->params,
                                          .optim = r->optim,
                                          .schedule = &r->schedule,
                                          .pool = r->pool,
                                          .snapshot = r->snapshot,
                                      }));
}

/* The options of a loop over it, but for a batch and an end. */
static inline pl_loop_opts rig_loop(const rig *r)
{
    return (pl_loop_opts) {
        .network = r->network,
        .train = r->train,
        .test = r->test,
        .sync = r->sync,
        .pool = r->pool,
        .metrics = r->metrics,
        .schedule = &r->schedule,
        .record_every = { .unit = PL_EVERY_AUTO },
    };
}

static inline void rig_close(rig *r)
{
    r->sync->ops->free(r->sync);
    pl_snapshot_free(r->snapshot);
    pl_json_free(r->settings);
    pl_metrics_free(r->metrics);
    pl_optim_free(r->optim);
    pl_pool_free(r->pool);
    pl_network_free(r->network);
    pl_dataset_free(r->train);
    pl_dataset_free(r->test);
}

static inline void assert_same_block(const pl_params *a, const pl_params *b)
{
    assert_int_equal(pl_params_block_count(a), pl_params_block_count(b));
    assert_memory_equal(pl_params_block(a), pl_params_block(b),
                        (size_t)pl_params_block_count(a) * sizeof(float));
}

/* Parameters and optimizer slots of two rigs are the same bits. */
static inline void assert_same_state(const rig *a, const rig *b)
{
    assert_same_block(a->network->params, b->network->params);
    for (int s = 0; s < a->optim->ops->slot_count; s++)
        assert_same_block(a->optim->slots[s], b->optim->slots[s]);
}

#endif
