/* placement.c - decides which worker holds which block, by a formula or by the
 * grid that moves the fewest bytes, and counts what must be moved. */
#include "matmul/plan/placement.h"

#include "base/mem.h"
#include "matmul/plan/formula.h"

#include <stdbool.h>

int64_t pl_matmul_first(const pl_matmul_job *job, int32_t block)
{
    return job->n * block / job->blocks;
}

static int64_t length(const pl_matmul_job *job, int32_t block)
{
    return pl_matmul_first(job, block + 1) - pl_matmul_first(job, block);
}

static pl_status init(pl_placement *p, const pl_matmul_job *job)
{
    *p = (pl_placement) { .job = *job };
    return PL_NEW(p->owner, (size_t)job->blocks * (size_t)job->blocks);
}

static pl_status fill_by_formula(pl_placement *p, const char *formula)
{
    int32_t blocks = p->job.blocks, workers = p->job.workers;
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = 0; j < blocks; j++) {
            int64_t value;
            PL_TRY(pl_formula_value(
                formula, &(pl_formula_values) { i, j, workers, blocks },
                &value));
            if (value < 0 || value >= workers)
                return PL_FAIL(PL_USAGE,
                               "\"%.80s\" is %lld for block (%d, %d), expected "
                               "a worker from 0 to %d; end it with %%W",
                               formula, (long long)value, i, j, workers - 1);
            p->owner[i * blocks + j] = (int32_t)value;
        }
    return PL_OK;
}

pl_status pl_placement_parse(pl_placement *out, const pl_matmul_job *job,
                             const char *formula)
{
    PL_TRY(init(out, job));
    pl_status status = fill_by_formula(out, formula);
    if (status != PL_OK)
        pl_placement_close(out);
    return status;
}

/* Workers in `rows` x `columns`, each with neighbouring blocks. */
static void fill_grid(pl_placement *p, int32_t rows, int32_t columns)
{
    int32_t blocks = p->job.blocks;
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = 0; j < blocks; j++)
            p->owner[i * blocks + j] =
                i * rows / blocks * columns + j * columns / blocks;
}

/* The work of the busiest worker, and the floats moved in total. */
static void weigh(const pl_placement *p, int64_t *busiest, int64_t *moved)
{
    *busiest = *moved = 0;
    for (int32_t w = 0; w < p->job.workers; w++) {
        int64_t held = pl_placement_held(p, w);
        *busiest = held > *busiest ? held : *busiest;
        *moved += pl_placement_moved(p, w);
    }
}

static void fill_best_grid(pl_placement *p)
{
    int32_t workers = p->job.workers, best = 1;
    int64_t best_busiest = INT64_MAX, best_moved = INT64_MAX;
    for (int32_t rows = 1; rows <= workers; rows++) {
        int64_t busiest, moved;
        if (workers % rows != 0)
            continue;
        fill_grid(p, rows, workers / rows);
        weigh(p, &busiest, &moved);
        if (busiest < best_busiest ||
            (busiest == best_busiest && moved < best_moved)) {
            best = rows;
            best_busiest = busiest;
            best_moved = moved;
        }
    }
    fill_grid(p, best, workers / best);
}

/* Assign pairs one by one, those off the diagonal first: they have two blocks
 * each. */
static void fill_pairs(pl_placement *p)
{
    int32_t blocks = p->job.blocks, next = 0;
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = i + 1; j < blocks; j++) {
            int32_t owner = next++ % p->job.workers;
            p->owner[i * blocks + j] = p->owner[j * blocks + i] = owner;
        }
    for (int32_t i = 0; i < blocks; i++)
        p->owner[i * blocks + i] = next++ % p->job.workers;
}

pl_status pl_placement_best(pl_placement *out, const pl_matmul_job *job)
{
    PL_TRY(init(out, job));
    if (job->op == PL_MATMUL_PRODUCT)
        fill_best_grid(out);
    else
        fill_pairs(out);
    return PL_OK;
}

void pl_placement_close(pl_placement *placement)
{
    pl_mem_free(placement->owner);
    *placement = (pl_placement) { 0 };
}

int32_t pl_placement_owner(const pl_placement *p, int32_t i, int32_t j)
{
    return p->owner[i * p->job.blocks + j];
}

int64_t pl_placement_floats(const pl_placement *p, int32_t i, int32_t j)
{
    return length(&p->job, i) * length(&p->job, j);
}

int32_t pl_placement_tracer(const pl_placement *p, int32_t i, int32_t j)
{
    return (i + j) % 2 == 0 ? pl_placement_owner(p, i, j)
                            : pl_placement_owner(p, j, i);
}

int64_t pl_placement_held(const pl_placement *p, int32_t worker)
{
    int64_t floats = 0;
    for (int32_t i = 0; i < p->job.blocks; i++)
        for (int32_t j = 0; j < p->job.blocks; j++)
            if (pl_placement_owner(p, i, j) == worker)
                floats += pl_placement_floats(p, i, j);
    return floats;
}

static int64_t moved_for_traces(const pl_placement *p, int32_t worker)
{
    int64_t floats = 0;
    for (int32_t i = 0; i < p->job.blocks; i++)
        for (int32_t j = i + 1; j < p->job.blocks; j++)
            if (pl_placement_tracer(p, i, j) == worker &&
                pl_placement_owner(p, i, j) != pl_placement_owner(p, j, i))
                floats += pl_placement_floats(p, i, j);
    return floats;
}

/* Whether the worker holds a block in this row, or column. */
static bool holds_line(const pl_placement *p, int32_t worker, int32_t line,
                       bool row)
{
    for (int32_t k = 0; k < p->job.blocks; k++)
        if (pl_placement_owner(p, row ? line : k, row ? k : line) == worker)
            return true;
    return false;
}

/* For a block of the result a row of A and a column of B are needed. */
static int64_t moved_for_product(const pl_placement *p, int32_t worker)
{
    int64_t floats = 0;
    for (int32_t line = 0; line < p->job.blocks; line++) {
        bool row = holds_line(p, worker, line, true);
        bool column = holds_line(p, worker, line, false);
        for (int32_t k = 0; k < p->job.blocks; k++) {
            if (row && pl_placement_owner(p, line, k) != worker)
                floats += pl_placement_floats(p, line, k);
            if (column && pl_placement_owner(p, k, line) != worker)
                floats += pl_placement_floats(p, k, line);
        }
    }
    return floats;
}

int64_t pl_placement_moved(const pl_placement *p, int32_t worker)
{
    return p->job.op == PL_MATMUL_TRACE ? moved_for_traces(p, worker)
                                        : moved_for_product(p, worker);
}
