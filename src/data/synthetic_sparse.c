/* Makes synthetic clicks: Zipf-distributed ids with hidden weights, labels
 * drawn from the logistic model they define. Every example is a function of
 * the seed and its number. */
#include "data/synthetic_sparse.h"

#include "base/host/ram.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/thread.h"

#include <math.h>

#define DEFAULT_EXAMPLES 200000
#define LEAST_EXAMPLES   256
#define LEAST_FEATURES   256
#define MOST_FEATURES    ((int64_t)1 << 32)
#define COUNTS           13 /* fields of buckets */
#define BUCKETS          16
#define CATEGORIES       26   /* fields of ranks */
#define BLOCK            1024 /* examples a thread makes at a time */

/* The hidden model: weights are uniform in these ranges; the bias makes about
 * one label in four a 1. */
#define COUNT_WEIGHT    0.8
#define CATEGORY_WEIGHT 0.5
#define BIAS            (-1.6)

typedef struct sparse_dataset {
    pl_dataset base;
    int64_t *row_start; /* [count + 1] */
    uint64_t *ids;      /* [count, 39] */
    int32_t *labels;    /* [count] */
    uint64_t split_key, weight_key;
} sparse_dataset;

static void release(pl_dataset *base)
{
    sparse_dataset *set = (sparse_dataset *)base;
    pl_mem_free(set->row_start);
    pl_mem_free(set->ids);
    pl_mem_free(set->labels);
    pl_mem_free(set->base.name);
    pl_mem_free(set);
}

static const pl_dataset_ops sparse_ops = {
    .kind = "synthetic-sparse",
    .free = release,
};

static pl_status resolve(pl_source_opts *out, const pl_source_opts *opts)
{
    *out = *opts;
    if (out->examples == 0)
        out->examples = DEFAULT_EXAMPLES;
    if (out->features == 0)
        out->features = PL_CLICK_FEATURES;
    if (out->features < LEAST_FEATURES || out->features > MOST_FEATURES)
        return PL_FAIL(PL_USAGE, "%lld features, expected %d to 2^32",
                       (long long)out->features, LEAST_FEATURES);
    if (out->examples < 1 || out->examples > UINT32_MAX)
        return PL_FAIL(PL_USAGE, "%lld examples, expected 1 to 2^32 - 1",
                       (long long)out->examples);
    return PL_OK;
}

static int64_t count_of(int64_t examples, pl_split split)
{
    if (split == PL_SPLIT_TRAIN)
        return examples;
    int64_t tenth = examples / 10;
    if (tenth >= LEAST_EXAMPLES)
        return tenth;
    return examples < LEAST_EXAMPLES ? examples : LEAST_EXAMPLES;
}

/* A bucket: each is half as likely as the previous one. */
static uint64_t draw_bucket(double u)
{
    double bucket = -log2(1 - u);
    return bucket < BUCKETS - 1 ? (uint64_t)bucket : BUCKETS - 1;
}

/* A rank below n, r with probability about 1 / (r + 1): the logarithm of
 * r + 1 is uniform. */
static uint64_t draw_rank(double u, double log_n, uint64_t n)
{
    uint64_t rank = (uint64_t)exp(u * log_n) - 1;
    return rank < n ? rank : n - 1;
}

static double weight_of(const sparse_dataset *set, uint64_t id, double most)
{
    return most * (2 * pl_rng_uniform(set->weight_key, id) - 1);
}

static void make_example(sparse_dataset *set, int64_t at, uint64_t ranks,
                         double log_ranks)
{
    uint64_t key = pl_rng_key(set->split_key, (uint64_t)at);
    uint64_t *ids = set->ids + at * PL_CLICK_NON_ZEROS;
    double logit = BIAS;
    for (uint64_t f = 0; f < COUNTS; f++) {
        uint64_t id = draw_bucket(pl_rng_uniform(key, f)) * COUNTS + f;
        logit += weight_of(set, id, COUNT_WEIGHT);
        *ids++ = id;
    }
    for (uint64_t f = 0; f < CATEGORIES; f++) {
        double u = pl_rng_uniform(key, COUNTS + f);
        uint64_t id =
            COUNTS * BUCKETS + draw_rank(u, log_ranks, ranks) * CATEGORIES + f;
        logit += weight_of(set, id, CATEGORY_WEIGHT);
        *ids++ = id;
    }
    double p = 1 / (1 + exp(-logit));
    set->labels[at] = pl_rng_uniform(key, PL_CLICK_NON_ZEROS) < p;
}

static void make_block(void *arg, int block, int thread)
{
    (void)thread;
    sparse_dataset *set = arg;
    uint64_t features = (uint64_t)set->base.feature_count;
    uint64_t ranks = (features - COUNTS * BUCKETS) / CATEGORIES;
    double log_ranks = log((double)ranks + 1);
    int64_t blocks = (set->base.count + BLOCK - 1) / BLOCK;
    int64_t parts = blocks < UINT16_MAX ? blocks : UINT16_MAX;
    int64_t first = set->base.count * block / parts;
    int64_t last = set->base.count * (block + 1) / parts;
    for (int64_t i = first; i < last; i++) {
        make_example(set, i, ranks, log_ranks);
        set->row_start[i + 1] = (i + 1) * PL_CLICK_NON_ZEROS;
    }
}

static pl_status fill(sparse_dataset *set, int threads)
{
    pl_pool *pool;
    int64_t blocks = (set->base.count + BLOCK - 1) / BLOCK;
    PL_TRY(pl_pool_new(&pool, threads > 0 ? threads : pl_thread_cores()));
    pl_pool_run(pool, (int)(blocks < UINT16_MAX ? blocks : UINT16_MAX),
                make_block, set);
    pl_pool_free(pool);
    return PL_OK;
}

static pl_status check_room(const pl_dataset *set)
{
    pl_ram ram = pl_ram_available();
    if (set->held_bytes <= ram.bytes)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "%lld examples take %lld MB, but %s has only %lld MB "
                   "available",
                   (long long)set->count,
                   (long long)(set->held_bytes / 1000000), ram.limit,
                   (long long)(ram.bytes / 1000000));
}

/* Allocate and describe; the values are filled in later. */
static pl_status prepare(sparse_dataset *set, pl_split split,
                         const pl_source_opts *opts)
{
    pl_dataset *base = &set->base;
    uint64_t key = pl_rng_key_text(opts->seed, "synthetic-sparse");
    set->split_key = pl_rng_key(key, (uint64_t)split);
    set->weight_key = pl_rng_key_text(key, "weights");
    base->count = count_of(opts->examples, split);
    base->shape = PL_SHAPE(opts->features);
    base->classes = 2;
    base->sparse = true;
    base->feature_count = opts->features;
    base->held_bytes =
        base->count *
        (PL_CLICK_NON_ZEROS * (int64_t)sizeof *set->ids +
         (int64_t)sizeof *set->row_start + (int64_t)sizeof *set->labels);
    PL_TRY(check_room(base));
    PL_TRY(pl_mem_copy_text(&base->name, "synthetic-sparse"));
    PL_TRY(PL_NEW_ALIGNED(set->row_start, (size_t)base->count + 1));
    PL_TRY(
        PL_NEW_ALIGNED(set->ids, (size_t)(base->count * PL_CLICK_NON_ZEROS)));
    PL_TRY(PL_NEW_ALIGNED(set->labels, (size_t)base->count));
    base->row_start = set->row_start;
    base->ids = set->ids;
    base->labels = (pl_view) {
        .data = set->labels,
        .stride = 1,
        .dtype = PL_INT32,
        .scale = 1.0f,
    };
    return PL_OK;
}

pl_status pl_synthetic_sparse_open(pl_dataset **out, pl_split split,
                                   const pl_source_opts *opts)
{
    pl_source_opts complete;
    sparse_dataset *set = NULL;
    pl_status status;
    PL_TRY_OUT(status, resolve(&complete, opts));
    PL_TRY_OUT(status, PL_NEW(set, 1));
    set->base.ops = &sparse_ops;
    PL_TRY_OUT(status, prepare(set, split, &complete));
    PL_TRY_OUT(status, fill(set, complete.threads));
    *out = &set->base;
    return PL_OK;
out:
    if (set != NULL)
        release(&set->base);
    return pl_context(status, "synthetic-sparse");
}
