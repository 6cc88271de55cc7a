/* open.c - opens a pl_data as a data set: dense arrays and CSR with 64-bit
 * indices are read in place by the reader of sets in memory, everything else a
 * batch at a time. */
#include "base/mem.h"
#include "data/memory/memory.h"
#include "tensor/shape.h"

typedef struct memory_set {
    pl_dataset base;
    const pl_data *data;
    int64_t first; /* example of the data */
} memory_set;

static void release(pl_dataset *base)
{
    pl_mem_free(base->name);
    pl_mem_free(base);
}

static pl_status reader_new(pl_reader **out, pl_dataset *base,
                            const pl_reader_opts *opts)
{
    const memory_set *set = (const memory_set *)base;
    return pl_gather_reader_new(out, base, set->data, set->first, opts);
}

static pl_status keep(pl_dataset *base, int64_t first, int64_t count)
{
    ((memory_set *)base)->first += first;
    base->count = count;
    return PL_OK;
}

static const pl_dataset_ops in_place_ops = {
    .kind = "memory",
    .free = release,
};

static const pl_dataset_ops gathered_ops = {
    .kind = "memory",
    .free = release,
    .reader_new = reader_new,
    .keep = keep,
};

/* Without labels, every row gets label 0. */
static pl_view label_view(const pl_data *data)
{
    static const int32_t none = 0;
    if (data->targets != NULL)
        return (pl_view) {
            .data = data->targets,
            .stride = data->info.classes,
            .dtype = PL_FLOAT32,
            .scale = 1,
        };
    return (pl_view) {
        .data = data->labels != NULL ? data->labels : &none,
        .stride = data->labels != NULL,
        .dtype = PL_INT32,
        .scale = 1,
    };
}

pl_status pl_memory_open(pl_dataset **out, const pl_data *data, bool local)
{
    const pl_data_info *info = &data->info;
    bool in_place = data->make == NULL && data->row_start_32 == NULL;
    memory_set *set;
    PL_TRY(PL_NEW(set, 1));
    set->data = data;
    set->base = (pl_dataset) {
        .ops = in_place ? &in_place_ops : &gathered_ops,
        .count = info->rows,
        .shape = info->sparse ? PL_SHAPE(info->columns) : info->example,
        .classes = info->classes,
        .numeric = info->numeric,
        .local = local,
        .sparse = info->sparse,
        .feature_count = info->columns,
        .features = data->features,
        .labels = label_view(data),
        .weights = { .data = data->weights,
                     .stride = 1,
                     .dtype = PL_FLOAT32,
                     .scale = 1 },
        .row_start = data->row_start,
        .ids = data->ids,
        .values = data->values,
    };
    pl_status status = pl_mem_copy_text(&set->base.name, data->name);
    if (status == PL_OK)
        *out = &set->base;
    else
        release(&set->base);
    return status;
}
