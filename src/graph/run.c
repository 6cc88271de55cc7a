/* Queries of operators about their current run. */
#include "graph/op.h"
#include "graph/plan_priv.h"
#include "kernels/cpu/team.h"
#include "tensor/shape.h"

/* Fewer elements are not worth waking a thread for (some 10 us). */
#define LEAST_CUT (64 * 1024)
/* Ranges per thread, so that a slow thread does not delay the rest. */
#define RANGES 4

int64_t pl_run_groups(const pl_op_run *run)
{
    int64_t lanes = run->state->kernels->lanes;
    return (run->state->rows + lanes - 1) / lanes;
}

int64_t pl_run_planes(const pl_op_run *run, int64_t channels)
{
    if (!run->blocked)
        return pl_run_groups(run) * channels;
    int64_t block = run->state->kernels->lanes;
    return run->state->rows * ((channels + block - 1) / block);
}

int64_t pl_run_count(const pl_op_run *run, const pl_node *node)
{
    if (run->blocked && node->shape.rank == 4 && pl_shape_batched(node->shape))
        return pl_plan_blocked_count(run->state->kernels, node->shape,
                                     run->state->rows);
    int64_t rows = run->lanes ? pl_run_groups(run) * run->state->kernels->lanes
                              : run->state->rows;
    return pl_shape_count(node->shape, rows);
}

typedef struct cut {
    const pl_op_run *run;
    pl_run_range *range;
    int64_t count, grain;
    int items;
} cut;

static void run_item(void *arg, int item, int thread)
{
    (void)thread;
    const cut *c = arg;
    int64_t grains = (c->count + c->grain - 1) / c->grain;
    int64_t first = grains * item / c->items * c->grain;
    int64_t last = grains * (item + 1) / c->items * c->grain;
    if (last > c->count)
        last = c->count;
    if (last > first)
        c->range(c->run, first, last - first);
}

void pl_run_cut(const pl_op_run *run, int64_t count, int64_t grain,
                pl_run_range *range)
{
    pl_run_cut_over(run, run->node, count, grain, range);
}

void pl_run_cut_over(const pl_op_run *run, const pl_node *node, int64_t count,
                     int64_t grain, pl_run_range *range)
{
    int threads = run->state->threads;
    if (threads <= 1 || pl_run_count(run, node) < LEAST_CUT) {
        range(run, 0, count);
        return;
    }
    cut c = { run, range, count, grain, RANGES * threads };
    pl_team_run(threads, c.items, run_item, &c);
}

const float *pl_run_in(const pl_op_run *run, int i)
{
    return run->in[i]->data;
}
