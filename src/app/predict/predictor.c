/* predictor.c - splits the rows of a batch into parts of a fixed size and runs
 * the network on them with several threads. */
#include "app/predict/predictor.h"

#include "base/assert.h"
#include "base/mem.h"
#include "graph/plan.h"

#include <string.h>

#define PART_ROWS 64
#define PARTS     16 /* of one run: enough to keep every thread busy */

/* The state of one thread. */
typedef struct worker {
    pl_exec *exec;
} worker;

struct pl_predictor {
    pl_predictor_opts opts;
    int64_t classes;
    pl_plan *plan;
    int worker_count;
    worker *workers; /* one per thread of the pool */
    float *logits;   /* [PARTS * opts.part, classes] */
    /* The current run. */
    const pl_view *examples;
    int64_t rows;
};

static pl_status open_execs(pl_predictor *predictor)
{
    const pl_network *network = predictor->opts.network;
    pl_node *outputs[] = { network->logits };
    PL_TRY(pl_plan_new(&predictor->plan, &(pl_plan_opts) {
                                             .graph = network->graph,
                                             .batch = predictor->opts.part,
                                             .kernels = predictor->opts.kernels,
                                             .outputs = outputs,
                                             .output_count = 1,
                                         }));
    int threads = pl_pool_threads(predictor->opts.pool);
    PL_TRY(PL_NEW(predictor->workers, (size_t)threads));
    predictor->worker_count = threads;
    for (int t = 0; t < threads; t++)
        PL_TRY(pl_exec_new(&predictor->workers[t].exec, predictor->plan,
                           network->params, NULL));
    return PL_NEW(predictor->logits,
                  (size_t)(pl_predictor_room(predictor) * predictor->classes));
}

pl_status pl_predictor_new(pl_predictor **out, const pl_predictor_opts *opts)
{
    pl_predictor *predictor;
    PL_TRY(PL_NEW(predictor, 1));
    predictor->opts = *opts;
    if (opts->part <= 0 || opts->part > PART_ROWS)
        predictor->opts.part = PART_ROWS;
    predictor->classes = pl_node_shape(opts->network->logits).dim[1];
    pl_status status = open_execs(predictor);
    if (status != PL_OK) {
        pl_predictor_free(predictor);
        return status;
    }
    *out = predictor;
    return PL_OK;
}

void pl_predictor_free(pl_predictor *predictor)
{
    if (predictor == NULL)
        return;
    for (int t = 0; t < predictor->worker_count; t++)
        pl_exec_free(predictor->workers[t].exec);
    pl_mem_free(predictor->workers);
    pl_mem_free(predictor->logits);
    pl_plan_free(predictor->plan);
    pl_mem_free(predictor);
}

int64_t pl_predictor_room(const pl_predictor *predictor)
{
    return PARTS * predictor->opts.part;
}

static void run_part(void *arg, int part, int thread)
{
    /* The loss is not used, so one label serves for all rows. */
    static const uint8_t label = 0;
    pl_predictor *predictor = arg;
    int64_t first = part * predictor->opts.part;
    int64_t rows = predictor->rows - first;
    if (rows > predictor->opts.part)
        rows = predictor->opts.part;
    pl_view views[PL_INPUT_COUNT] = {
        [PL_INPUT_FEATURES] = pl_view_from(predictor->examples, first),
        [PL_INPUT_LABELS] = { .data = &label, .dtype = PL_UINT8, .scale = 1 },
    };
    pl_exec *exec = predictor->workers[thread].exec;
    pl_exec_run(exec, &(pl_exec_args) { .rows = rows, .views = views });
    memcpy(predictor->logits + first * predictor->classes,
           pl_exec_output(exec, 0),
           (size_t)(rows * predictor->classes) * sizeof(float));
}

const float *pl_predictor_run(pl_predictor *predictor, const pl_view *examples,
                              int64_t rows)
{
    PL_ASSERT(rows >= 1 && rows <= pl_predictor_room(predictor));
    int64_t part = predictor->opts.part;
    predictor->examples = examples;
    predictor->rows = rows;
    pl_pool_run(predictor->opts.pool, (int)((rows + part - 1) / part), run_part,
                predictor);
    return predictor->logits;
}
