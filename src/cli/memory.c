#include "cli/memory.h"

#include "cli/progress.h"

#include <stdio.h>

/* Large blocks are rounded up to huge pages, and there is more than is
 * counted, all of it small: one part in this many. */
#define REST 32

const char *pl_memory_text(int64_t bytes, char text[PL_BYTES_TEXT])
{
    char number[16];
    snprintf(text, PL_BYTES_TEXT, "%s%s",
             pl_progress_number((double)bytes, number),
             bytes < 1000 ? " B" : "B");
    return text;
}

pl_budget_opts pl_memory_plan(const pl_memory_opts *opts)
{
    const pl_train_options *train = &opts->options->train;
    int64_t data_bytes = 0;
    if (opts->train != NULL)
        data_bytes += opts->train->held_bytes;
    if (opts->test != NULL)
        data_bytes += opts->test->held_bytes;
    return (pl_budget_opts) {
        .network = opts->network,
        .kernels = opts->kernels,
        .threads = (int)opts->options->train.threads,
        .batch = train->batch,
        .slots = pl_optim_list()[train->optimizer]->slot_count,
        .aggregates = train->micro_batches > 1 || train->clip > 0,
        .eval_batch = opts->test != NULL
                          ? pl_loop_eval_batch(opts->test, train->eval_batch)
                          : 0,
        .hogwild = train->hogwild,
        .saves = train->checkpoint_every.unit != PL_EVERY_NEVER,
        .elsewhere = opts->elsewhere,
        .streams = opts->train != NULL && opts->train->ops->reader_new != NULL,
        .data_bytes = data_bytes,
    };
}

/* "parameters 244 MB, ..." without what takes nothing. */
static void list_parts(const pl_budget *budget, char *text, size_t room)
{
    const struct {
        const char *name;
        int64_t bytes;
    } parts[] = {
        { "parameters", budget->params },
        { "optimizer", budget->optimizer },
        { "gradients and results", budget->work },
        { "tests", budget->evaluation },
        { "checkpoints", budget->checkpoint },
        { "data", budget->data },
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char number[PL_BYTES_TEXT];
        if (parts[i].bytes == 0 || used >= room)
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s %s",
                                 used > 0 ? ", " : "", parts[i].name,
                                 pl_memory_text(parts[i].bytes, number));
    }
}

pl_status pl_memory_check(const pl_budget_opts *opts, pl_ram available)
{
    pl_budget budget;
    PL_TRY(pl_budget_make(&budget, opts));
    if (available.bytes > INT64_MAX / 2)
        return PL_OK;
    int64_t usable =
        available.bytes - available.bytes / REST + opts->data_bytes;
    if (budget.total <= usable)
        return PL_OK;
    int64_t largest;
    PL_TRY(pl_budget_largest(opts, usable, &largest));
    char parts[256], instead[96];
    char need[PL_BYTES_TEXT], have[PL_BYTES_TEXT];
    list_parts(&budget, parts, sizeof parts);
    if (largest > 0)
        snprintf(instead, sizeof instead,
                 "the largest batch that fits is --batch %lld",
                 (long long)largest);
    else
        snprintf(instead, sizeof instead, "not even --batch 1 fits%s",
                 opts->eval_batch > 1 ? "; a smaller --eval-batch may help"
                                      : "");
    return PL_FAIL(PL_USAGE,
                   "--batch %lld needs %s of memory (%s), but %s has %s "
                   "to give; %s",
                   (long long)opts->batch, pl_memory_text(budget.total, need),
                   parts, available.limit, pl_memory_text(usable, have),
                   instead);
}
