/* Makes synthetic images: noise plus a faint pattern for each class, all a
 * function of the seed. */
#include "data/synthetic.h"

#include "base/host/ram.h"
#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

#define DEFAULT_CLASSES  10
#define DEFAULT_EXAMPLES 10000
#define LEAST_EXAMPLES   256
#define DEFAULT_BYTES    ((int64_t)64 << 20)

typedef struct synthetic_dataset {
    pl_dataset base;
    uint8_t *features; /* [count, row] */
    int32_t *labels;   /* [count] */
} synthetic_dataset;

static void release(pl_dataset *base)
{
    synthetic_dataset *set = (synthetic_dataset *)base;
    pl_mem_free(set->features);
    pl_mem_free(set->labels);
    pl_mem_free(set->base.name);
    pl_mem_free(set);
}

static const pl_dataset_ops synthetic_ops = {
    .kind = "synthetic",
    .free = release,
};

static pl_status resolve(pl_source_opts *out, const pl_source_opts *opts)
{
    *out = *opts;
    if (out->shape.rank < 1 || pl_shape_batched(out->shape))
        return PL_FAIL(PL_USAGE, "synthetic: the shape of an example is not "
                                 "known; use it with a model");
    PL_TRY(pl_shape_check(out->shape));
    int64_t row = pl_shape_row(out->shape);
    if (out->classes == 0)
        out->classes = DEFAULT_CLASSES;
    if (out->examples == 0) {
        int64_t fit = DEFAULT_BYTES / row;
        out->examples = fit < DEFAULT_EXAMPLES ? fit : DEFAULT_EXAMPLES;
        if (out->examples < LEAST_EXAMPLES)
            out->examples = LEAST_EXAMPLES;
    }
    if (out->classes < 1 || out->examples < 1)
        return PL_FAIL(PL_USAGE,
                       "synthetic: %d classes and %lld examples, expected at "
                       "least 1",
                       out->classes, (long long)out->examples);
    if (out->examples > UINT32_MAX || out->examples > INT64_MAX / row)
        return PL_FAIL(PL_USAGE,
                       "synthetic: %lld examples of %lld elements do not fit "
                       "in memory",
                       (long long)out->examples, (long long)row);
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

/* Eight elements at once: 7 bits of noise each, and a brightness of 6 bits
 * that depends on the class and the place.  Their sum fits a byte. */
static void fill_row(uint8_t *out, int64_t row, uint64_t noise_key,
                     uint64_t pattern_key)
{
    for (int64_t at = 0; at < row; at += 8) {
        uint64_t word = (uint64_t)at / 8;
        uint64_t noise = pl_rng_u64(noise_key, word) & 0x7f7f7f7f7f7f7f7fu;
        uint64_t bright = pl_rng_below(pattern_key, word, 64);
        uint64_t eight = noise + bright * 0x0101010101010101u;
        memcpy(out + at, &eight, row - at < 8 ? (size_t)(row - at) : 8);
    }
}

static void fill(synthetic_dataset *set, pl_split split, uint64_t seed)
{
    uint64_t key = pl_rng_key_text(seed, "synthetic");
    uint64_t split_key = pl_rng_key(key, (uint64_t)split);
    uint64_t label_key = pl_rng_key_text(split_key, "labels");
    uint64_t pattern_key = pl_rng_key_text(key, "patterns");
    uint32_t classes = (uint32_t)set->base.classes;
    int64_t row = set->base.features.stride;
    for (int64_t i = 0; i < set->base.count; i++) {
        uint32_t label = pl_rng_below(label_key, (uint64_t)i, classes);
        set->labels[i] = (int32_t)label;
        fill_row(set->features + i * row, row,
                 pl_rng_key(split_key, (uint64_t)i),
                 pl_rng_key(pattern_key, label));
    }
}

/* Allocate and describe; the values are filled in later. */
static pl_status prepare(synthetic_dataset *set, pl_split split,
                         const pl_source_opts *opts)
{
    pl_dataset *base = &set->base;
    int64_t row = pl_shape_row(opts->shape);
    base->count = count_of(opts->examples, split);
    base->shape = opts->shape;
    base->classes = opts->classes;
    PL_TRY(pl_mem_copy_text(&base->name, "synthetic"));
    base->held_bytes = base->count * (row + (int64_t)sizeof *set->labels);
    pl_ram ram = pl_ram_available();
    if (base->held_bytes > ram.bytes)
        return PL_FAIL(PL_USAGE,
                       "%lld examples of %lld bytes do not fit into the %lld "
                       "MB that %s has available",
                       (long long)base->count, (long long)row,
                       (long long)(ram.bytes / 1000000), ram.limit);
    PL_TRY(PL_NEW_ALIGNED(set->features, (size_t)(base->count * row)));
    PL_TRY(PL_NEW_ALIGNED(set->labels, (size_t)base->count));
    base->features = (pl_view) {
        .data = set->features,
        .stride = row,
        .dtype = PL_UINT8,
        .scale = 1.0f / 255.0f,
    };
    base->labels = (pl_view) {
        .data = set->labels,
        .stride = 1,
        .dtype = PL_INT32,
        .scale = 1.0f,
    };
    return PL_OK;
}

pl_status pl_synthetic_open(pl_dataset **out, pl_split split,
                            const pl_source_opts *opts)
{
    pl_source_opts complete;
    synthetic_dataset *set;
    PL_TRY(resolve(&complete, opts));
    PL_TRY(PL_NEW(set, 1));
    set->base.ops = &synthetic_ops;
    pl_status status = prepare(set, split, &complete);
    if (status != PL_OK) {
        release(&set->base);
        return pl_context(status, "synthetic");
    }
    fill(set, split, complete.seed);
    *out = &set->base;
    return PL_OK;
}
