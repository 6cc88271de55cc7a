/* Threads that update one sparse table while they compute.  Decides how long a
 * thread's updates may stay invisible to the others.
 *
 * A batch is divided into items of a thousand examples; it is not one update,
 * since each example updates the shared table (kernels/hogwild.h).  Each thread
 * has a copy of the hottest weights.  It fetches them before each item and
 * merges them into the table afterwards, under a lock, so that no update stays
 * invisible for longer than an item.  A single thread uses no copies: that is
 * plain sequential descent. */
#include "base/assert.h"
#include "base/mem.h"
#include "kernels/hogwild.h"
#include "train/compute/compute_priv.h"

#include <math.h>
#include <stdatomic.h>

#define ITEM_ROWS 1024
#define HOT       4096 /* weights that each thread copies */

/* The state of one thread. */
typedef struct worker {
    _Alignas(PL_CACHE_LINE) float hot[HOT];
    float base[HOT]; /* values of the last merge */
    float bias, bias_base;
    double loss;   /* of this batch */
    int64_t right; /* right answers */
} worker;

typedef struct hogwild {
    pl_compute compute;
    pl_compute_opts opts;
    float *table, *bias; /* of the network */
    int64_t features;
    int64_t hot;
    pl_mutex merging; /* guards the first `hot` of table, and bias */
    worker *workers;  /* one per thread of the pool */
    pl_rows rows;
    pl_view labels;
    float lr;
    int64_t step;    /* of the trace */
    double accuracy; /* on the last batch, each example before its update */
    _Atomic uint64_t wrong; /* an id beyond the table; 0: none found */
} hogwild;

static void hogwild_free(pl_compute *base)
{
    hogwild *c = (hogwild *)base;
    pl_mutex_close(&c->merging);
    pl_mem_free(c->workers);
    pl_mem_free(c);
}

static pl_status hogwild_new(pl_compute **out, const pl_compute_opts *opts)
{
    const pl_network *network = opts->network;
    hogwild *c;
    PL_TRY(PL_NEW(c, 1));
    c->opts = *opts;
    c->table = pl_params_data(network->params, network->table);
    c->bias = pl_params_data(network->params, network->bias);
    c->features = pl_params_get(network->params, network->table)->count;
    c->hot = c->features < HOT ? c->features : HOT;
    if (pl_pool_threads(opts->pool) == 1)
        c->hot = 0;
    pl_mutex_init(&c->merging);
    pl_status status =
        PL_NEW_ALIGNED(c->workers, (size_t)pl_pool_threads(opts->pool));
    if (status != PL_OK) {
        hogwild_free(&c->compute);
        return status;
    }
    *out = &c->compute;
    return PL_OK;
}

static pl_status hogwild_memory(const pl_compute_opts *opts,
                                pl_compute_size *out)
{
    int threads =
        opts->pool != NULL ? pl_pool_threads(opts->pool) : opts->threads;
    *out = (pl_compute_size) { .bytes = threads * (int64_t)sizeof(worker) };
    return PL_OK;
}

static pl_status hogwild_prepare(pl_compute *base, const pl_batch *batch)
{
    hogwild *c = (hogwild *)base;
    PL_ASSERT(batch->row_start != NULL);
    c->rows = (pl_rows) {
        .count = batch->rows,
        .start = batch->row_start,
        .index = batch->row_index,
        .ids = batch->ids,
        .values = batch->values,
    };
    c->labels = batch->labels;
    return PL_OK;
}

static void fetch(hogwild *c, worker *w)
{
    pl_mutex_lock(&c->merging);
    pl_hogwild_fetch(c->hot, c->table, w->hot, w->base);
    pl_hogwild_fetch(1, c->bias, &w->bias, &w->bias_base);
    pl_mutex_unlock(&c->merging);
}

/* Announce what an item and its merge may change, before they do. */
static void announce(const hogwild *c, int64_t first, int64_t count)
{
    const pl_params *params = c->opts.network->params;
    const pl_params_item *table = pl_params_get(params, c->opts.network->table);
    const pl_params_item *bias = pl_params_get(params, c->opts.network->bias);
    pl_frozen *frozen = c->opts.hogwild->frozen;
    if (frozen == NULL)
        return;
    pl_frozen_before_change(frozen, bias->offset, 1);
    pl_frozen_before_change(frozen, table->offset, c->hot);
    for (int64_t r = first; r < first + count; r++) {
        int64_t row = pl_rows_source(&c->rows, r);
        int64_t start = c->rows.start[row], end = c->rows.start[row + 1];
        pl_frozen_before_keys(frozen, table->offset, (uint64_t)c->features,
                              c->rows.ids + start, end - start);
    }
}

static void merge(hogwild *c, worker *w)
{
    pl_mutex_lock(&c->merging);
    pl_hogwild_merge(c->hot, c->table, w->hot, w->base);
    pl_hogwild_merge(1, c->bias, &w->bias, &w->bias_base);
    pl_mutex_unlock(&c->merging);
}

static void train_item(void *arg, int item, int thread)
{
    hogwild *c = arg;
    worker *w = &c->workers[thread];
    uint64_t begin = pl_trace_mark(c->opts.trace);
    int64_t items = (c->rows.count + ITEM_ROWS - 1) / ITEM_ROWS;
    int64_t first = c->rows.count * item / items;
    int64_t last = c->rows.count * (item + 1) / items;
    announce(c, first, last - first);
    fetch(c, w);
    pl_hogwild h = {
        .table = c->table,
        .hot = w->hot,
        .hot_count = c->hot,
        .bias = w->bias,
        .features = c->features,
        .lr = c->lr,
        .l1 = (float)c->opts.hogwild->l1,
        .l2 = (float)c->opts.hogwild->l2,
    };
    pl_hogwild_rows(&h, &c->rows, &c->labels, first, last - first);
    w->bias = h.bias;
    w->loss += h.loss;
    w->right += h.right;
    if (h.wrong != 0)
        atomic_store_explicit(&c->wrong, h.wrong, memory_order_relaxed);
    merge(c, w);
    if (pl_trace_on(c->opts.trace))
        pl_trace_span(c->opts.trace, thread, "hogwild", c->step, begin,
                      pl_ticks_now());
}

static double hogwild_gradient(pl_compute *base, const pl_batch *batch,
                               int64_t step, int64_t part, pl_sync *apply)
{
    (void)part;
    hogwild *c = (hogwild *)base;
    PL_ASSERT(apply != NULL && batch->rows == c->rows.count);
    apply->ops->local->begin(apply);
    c->step = step;
    c->lr = (float)pl_schedule_lr(c->opts.hogwild->schedule, step);
    int threads = pl_pool_threads(c->opts.pool);
    for (int t = 0; t < threads; t++) {
        c->workers[t].loss = 0;
        c->workers[t].right = 0;
    }
    int64_t items = (batch->rows + ITEM_ROWS - 1) / ITEM_ROWS;
    pl_pool_run(c->opts.pool, (int)items, train_item, c);
    double loss = 0;
    int64_t right = 0;
    for (int t = 0; t < threads; t++) {
        loss += c->workers[t].loss;
        right += c->workers[t].right;
    }
    c->accuracy = (double)right / (double)batch->rows;
    return c->wrong != 0 ? NAN : loss / (double)batch->rows;
}

static pl_status hogwild_check(const pl_compute *base)
{
    const hogwild *c = (const hogwild *)base;
    return c->wrong != 0 ? pl_compute_beyond(c->wrong, c->features) : PL_OK;
}

/* Gradients are applied at once: none to return. */
static const float *hogwild_grad(const pl_compute *base, int param,
                                 const pl_keys **keys)
{
    (void)base, (void)param;
    *keys = NULL;
    return NULL;
}

static double hogwild_accuracy(const pl_compute *base, const pl_batch *batch)
{
    (void)batch;
    return ((const hogwild *)base)->accuracy;
}

const pl_compute_ops pl_hogwild_compute = {
    .make = hogwild_new,
    .free = hogwild_free,
    .memory = hogwild_memory,
    .prepare = hogwild_prepare,
    .gradient = hogwild_gradient,
    .grad = hogwild_grad,
    .accuracy = hogwild_accuracy,
    .check = hogwild_check,
};
