/* checkpoint_load.c - the part of checkpoint.h that reads tensors back. */
#include "state/checkpoint/checkpoint.h"

#include "base/mem.h"
#include "state/checkpoint/checkpoint_priv.h"
#include "tensor/shape.h"

#include <stdlib.h>
#include <string.h>

/* A range of a wanted tensor's elements in a shard. */
struct range {
    size_t tensor; /* wanted */
    int64_t first, count;
    size_t shard;
    const uint8_t *data; /* perhaps not aligned */
};

struct ranges {
    struct range *list;
    size_t count;
};

static int64_t elements(pl_shape shape)
{
    return pl_shape_count(shape, 1);
}

/* "3920 784x10": where a slice begins, and the shape of the whole. */
static pl_status parse_slice(const char *text, int64_t *first, pl_shape *shape)
{
    char *end;
    *shape = PL_SCALAR;
    *first = strtoll(text, &end, 10);
    bool good = end != text && *end == ' ' && *first >= 0;
    while (good && shape->rank < PL_MAX_RANK) {
        const char *at = end + 1;
        int64_t dim = strtoll(at, &end, 10);
        good = end != at && dim >= 0;
        shape->dim[shape->rank++] = dim;
        if (*end != 'x')
            break;
    }
    if (!good || *end != '\0')
        return PL_FAIL(PL_FORMAT,
                       "slice: expected \"<first> <n>x<n>...\", found "
                       "\"%.100s\"",
                       text);
    return PL_OK;
}

/* What `stored` holds: a whole tensor, or a slice of one. */
static pl_status read_place(const pl_checkpoint *checkpoint,
                            const pl_safetensors *shard,
                            const pl_safetensor *stored, int64_t *first,
                            pl_shape *shape)
{
    char *key;
    *first = 0;
    *shape = stored->shape;
    if (!checkpoint->manifest.sliced)
        return PL_OK;
    PL_TRY(pl_mem_format(&key, SLICE_KEY "%s", stored->name));
    const char *text = pl_safetensors_metadata(shard, key);
    pl_mem_free(key);
    if (text == NULL)
        return PL_OK;
    PL_TRY(parse_slice(text, first, shape));
    PL_TRY(pl_shape_check(*shape));
    if (stored->shape.rank != 1 ||
        stored->shape.dim[0] > elements(*shape) - *first)
        return PL_FAIL(PL_FORMAT, "slice \"%s\" of a tensor that ends before",
                       text);
    return PL_OK;
}

static bool is_held(const char *name)
{
    static const char prefix[] = "optimizer." PL_CHECKPOINT_HELD;
    return strncmp(name, prefix, sizeof prefix - 1) == 0;
}

static bool wants_held(const pl_checkpoint_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_held(tensors[i].name))
            return true;
    return false;
}

static pl_status other_workers(void)
{
    return PL_FAIL(PL_USAGE,
                   "it has the residuals of another number of workers: resume "
                   "with the same --workers");
}

/* Find the wanted tensor that `stored` is for. */
static pl_status match(const pl_safetensor *stored, pl_shape shape,
                       const pl_checkpoint_tensor *tensors, size_t count,
                       size_t *out)
{
    size_t i = 0;
    while (i < count && strcmp(tensors[i].name, stored->name) != 0)
        i++;
    if (i == count && is_held(stored->name))
        return other_workers();
    if (i == count)
        return PL_FAIL(PL_SHAPE, "tensor %.200s is not one of the model's",
                       stored->name);
    char has[PL_SHAPE_TEXT];
    char needs[PL_SHAPE_TEXT];
    if (stored->dtype != PL_FLOAT32 || !pl_shape_equal(shape, tensors[i].shape))
        return PL_FAIL(PL_SHAPE, "tensor %s is %s %s, the model needs %s %s",
                       stored->name, pl_dtype_name(stored->dtype),
                       pl_shape_text(shape, has), pl_dtype_name(PL_FLOAT32),
                       pl_shape_text(tensors[i].shape, needs));
    *out = i;
    return PL_OK;
}

static pl_status list_shard(const pl_checkpoint *checkpoint, size_t index,
                            const pl_checkpoint_tensor *tensors, size_t count,
                            struct ranges *ranges)
{
    const pl_safetensors *shard = checkpoint->shards[index].tensors;
    bool held = wants_held(tensors, count);
    for (size_t i = 0; i < pl_safetensors_count(shard); i++) {
        const pl_safetensor *stored = pl_safetensors_get(shard, i);
        if (!held && is_held(stored->name))
            continue;
        struct range *range = &ranges->list[ranges->count++];
        pl_shape shape;
        pl_status status =
            read_place(checkpoint, shard, stored, &range->first, &shape);
        if (status != PL_OK)
            return pl_context(status, "tensor %.200s", stored->name);
        PL_TRY(match(stored, shape, tensors, count, &range->tensor));
        range->count = elements(stored->shape);
        range->shard = index;
        range->data = stored->data;
    }
    return PL_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Every element of every tensor is present exactly once; the ranges are
 * sorted. */
static pl_status check_cover(const struct ranges *ranges,
                             const pl_checkpoint_tensor *tensors, size_t count)
{
    size_t r = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = tensors[i].name;
        int64_t next = 0, all = elements(tensors[i].shape);
        bool there = r < ranges->count && ranges->list[r].tensor == i;
        if (!there && is_held(name))
            return other_workers();
        if (!there)
            return PL_FAIL(PL_SHAPE, "tensor %s is missing", name);
        for (; r < ranges->count && ranges->list[r].tensor == i; r++) {
            const struct range *range = &ranges->list[r];
            if (range->first < next)
                return PL_FAIL(PL_FORMAT, "tensor %s is in two shards", name);
            if (range->first > next)
                break;
            next += range->count;
        }
        if (next != all)
            return PL_FAIL(PL_SHAPE,
                           "tensor %s: element %lld of %lld is missing", name,
                           (long long)next, (long long)all);
    }
    return PL_OK;
}

/* The elements of `range` that the caller wants; false: none. */
static bool wanted(const pl_checkpoint_tensor *tensor,
                   const struct range *range, int64_t *first, int64_t *count)
{
    int64_t begin = tensor->first;
    int64_t end = begin + tensor->count;
    if (tensor->count == 0)
        end = elements(tensor->shape);
    if (begin < range->first)
        begin = range->first;
    if (end > range->first + range->count)
        end = range->first + range->count;
    *first = begin;
    *count = end - begin;
    return tensor->data != NULL && begin < end;
}

/* Shards whose sums were not checked on opening are checked before use. */
static pl_status check_shards(const pl_checkpoint *checkpoint,
                              const struct ranges *ranges,
                              const pl_checkpoint_tensor *tensors)
{
    for (size_t s = 0; s < checkpoint->manifest.shard_count; s++) {
        const pl_checkpoint_shard *shard = &checkpoint->shards[s];
        bool used = false;
        int64_t first, count;
        for (size_t r = 0; r < ranges->count; r++)
            used = used || (ranges->list[r].shard == s &&
                            wanted(&tensors[ranges->list[r].tensor],
                                   &ranges->list[r], &first, &count));
        if (used && !shard->checked)
            PL_TRY(pl_checkpoint_check_sum(shard,
                                           &checkpoint->manifest.shards[s]));
    }
    return PL_OK;
}

static void copy_ranges(const struct ranges *ranges,
                        const pl_checkpoint_tensor *tensors)
{
    for (size_t r = 0; r < ranges->count; r++) {
        const struct range *range = &ranges->list[r];
        const pl_checkpoint_tensor *tensor = &tensors[range->tensor];
        int64_t first, count;
        if (wanted(tensor, range, &first, &count))
            memcpy(tensor->data + (first - tensor->first),
                   range->data + (size_t)(first - range->first) * sizeof(float),
                   (size_t)count * sizeof(float));
    }
}

static pl_status load(const pl_checkpoint *checkpoint,
                      const pl_checkpoint_tensor *tensors, size_t count,
                      struct ranges *ranges)
{
    size_t stored = 0, shards = checkpoint->manifest.shard_count;
    for (size_t s = 0; s < shards; s++)
        stored += pl_safetensors_count(checkpoint->shards[s].tensors);
    PL_TRY(PL_NEW(ranges->list, stored));
    for (size_t s = 0; s < shards; s++)
        PL_TRY(list_shard(checkpoint, s, tensors, count, ranges));
    qsort(ranges->list, ranges->count, sizeof *ranges->list, compare_ranges);
    PL_TRY(check_cover(ranges, tensors, count));
    PL_TRY(check_shards(checkpoint, ranges, tensors));
    copy_ranges(ranges, tensors);
    for (size_t s = 0; s < shards; s++)
        PL_TRY(pl_map_check(&checkpoint->shards[s].map));
    return PL_OK;
}

pl_status pl_checkpoint_load(const pl_checkpoint *checkpoint,
                             const pl_checkpoint_tensor *tensors, size_t count)
{
    struct ranges ranges = { 0 };
    pl_status status = load(checkpoint, tensors, count, &ranges);
    pl_mem_free(ranges.list);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "checkpoint %s", checkpoint->folder);
}
