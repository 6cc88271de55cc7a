/* Whether a training fits into the available memory, and what to change if it
 * does not: the advice is tried before it is given. */
#include "app/train/memory.h"

#include "app/view/layout.h"

#include <stdio.h>

/* Large blocks are rounded up to huge pages, and small allocations are not
 * counted: one part in REST is reserved for them. */
#define REST 32

const char *pl_memory_text(int64_t bytes, char text[PL_BYTES_TEXT])
{
    char number[16];
    snprintf(text, PL_BYTES_TEXT, "%s%s",
             pl_layout_number((double)bytes, number),
             bytes < 1000 && bytes > -1000 ? " B" : "B");
    return text;
}

/* Blocks besides the parameters: slots, and with --local-steps the outer
 * momentum and a copy from the start of the round. */
static int slots_of(const pl_train_options *train)
{
    int slots = pl_optim_list()[train->optimizer]->slot_count;
    bool outer = train->outer_momentum > 0;
    bool topk = train->codec == PL_TRAIN_CODEC_TOPK;
    int held = pl_options_own_momentum(train) > 0 ? 2 : 1;
    /* What the codec holds back at a worker, before and after a step; for
     * checkpoints, the chief has that of all workers. */
    if (topk && train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE)
        return slots + (2 + (int)train->workers) * held;
    if (topk && train->strategy == PL_TRAIN_STRATEGY_PS)
        return slots + 2;
    return train->local_steps > 1 ? 2 * slots + 1 + outer : slots;
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
        .bf16 = pl_options_bf16(train),
        .batch = train->batch,
        .slots = slots_of(train),
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

/* "parameters 244 MB, ..." without parts of size 0. */
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
        { "thread stacks and mapped files", budget->addresses },
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

/* What would fit into `usable` bytes: a smaller batch, or one with smaller
 * tests, or otherwise `cure`. */
static pl_status find_cure(const pl_budget_opts *opts, int64_t usable,
                           const char *cure, char *text, size_t room)
{
    int64_t largest;
    pl_budget_opts small = *opts;
    small.eval_batch = opts->eval_batch > 1 ? 1 : opts->eval_batch;
    PL_TRY(pl_budget_largest(opts, usable, &largest));
    if (largest > 0) {
        snprintf(text, room, "the largest batch that fits is --batch %lld",
                 (long long)largest);
        return PL_OK;
    }
    PL_TRY(pl_budget_largest(&small, usable, &largest));
    if (largest > 0)
        snprintf(text, room,
                 "the largest batch that fits is --batch %lld with "
                 "--eval-batch 1",
                 (long long)largest);
    else
        snprintf(text, room, "not even --batch 1 fits%s%s",
                 cure != NULL ? ": " : "", cure != NULL ? cure : "");
    return PL_OK;
}

pl_status pl_memory_check(const pl_budget_opts *opts, pl_ram available,
                          const char *cure)
{
    pl_budget budget;
    PL_TRY(pl_budget_make(&budget, opts));
    if (available.bytes > INT64_MAX / 2)
        return PL_OK;
    int64_t usable =
        available.bytes - available.bytes / REST + opts->data_bytes;
    if (budget.total <= usable)
        return PL_OK;
    char parts[320], instead[512];
    char need[PL_BYTES_TEXT], have[PL_BYTES_TEXT];
    list_parts(&budget, parts, sizeof parts);
    PL_TRY(find_cure(opts, usable, cure, instead, sizeof instead));
    return PL_FAIL(PL_USAGE,
                   "--batch %lld needs %s of memory (%s), but %s has %s "
                   "available; %s",
                   (long long)opts->batch, pl_memory_text(budget.total, need),
                   parts, available.limit, pl_memory_text(usable, have),
                   instead);
}
