/* Which reader a data set has: its own, or the one of sets in memory; and
 * checks common to all readers. */
#include "data/dataset.h"

#include "base/assert.h"
#include "base/rng.h"
#include "data/dense/augment.h"
#include "data/shuffle.h"

#include <stdio.h>

void pl_dataset_free(pl_dataset *set)
{
    if (set != NULL)
        set->ops->free(set);
}

pl_status pl_dataset_keep(pl_dataset *set, int64_t first, int64_t count)
{
    if (set->ops->keep != NULL)
        return set->ops->keep(set, first, count);
    if (set->ops->reader_new != NULL)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s is read as a stream, so no part of it can be held "
                       "out; give --test-data",
                       set->name);
    PL_ASSERT(first >= 0 && count >= 0 && first + count <= set->count);
    set->count = count;
    if (set->labels.data != NULL)
        set->labels = pl_view_from(&set->labels, first);
    if (set->weights.data != NULL)
        set->weights = pl_view_from(&set->weights, first);
    if (set->row_names != NULL)
        set->row_names += first;
    if (set->sparse)
        set->row_start += first;
    else
        set->features = pl_view_from(&set->features, first);
    return PL_OK;
}

pl_status pl_dataset_check(const pl_dataset *set, bool thorough)
{
    const pl_map *map = set->ops->source != NULL ? set->ops->source(set) : NULL;
    if (map == NULL || (!thorough && pl_map_intact(map)))
        return PL_OK;
    return pl_map_check(map);
}

static pl_status resolve(pl_reader_opts *out, const pl_reader_opts *opts)
{
    *out = *opts;
    if (out->micro_batches == 0)
        out->micro_batches = 1;
    if (out->workers == 0)
        out->workers = 1;
    if (out->batch < 1)
        return PL_FAIL(PL_USAGE, "a batch has %lld rows, expected at least 1",
                       (long long)out->batch);
    if (out->micro_batches < 1)
        return PL_FAIL(PL_USAGE, "%d micro-batches a step, expected 1 or more",
                       out->micro_batches);
    if (out->worker < 0 || out->worker >= out->workers)
        return PL_FAIL(PL_USAGE, "worker %d of %d, expected 0 to %d",
                       out->worker, out->workers, out->workers - 1);
    PL_ASSERT(!out->keep_rest ||
              (out->workers == 1 && out->micro_batches == 1));
    return PL_OK;
}

static bool augments(const pl_dataset *set, const pl_reader_opts *opts)
{
    const pl_augment *augment = &set->augment;
    return !opts->one_pass &&
           (augment->flip || augment->shift > 0 || augment->crop > 0);
}

static pl_status open_reader(pl_reader **out, pl_dataset *set,
                             const pl_reader_opts *opts)
{
    if (set->ops->reader_new != NULL)
        return set->ops->reader_new(out, set, opts);
    return augments(set, opts) ? pl_augment_reader_new(out, set, opts)
                               : pl_shuffle_reader_new(out, set, opts);
}

pl_status pl_reader_new(pl_reader **out, pl_dataset *set,
                        const pl_reader_opts *opts)
{
    pl_reader_opts complete;
    PL_TRY(resolve(&complete, opts));
    if (set->local && complete.workers > 1) {
        complete.seed = pl_rng_key(complete.seed, (uint64_t)complete.worker);
        complete.worker = 0;
        complete.workers = 1;
    }
    pl_status status = open_reader(out, set, &complete);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", set->name);
}

void pl_reader_free(pl_reader *reader)
{
    if (reader != NULL)
        reader->ops->free(reader);
}

pl_status pl_reader_next(pl_reader *reader, pl_batch *out)
{
    return reader->ops->next(reader, out);
}

void pl_reader_position(const pl_reader *reader, pl_position *out)
{
    reader->ops->position(reader, out);
    PL_ASSERT(out->used <= PL_POSITION_BYTES);
}

pl_status pl_reader_seek(pl_reader *reader, const pl_position *position)
{
    return reader->ops->seek(reader, position);
}

void pl_reader_go(pl_reader *reader, int64_t step)
{
    reader->ops->go(reader, step);
}

pl_status pl_reader_too_few(const pl_dataset *set, const pl_reader_opts *opts,
                            int64_t share)
{
    char cure[96] = "train with fewer workers", one[64] = "";
    int64_t most = share / opts->micro_batches;
    if (most > 0)
        snprintf(cure, sizeof cure, "lower --batch to %lld", (long long)most);
    else if (share > 0)
        snprintf(cure, sizeof cure,
                 "lower --micro-batches to %lld and --batch to 1",
                 (long long)share);
    if (opts->workers > 1)
        snprintf(one, sizeof one, ", one of which has only %lld",
                 (long long)share);
    return PL_FAIL(PL_USAGE,
                   "%lld examples are too few for one step of batch %lld "
                   "x %d micro-batches x %d workers%s; %s",
                   (long long)set->count, (long long)opts->batch,
                   opts->micro_batches, opts->workers, one, cure);
}

void pl_reader_describe(const pl_reader *reader, char text[PL_READS_TEXT])
{
    reader->ops->describe(reader, text);
}
