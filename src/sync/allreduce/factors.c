/* Decides where factors and the rest of a gradient are placed in the
 * collective's memory, when they are sent, and in which order the products are
 * added.
 *
 * The order of ranges is the same at all ranks: parameters become ready from
 * the last to the first, buckets of the rest follow as they fill up, and the
 * broadcasts begin when the last chosen layer is ready. */
#include "sync/allreduce/factors.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

#define LINE  16   /* floats of a cache line */
#define RANGE 2048 /* floats compared at once */

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

int64_t pl_factor_step_extra(const pl_factors *source, const pl_params *params,
                             int32_t workers, int64_t grain_most)
{
    if (source == NULL)
        return 0;
    /* Each part may begin, and end, within a grain. */
    return pl_params_block_count(params) + workers * source->floats +
           (workers + 2) * grain_most;
}

static int64_t layer_floats(const pl_factor_layer *layer)
{
    return layer->sizes.outputs * layer->sizes.inputs;
}

static int64_t largest_layer(const pl_factors *source)
{
    int64_t most = 0;
    for (int i = 0; i < source->count; i++)
        if (layer_floats(&source->layers[i]) > most)
            most = layer_floats(&source->layers[i]);
    return most;
}

pl_status pl_factor_step_init(pl_factor_step *step, pl_factors *source,
                              const pl_params *params)
{
    step->source = source;
    step->params = params;
    if (source == NULL)
        return PL_OK;
    size_t count = (size_t)pl_params_count(params);
    PL_TRY(PL_NEW(step->chosen, (size_t)source->count));
    PL_TRY(PL_NEW(step->adds, (size_t)source->count));
    PL_TRY(PL_NEW(step->layer_of, count));
    return PL_NEW(step->rest_at, count);
}

void pl_factor_step_close(pl_factor_step *step)
{
    pl_mem_free(step->chosen);
    pl_mem_free(step->adds);
    pl_mem_free(step->layer_of);
    pl_mem_free(step->rest_at);
    pl_mem_free(step->product);
    pl_mem_free(step->room);
    pl_mem_free(step->other);
}

/* Gradients that do not travel as factors are placed consecutively, in
 * order. */
static void place_rest(pl_factor_step *step)
{
    step->rest = 0;
    for (int p = 0; p < pl_params_count(step->params); p++) {
        step->layer_of[p] = -1;
        for (int i = 0; i < step->source->count; i++)
            if (step->chosen[i] && step->source->layers[i].param == p)
                step->layer_of[p] = i;
        if (step->layer_of[p] >= 0)
            continue;
        step->rest_at[p] = step->rest;
        step->rest += round_up(pl_params_get(step->params, p)->count, LINE);
    }
}

/* Allocated only by ranks that form products, since they are large.  From the
 * third rank on, the sum of the lower ranks is kept while the next product is
 * formed. */
static pl_status allocate_products(pl_factor_step *step)
{
    size_t floats = (size_t)largest_layer(step->source);
    bool other = step->ranks.rank > 1 && step->source->needs_room;
    if (step->product == NULL)
        PL_TRY(PL_NEW_ALIGNED(step->product, floats));
    if (step->room == NULL)
        PL_TRY(PL_NEW_ALIGNED(step->room, floats));
    return other && step->other == NULL ? PL_NEW_ALIGNED(step->other, floats)
                                        : PL_OK;
}

/* Fill a layer's factors with random numbers for the trial below. */
static void draw_factors(const pl_factors *source, int layer)
{
    const pl_factor_layer *l = &source->layers[layer];
    int64_t count = source->rows * (l->sizes.outputs + l->sizes.inputs);
    uint64_t key = pl_rng_key_text(0, "factors");
    for (int64_t i = 0; i < count; i++)
        source->own[l->first + i] =
            (float)(pl_rng_uniform(key, (uint64_t)i) - 0.5);
    source->own[1 + layer] = 1;
}

/* Whether a product that is added as it is formed gives the bits of one that is
 * added afterwards.  This depends on the sizes, the library, its instructions
 * and threads, not on the numbers: it is tried once, with numbers that reveal a
 * different order of additions. */
static bool adds_alike(const pl_factor_step *step, int layer)
{
    const pl_factors *source = step->source;
    const float share = 0.37f, *product = step->product;
    float *sum = step->room, expected[RANGE];
    int64_t count = layer_floats(&source->layers[layer]);
    if (source->needs_room)
        return false;
    draw_factors(source, layer);
    source->multiply(source->source, layer, source->own, sum, step->product);
    step->kernels->scale(count, share, product, sum);
    if (!source->multiply_add(source->source, layer, source->own, sum))
        return false;
    for (int64_t i = 0; i < count; i += RANGE) {
        int64_t n = count - i < RANGE ? count - i : RANGE;
        step->kernels->scale(n, share, product + i, expected);
        step->kernels->add(n, expected, product + i, expected);
        if (memcmp(expected, sum + i, (size_t)n * sizeof(float)) != 0)
            return false;
    }
    return true;
}

static void try_adding(pl_factor_step *step)
{
    for (int i = 0; i < step->source->count; i++)
        step->adds[i] = step->chosen[i] && adds_alike(step, i);
}

pl_status pl_factor_step_choose(pl_factor_step *step, const pl_ranks *ranks,
                                pl_link_class link, int64_t bucket_bytes)
{
    const pl_factors *source = step->source;
    step->ranks = *ranks;
    step->on = false;
    if (source == NULL || ranks->count < 2)
        return PL_OK;
    for (int i = 0; i < source->count; i++) {
        step->chosen[i] = pl_factors_pay(&source->layers[i], source->rows,
                                         ranks->count, link);
        step->on = step->on || step->chosen[i];
    }
    if (!step->on)
        return PL_OK;
    place_rest(step);
    int64_t grain = ranks->grain;
    step->rest_first = round_up(pl_params_block_count(step->params), grain);
    step->slot_first = step->rest_first + round_up(step->rest, grain);
    step->slot = round_up(source->floats, grain);
    if (step->rest > 0)
        pl_buckets_init(&step->buckets, step->rest, bucket_bytes, grain,
                        PL_COLLECTIVE_SUMS_MOST - ranks->count);
    PL_TRY(allocate_products(step));
    try_adding(step);
    return PL_OK;
}

int32_t pl_factor_step_begin(pl_factor_step *step)
{
    step->left = 0;
    for (int i = 0; i < step->source->count; i++)
        step->left += step->chosen[i];
    step->begun = step->taken = step->slots_end = 0;
    if (step->rest > 0)
        pl_buckets_begin(&step->buckets);
    return step->ranks.count + (step->rest > 0 ? step->buckets.count : 0);
}

/* The next broadcast; before the first one the own factors are copied into
 * place. */
static bool take_slot(pl_factor_step *step, float *memory, pl_sum_range *out)
{
    if (step->left > 0 || step->begun == step->ranks.count)
        return false;
    if (step->begun == 0)
        memcpy(memory + step->slot_first + step->ranks.rank * step->slot,
               step->source->own, (size_t)step->source->floats * sizeof(float));
    *out = (pl_sum_range) {
        .first = step->slot_first + step->begun * step->slot,
        .count = step->source->floats,
        .kind = PL_SUM_BROADCAST,
        .from = step->begun++,
        .exact = true,
    };
    step->slots_end = step->taken + 1;
    return true;
}

static bool take_rest(pl_factor_step *step, int64_t ready, pl_sum_range *out)
{
    pl_bucket bucket;
    if (step->rest == 0 || !pl_buckets_take(&step->buckets, ready, &bucket))
        return false;
    *out = (pl_sum_range) {
        .first = step->rest_first + bucket.first,
        .count = bucket.count,
        .kind = PL_SUM_RANK_ORDER,
        .exact = true,
    };
    return true;
}

static double since(int64_t begin_ns)
{
    return (double)(pl_clock_now_ns(pl_clock_real()) - begin_ns) * 1e-9;
}

/* The gradient of a parameter has become ready. */
static void note_ready(pl_factor_step *step, int param, float *memory)
{
    const pl_params_item *item = pl_params_get(step->params, param);
    if (step->layer_of[param] >= 0)
        step->left--;
    else
        memcpy(memory + step->rest_first + step->rest_at[param],
               memory + item->offset, (size_t)item->count * sizeof(float));
}

/* The offset from which on the rest is complete. */
static int64_t rest_ready(const pl_factor_step *step, int param)
{
    int p = param;
    while (p < pl_params_count(step->params) && step->layer_of[p] >= 0)
        p++;
    return param == 0                          ? 0
           : p < pl_params_count(step->params) ? step->rest_at[p]
                                               : step->rest;
}

bool pl_factor_step_take(pl_factor_step *step, int param, bool fresh,
                         float *memory, pl_sum_range *out)
{
    int64_t begin = pl_clock_now_ns(pl_clock_real());
    if (fresh)
        note_ready(step, param, memory);
    bool some = take_slot(step, memory, out) ||
                take_rest(step, rest_ready(step, param), out);
    step->taken += some;
    step->seconds += since(begin);
    return some;
}

/* --- the sum ----------------------------------------------------------- */

typedef struct adding {
    const pl_factor_step *step;
    int64_t count;
    const float *left, *right;
    float *to;
} adding;

static void add_part(void *arg, int item, int thread)
{
    (void)thread;
    const adding *a = arg;
    int64_t lines = (a->count + LINE - 1) / LINE;
    int64_t parts = pl_pool_threads(a->step->pool);
    int64_t first = lines * item / parts * LINE;
    int64_t last = lines * (item + 1) / parts * LINE;
    if (last > a->count)
        last = a->count;
    if (last > first)
        a->step->kernels->add(last - first, a->left + first, a->right + first,
                              a->to + first);
}

static void add(const pl_factor_step *step, int64_t count, const float *left,
                const float *right, float *to)
{
    adding a = { step, count, left, right, to };
    pl_pool_run(step->pool, pl_pool_threads(step->pool), add_part, &a);
}

/* The gradient of a layer as computed and clipped by that rank. */
static void form(const pl_factor_step *step, int layer, int32_t rank,
                 const float *memory, float *to)
{
    const float *block = memory + step->slot_first + rank * step->slot;
    int64_t count = layer_floats(&step->source->layers[layer]);
    step->source->multiply(step->source->source, layer, block, step->room, to);
    if (block[0] != 1.0f)
        step->kernels->scale(count, block[0], to, to);
}

/* Add another rank's gradient as it is formed; false: not possible here. */
static bool add_at_once(const pl_factor_step *step, int layer, int32_t rank,
                        const float *memory, float *sum)
{
    const pl_factors *source = step->source;
    const float *block = memory + step->slot_first + rank * step->slot;
    return step->adds[layer] && block[0] == 1.0f &&
           source->multiply_add(source->source, layer, block, sum);
}

/* Add another rank's gradient of a layer to `sum`; `room` has the same size. */
static void add_rank(const pl_factor_step *step, int layer, int32_t rank,
                     const float *memory, float *sum, float *room)
{
    if (add_at_once(step, layer, rank, memory, sum))
        return;
    form(step, layer, rank, memory, room);
    add(step, layer_floats(&step->source->layers[layer]), sum, room, sum);
}

/* ((rank 0 + rank 1) + rank 2) ... The own term is in place: lower ranks are
 * summed separately and added to it, higher ranks are added to it directly. */
static void sum_layer(const pl_factor_step *step, int layer,
                      const float *memory, float *own)
{
    int64_t count = layer_floats(&step->source->layers[layer]);
    int32_t rank = step->ranks.rank;
    float *room = step->other != NULL ? step->other : step->room;
    if (rank > 0 && !(rank == 1 && add_at_once(step, layer, 0, memory, own))) {
        form(step, layer, 0, memory, step->product);
        for (int32_t r = 1; r < rank; r++)
            add_rank(step, layer, r, memory, step->product, room);
        add(step, count, step->product, own, own);
    }
    for (int32_t r = rank + 1; r < step->ranks.count; r++)
        add_rank(step, layer, r, memory, own, step->product);
}

void pl_factor_step_multiply(pl_factor_step *step, float *memory,
                             void (*progress)(void *context), void *context)
{
    int64_t begin = pl_clock_now_ns(pl_clock_real());
    for (int p = 0; p < pl_params_count(step->params); p++) {
        if (step->layer_of[p] < 0)
            continue;
        sum_layer(step, step->layer_of[p], memory,
                  memory + pl_params_get(step->params, p)->offset);
        progress(context);
    }
    step->seconds += since(begin);
}

void pl_factor_step_take_rest(pl_factor_step *step, float *memory)
{
    int64_t begin = pl_clock_now_ns(pl_clock_real());
    for (int p = 0; p < pl_params_count(step->params); p++) {
        const pl_params_item *item = pl_params_get(step->params, p);
        if (step->layer_of[p] < 0)
            memcpy(memory + item->offset,
                   memory + step->rest_first + step->rest_at[p],
                   (size_t)item->count * sizeof(float));
    }
    step->seconds += since(begin);
}
