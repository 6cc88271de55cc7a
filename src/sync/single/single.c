/* The sync strategy of a single process: a commit applies the optimizer
 * here, in parallel ranges for dense parameters and key by key for sparse
 * tables. */
#include "sync/single/single.h"

#include "base/assert.h"
#include "base/mem.h"

#define MAX_SPARSE 8    /* parameters of a network with a sparse one */
#define SHARE_KEYS 4096 /* fewer are not worth waking a thread */

typedef struct single {
    pl_sync base;
    pl_single_opts opts;
    int64_t step;
    const float *grad; /* the last gradient passed to `ready`, of grad_param */
    int grad_param;
    bool applied; /* the update of this step was made range by range */
    /* Of a network with a sparse table: what was passed to `ready`, by
     * parameter. */
    bool sparse;
    struct pending {
        const float *grad;
        const pl_keys *keys;
    } pending[MAX_SPARSE];
    int table;  /* the parameter whose keys are updated */
    int shares; /* number of parts of its keys */
} single;

static pl_status join(pl_sync *sync, pl_standing *at)
{
    ((single *)sync)->step = at->step;
    return PL_OK;
}

static pl_status need(pl_sync *sync, int param, const pl_keys *keys)
{
    (void)sync, (void)param, (void)keys;
    return PL_OK;
}

static pl_status ready(pl_sync *sync, int param, const float *grad,
                       const pl_keys *keys)
{
    single *self = (single *)sync;
    self->sparse = self->sparse || keys != NULL;
    PL_ASSERT(!self->sparse || param < MAX_SPARSE);
    if (param < MAX_SPARSE)
        self->pending[param] = (struct pending) { grad, keys };
    self->grad = grad;
    self->grad_param = param;
    return PL_OK;
}

static void begin_apply(pl_sync *sync)
{
    single *self = (single *)sync;
    int64_t update = self->step + 1;
    pl_optim_begin(self->opts.optim, update,
                   pl_schedule_lr(self->opts.schedule, update));
    self->applied = true;
}

static void apply_range(pl_sync *sync, int64_t first, int64_t count,
                        const float *grad)
{
    single *self = (single *)sync;
    pl_optim_update(self->opts.optim, first, count, grad,
                    pl_params_block(self->opts.params));
}

/* Update one part of the block; there are as many parts as threads. */
static void update_part(void *arg, int item, int thread)
{
    (void)thread;
    single *self = arg;
    int64_t lines = pl_params_block_count(self->opts.params) / 16;
    int64_t parts = pl_pool_threads(self->opts.pool);
    int64_t first = lines * item / parts * 16;
    int64_t last = lines * (item + 1) / parts * 16;
    /* Dense gradients lie in one block like the parameters. */
    const float *block =
        self->grad - pl_params_get(self->opts.params, self->grad_param)->offset;
    apply_range(&self->base, first, last - first, block + first);
}

/* Update one share of a table's keys. */
static void update_keys(void *arg, int item, int thread)
{
    (void)thread;
    const single *self = arg;
    const pl_keys *keys = self->pending[self->table].keys;
    int64_t first = keys->count * item / self->shares;
    int64_t last = keys->count * (item + 1) / self->shares;
    pl_optim_update_keys(self->opts.optim,
                         pl_params_get(self->opts.params, self->table)->offset,
                         last - first, keys->ids + first,
                         self->pending[self->table].grad + first,
                         pl_params_block(self->opts.params));
}

/* Update one parameter after the other; sparse ones at their keys only. */
static void update_sparse(single *self)
{
    pl_params *params = self->opts.params;
    for (int p = 0; p < pl_params_count(params); p++) {
        const pl_params_item *item = pl_params_get(params, p);
        const pl_keys *keys = self->pending[p].keys;
        if (keys == NULL) {
            pl_optim_update(self->opts.optim, item->offset, item->count,
                            self->pending[p].grad, pl_params_block(params));
            continue;
        }
        int64_t shares = keys->count / SHARE_KEYS;
        int64_t threads = pl_pool_threads(self->opts.pool);
        self->table = p;
        self->shares =
            shares < 1 ? 1 : (int)(shares < threads ? shares : threads);
        pl_pool_run(self->opts.pool, self->shares, update_keys, self);
    }
}

static pl_status commit(pl_sync *sync, pl_commit *out)
{
    single *self = (single *)sync;
    if (!self->applied) {
        PL_ASSERT(self->grad != NULL);
        begin_apply(sync);
        if (self->sparse)
            update_sparse(self);
        else
            pl_pool_run(self->opts.pool, pl_pool_threads(self->opts.pool),
                        update_part, self);
    }
    self->applied = false;
    self->grad = NULL;
    *out = (pl_commit) { .step = ++self->step };
    return PL_OK;
}

static pl_status save(pl_sync *sync, const pl_progress *progress, bool last)
{
    single *self = (single *)sync;
    if (self->opts.snapshot == NULL)
        return PL_OK;
    return pl_snapshot_save(self->opts.snapshot, progress, last);
}

static pl_status finish(pl_sync *sync)
{
    (void)sync;
    return PL_OK;
}

static void single_free(pl_sync *sync)
{
    pl_mem_free(sync);
}

static const pl_sync_local local_ops = {
    .begin = begin_apply,
    .apply = apply_range,
};

static const pl_sync_ops ops = {
    .name = "single",
    .join = join,
    .need = need,
    .ready = ready,
    .commit = commit,
    .save = save,
    .finish = finish,
    .free = single_free,
    .local = &local_ops,
};

pl_status pl_single_new(pl_sync **out, const pl_single_opts *opts)
{
    single *self;
    PL_TRY(PL_NEW(self, 1));
    self->base.ops = &ops;
    self->opts = *opts;
    opts->optim->frozen =
        opts->snapshot != NULL ? pl_snapshot_frozen(opts->snapshot) : NULL;
    *out = &self->base;
    return PL_OK;
}
