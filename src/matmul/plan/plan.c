/* plan.c - orders the block products of one worker so that steps without
 * missing blocks come first, and lists the blocks that each later step
 * fetches. */
#include "matmul/plan/plan.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct planner {
    pl_matmul_plan *plan;
    const pl_placement *p;
    int32_t worker;
    bool *rows, *columns; /* [blocks]: some C_ij there is held */
} planner;

static bool lacks(const planner *l, int32_t i, int32_t j)
{
    return pl_placement_owner(l->p, i, j) != l->worker;
}

static void begin_step(planner *l, int32_t i, int32_t j, int32_t turn)
{
    pl_matmul_plan *plan = l->plan;
    plan->steps[plan->step_count++] = (pl_matmul_step) {
        .i = i,
        .j = j,
        .turn = turn,
        .want = plan->want_count,
        .last = plan->want_count,
    };
}

static void add_want(planner *l, int32_t matrix, int32_t i, int32_t j)
{
    pl_matmul_plan *plan = l->plan;
    pl_matmul_step *step = &plan->steps[plan->step_count - 1];
    int64_t floats = pl_placement_floats(l->p, i, j);
    plan->wants[plan->want_count++] = (pl_want) {
        .matrix = matrix,
        .i = i,
        .j = j,
        .owner = pl_placement_owner(l->p, i, j),
        .floats = floats,
        .at = step->floats,
    };
    step->last++;
    step->floats += floats;
    if (step->floats > plan->slot_floats)
        plan->slot_floats = step->floats;
}

static void plan_product(planner *l)
{
    int32_t blocks = l->p->job.blocks;
    int32_t start = l->worker * blocks / l->p->job.workers;
    for (int32_t k = 0; k < blocks; k++) {
        begin_step(l, k, 0, (k + blocks - start) % blocks);
        for (int32_t line = 0; line < blocks; line++) {
            if (l->rows[line] && lacks(l, line, k))
                add_want(l, PL_MATRIX_A, line, k);
            if (l->columns[line] && lacks(l, k, line))
                add_want(l, PL_MATRIX_B, k, line);
        }
    }
    l->plan->result_floats = pl_placement_held(l->p, l->worker);
    l->plan->flops = 2.0 * (double)l->plan->result_floats * (double)l->p->job.n;
    if (l->plan->result_floats == 0)
        l->plan->step_count = l->plan->want_count = 0;
}

static void plan_traces(planner *l)
{
    int32_t blocks = l->p->job.blocks;
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = i; j < blocks; j++) {
            if (pl_placement_tracer(l->p, i, j) != l->worker)
                continue;
            begin_step(l, i, j, l->plan->step_count);
            if (lacks(l, i, j))
                add_want(l, PL_MATRIX_A, i, j);
            else if (lacks(l, j, i))
                add_want(l, PL_MATRIX_A, j, i);
            l->plan->flops += 2.0 * (double)pl_placement_floats(l->p, i, j);
        }
}

static void find_lines(planner *l)
{
    int32_t blocks = l->p->job.blocks;
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = 0; j < blocks; j++)
            if (!lacks(l, i, j))
                l->rows[i] = l->columns[j] = true;
}

/* Steps that lack least first. */
static int by_lack(const void *left, const void *right)
{
    const pl_matmul_step *a = left, *b = right;
    if (a->floats != b->floats)
        return a->floats < b->floats ? -1 : 1;
    return (a->turn > b->turn) - (a->turn < b->turn);
}

static pl_status make(planner *l)
{
    size_t blocks = (size_t)l->p->job.blocks;
    bool product = l->p->job.op == PL_MATMUL_PRODUCT;
    size_t steps = product ? blocks : blocks * (blocks + 1) / 2;
    PL_TRY(PL_NEW(l->rows, blocks));
    PL_TRY(PL_NEW(l->columns, blocks));
    PL_TRY(PL_NEW(l->plan->steps, steps));
    PL_TRY(PL_NEW(l->plan->wants, product ? 2 * blocks * blocks : steps));
    find_lines(l);
    if (product)
        plan_product(l);
    else
        plan_traces(l);
    qsort(l->plan->steps, (size_t)l->plan->step_count, sizeof *l->plan->steps,
          by_lack);
    return PL_OK;
}

pl_status pl_matmul_plan_init(pl_matmul_plan *plan, const pl_placement *p,
                              int32_t worker)
{
    *plan = (pl_matmul_plan) { 0 };
    planner l = { .plan = plan, .p = p, .worker = worker };
    pl_status status = make(&l);
    pl_mem_free(l.rows);
    pl_mem_free(l.columns);
    if (status != PL_OK)
        pl_matmul_plan_close(plan);
    return status;
}

void pl_matmul_plan_close(pl_matmul_plan *plan)
{
    pl_mem_free(plan->steps);
    pl_mem_free(plan->wants);
    *plan = (pl_matmul_plan) { 0 };
}

int64_t pl_matmul_plan_bytes(const pl_matmul_plan *plan, const pl_placement *p,
                             int32_t worker)
{
    int64_t held = pl_placement_held(p, worker);
    int64_t matrices = p->job.op == PL_MATMUL_PRODUCT ? PL_MATRICES : 1;
    return (int64_t)sizeof(float) * (matrices * held + plan->result_floats +
                                     PL_MATMUL_SLOTS * plan->slot_floats);
}
