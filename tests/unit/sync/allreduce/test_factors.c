/* How a rank makes the sum of all gradients from their factors. */
#include "sync/allreduce/factors.h"

#include "base/rng.h"
#include "support/unit.h"

#include <stdlib.h>

#define RANKS   4
#define ROWS    2
#define OUTPUTS 7
#define INPUTS  21
#define COUNT   (OUTPUTS * INPUTS)
#define FIRST   16 /* of the layer in a block */
#define THREADS 2
#define CLIPPED 2 /* a rank */

/* What becomes of a product that is to be added as it is formed. */
typedef enum addition {
    ADDS_NEVER,
    ADDS_ALIKE,   /* with the bits of a product that is added afterwards */
    ADDS_IN_PARTS /* with others */
} addition;

/* Products computed naively, and which were requested. */
typedef struct fake {
    pl_factors factors;
    pl_factor_layer layer;
    pl_factor_step step;
    pl_params *params;
    float *memory;
    addition adding;
    int32_t formed[RANKS]; /* products of each rank's factors */
    int32_t added[RANKS];  /* those of them that were added at once */
} fake;

static void plain_product(const float *block, float *out)
{
    for (int o = 0; o < OUTPUTS; o++)
        for (int i = 0; i < INPUTS; i++) {
            float sum = 0;
            for (int r = 0; r < ROWS; r++)
                sum += block[FIRST + r * OUTPUTS + o] *
                       block[FIRST + ROWS * OUTPUTS + r * INPUTS + i];
            out[o * INPUTS + i] = sum;
        }
}

/* Count a product; those that are only tried are of a block that is no
 * rank's. */
static void note(fake *f, const float *block, int32_t *counts)
{
    if (block != f->factors.own)
        counts[(block - f->memory - f->step.slot_first) / f->step.slot]++;
}

static void multiply(const void *source, int layer, const float *block,
                     float *room, float *out)
{
    fake *f = (fake *)(uintptr_t)source;
    assert_int_equal(0, layer);
    if (f->factors.needs_room) { /* the old content is gone */
        assert_true(out != room);
        memset(room, 0xff, COUNT * sizeof(float));
    }
    note(f, block, f->formed);
    plain_product(block, out);
}

/* Row by row: another order of additions. */
static void add_parts(const float *block, float *sum)
{
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < OUTPUTS; o++)
            for (int i = 0; i < INPUTS; i++)
                sum[o * INPUTS + i] +=
                    block[FIRST + r * OUTPUTS + o] *
                    block[FIRST + ROWS * OUTPUTS + r * INPUTS + i];
}

static bool multiply_add(const void *source, int layer, const float *block,
                         float *sum)
{
    fake *f = (fake *)(uintptr_t)source;
    float product[COUNT];
    assert_int_equal(0, layer);
    if (f->adding == ADDS_NEVER)
        return false;
    note(f, block, f->formed);
    note(f, block, f->added);
    if (f->adding == ADDS_IN_PARTS) {
        add_parts(block, sum);
        return true;
    }
    plain_product(block, product);
    for (int i = 0; i < COUNT; i++)
        sum[i] += product[i];
    return true;
}

static void fill_block(float *block, int32_t rank)
{
    block[0] = rank == CLIPPED ? 0.3f : 1;
    block[1] = 1;
    for (int i = FIRST; i < FIRST + ROWS * (OUTPUTS + INPUTS); i++)
        block[i] = (float)pl_rng_uniform((uint64_t)rank, (uint64_t)i) - 0.5f;
}

static void fake_init(fake *f, bool needs_room, addition adding)
{
    memset(f, 0, sizeof *f);
    f->adding = adding;
    assert_ok(pl_params_new(&f->params));
    assert_ok(pl_params_add(f->params, "weights", PL_SHAPE(OUTPUTS, INPUTS)));
    assert_ok(pl_params_add(f->params, "bias", PL_SHAPE(OUTPUTS)));
    assert_ok(pl_params_seal(f->params));
    f->layer =
        (pl_factor_layer) { .sizes = { OUTPUTS, INPUTS }, .first = FIRST };
    f->factors = (pl_factors) {
        .rows = ROWS,
        .count = 1,
        .layers = &f->layer,
        .floats = 128,
        .multiply = multiply,
        .multiply_add = multiply_add,
        .needs_room = needs_room,
        .source = f,
    };
    f->factors.own = calloc((size_t)f->factors.floats, sizeof(float));
    assert_ok(pl_factor_step_init(&f->step, &f->factors, f->params));
    f->step.kernels = pl_kernels_best();
    assert_ok(pl_pool_new(&f->step.pool, THREADS));
    f->memory = calloc(
        (size_t)(pl_params_block_count(f->params) +
                 pl_factor_step_extra(&f->factors, f->params, RANKS, 16)),
        sizeof(float));
}

static void fake_close(fake *f)
{
    pl_factor_step_close(&f->step);
    pl_pool_free(f->step.pool);
    pl_params_free(f->params);
    free(f->factors.own);
    free(f->memory);
}

static void scaled_product(const float *block, float *out)
{
    plain_product(block, out);
    for (int i = 0; i < COUNT; i++)
        out[i] *= block[0];
}

static void no_progress(void *context)
{
    (void)context;
}

/* A step of that rank, when all sums are there. */
static void expand_as(fake *f, int32_t rank, int32_t ranks)
{
    pl_ranks place = { .rank = rank, .count = ranks, .grain = 16 };
    assert_ok(pl_factor_step_choose(&f->step, &place, PL_LINK_BYTES, 4096));
    assert_true(f->step.on);
    memset(f->formed, 0, sizeof f->formed);
    memset(f->added, 0, sizeof f->added);
    for (int32_t r = 0; r < ranks; r++)
        fill_block(f->memory + f->step.slot_first + r * f->step.slot, r);
    scaled_product(f->memory + f->step.slot_first + rank * f->step.slot,
                   f->memory + pl_params_get(f->params, 0)->offset);
    pl_factor_step_multiply(&f->step, f->memory, no_progress, NULL);
}

static void expected_sum(const fake *f, int32_t ranks, float *sum)
{
    float term[COUNT];
    const float *slots = f->memory + f->step.slot_first;
    scaled_product(slots, sum);
    for (int32_t r = 1; r < ranks; r++) {
        scaled_product(slots + r * f->step.slot, term);
        for (int i = 0; i < COUNT; i++)
            sum[i] += term[i];
    }
}

/* Every rank forms the products of the others, and has the bits of all. */
static void a_rank_forms_each_others_product_once(void **state)
{
    (void)state;
    float sum[COUNT];
    for (int room = 0; room < 2; room++)
        for (int32_t ranks = 2; ranks <= RANKS; ranks++)
            for (int32_t rank = 0; rank < ranks; rank++) {
                fake f;
                fake_init(&f, room == 1, ADDS_NEVER);
                expand_as(&f, rank, ranks);
                for (int32_t r = 0; r < ranks; r++)
                    assert_int_equal(r != rank, f.formed[r]);
                expected_sum(&f, ranks, sum);
                assert_memory_equal(sum, f.memory, sizeof sum);
                fake_close(&f);
            }
}

/* Adding as a product is formed is tried before it is relied on, and left out
 * where gradients were clipped.  The first of all ranks has no sum to be added
 * to, but for the second one, whose own gradient can be it. */
static void a_product_is_added_at_once_where_bits_allow(void **state)
{
    (void)state;
    float sum[COUNT];
    for (addition adding = ADDS_ALIKE; adding <= ADDS_IN_PARTS; adding++)
        for (int32_t rank = 0; rank < RANKS; rank++) {
            fake f;
            fake_init(&f, false, adding);
            expand_as(&f, rank, RANKS);
            for (int32_t r = 0; r < RANKS; r++) {
                bool could = r != CLIPPED && (r > 0 || rank == 1);
                assert_int_equal(r != rank, f.formed[r]);
                assert_int_equal(adding == ADDS_ALIKE && could && r != rank,
                                 f.added[r]);
            }
            expected_sum(&f, RANKS, sum);
            assert_memory_equal(sum, f.memory, sizeof sum);
            fake_close(&f);
        }
}

/* As where a worker is lost and the job continues without it. */
static void a_rank_may_change_with_the_generation(void **state)
{
    (void)state;
    float sum[COUNT];
    fake f;
    fake_init(&f, true, ADDS_NEVER);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        expand_as(&f, rank, RANKS);
        expected_sum(&f, RANKS, sum);
        assert_memory_equal(sum, f.memory, sizeof sum);
    }
    fake_close(&f);
    assert_int_equal(0, pl_mem_live());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_forms_each_others_product_once),
        cmocka_unit_test(a_product_is_added_at_once_where_bits_allow),
        cmocka_unit_test(a_rank_may_change_with_the_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
