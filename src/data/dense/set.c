/* set.c - owns the examples of a dense set, and decides what is converted:
 * elements that no view can read, and channels that come last. */
#include "data/dense/set.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

#include <string.h>

#define MOST_CHANNELS 4 /* for channels to be detected by their number */

typedef struct dense_set {
    pl_dataset base;
    pl_map map;
    void *memory;
    int32_t *labels;
    float *targets;
    char **row_names;
} dense_set;

static void release(pl_dataset *base)
{
    dense_set *set = (dense_set *)base;
    pl_map_close(&set->map);
    pl_mem_free(set->memory);
    pl_mem_free(set->labels);
    pl_mem_free(set->targets);
    pl_mem_free(set->row_names);
    pl_mem_free(set->base.name);
    pl_mem_free(set);
}

static const pl_map *source(const pl_dataset *base)
{
    return &((const dense_set *)base)->map;
}

static const pl_dataset_ops dense_ops = {
    .kind = "dense",
    .free = release,
    .source = source,
};

void pl_dense_parts_close(pl_dense_parts *parts)
{
    pl_map_close(&parts->map);
    pl_mem_free(parts->memory);
    pl_mem_free(parts->labels);
    pl_mem_free(parts->targets);
    pl_mem_free(parts->row_names);
    pl_mem_free(parts->name);
    *parts = (pl_dense_parts) { .name = NULL };
}

static int32_t count_classes(const pl_dense_parts *parts)
{
    int32_t most = -1;
    if (parts->labels != NULL)
        for (int64_t i = 0; i < parts->count; i++)
            most = parts->labels[i] > most ? parts->labels[i] : most;
    return most + 1;
}

static pl_status check(const pl_dense_parts *parts)
{
    if (parts->count < 1)
        return PL_FAIL(PL_FORMAT, "%s holds no examples", parts->name);
    pl_status status = pl_shape_check(parts->shape);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", parts->name);
}

static void fill(dense_set *set, const pl_dense_parts *parts)
{
    pl_dataset *base = &set->base;
    int64_t row = pl_shape_row(parts->shape);
    base->ops = &dense_ops;
    base->name = parts->name;
    base->count = parts->count;
    base->shape = parts->shape;
    base->classes = parts->classes > 0 ? parts->classes : count_classes(parts);
    if (parts->memory != NULL)
        base->held_bytes = parts->count * row * pl_dtype_bytes(parts->dtype);
    base->features = (pl_view) {
        .data = parts->data,
        .stride = row,
        .dtype = parts->dtype,
        .scale = parts->dtype == PL_UINT8 ? 1.0f / 255.0f : 1.0f,
    };
    base->numeric = parts->targets != NULL;
    base->labels = (pl_view) {
        .data = parts->labels,
        .stride = 1,
        .dtype = PL_INT32,
        .scale = 1.0f,
    };
    if (base->numeric) {
        base->labels.data = parts->targets;
        base->labels.stride = parts->classes;
        base->labels.dtype = PL_FLOAT32;
    }
    set->map = parts->map;
    set->memory = parts->memory;
    set->labels = parts->labels;
    set->targets = parts->targets;
    set->row_names = parts->row_names;
    base->row_names = (const char *const *)parts->row_names;
}

pl_status pl_dense_set_new(pl_dataset **out, pl_dense_parts *parts)
{
    dense_set *set = NULL;
    pl_status status = check(parts);
    if (status == PL_OK)
        status = PL_NEW(set, 1);
    if (status != PL_OK) {
        pl_dense_parts_close(parts);
        return status;
    }
    fill(set, parts);
    *parts = (pl_dense_parts) { .name = NULL };
    *out = &set->base;
    return PL_OK;
}

/* From now on the elements are in `memory` only. */
static pl_status move_to(pl_dense_parts *parts, void *memory)
{
    pl_status status = pl_map_check(&parts->map);
    pl_map_close(&parts->map);
    parts->map = (pl_map) { .data = NULL };
    pl_mem_free(parts->memory);
    parts->memory = memory;
    parts->data = memory;
    return status;
}

pl_status pl_dense_take_elements(pl_dense_parts *parts, pl_element element,
                                 const uint8_t *from)
{
    size_t count = (size_t)(parts->count * pl_shape_row(parts->shape));
    parts->data = from;
    if (pl_element_in_place(element, from, &parts->dtype))
        return PL_OK;
    float *floats;
    PL_TRY(PL_NEW_ALIGNED(floats, count));
    pl_element_floats(element, from, count, floats);
    parts->dtype = PL_FLOAT32;
    return move_to(parts, floats);
}

static bool are_last(pl_shape shape, pl_channel_order channels)
{
    if (shape.rank != 3 || channels == PL_CHANNELS_FIRST)
        return false;
    return channels == PL_CHANNELS_LAST ||
           (shape.dim[2] <= MOST_CHANNELS && shape.dim[0] > MOST_CHANNELS);
}

/* [pixels, channels] -> [channels, pixels] of each example. */
static void turn(const pl_dense_parts *parts, uint8_t *to)
{
    size_t bytes = (size_t)pl_dtype_bytes(parts->dtype);
    int64_t pixels = parts->shape.dim[0] * parts->shape.dim[1];
    int64_t channels = parts->shape.dim[2];
    const uint8_t *from = parts->data;
    for (int64_t i = 0; i < parts->count; i++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++) {
                int64_t at = (i * pixels + p) * channels + c;
                memcpy(to, from + (size_t)at * bytes, bytes);
                to += bytes;
            }
}

pl_status pl_dense_channels_first(pl_dense_parts *parts,
                                  pl_channel_order channels)
{
    pl_shape shape = parts->shape;
    if (channels == PL_CHANNELS_LAST && shape.rank != 3) {
        char text[PL_SHAPE_TEXT];
        return PL_FAIL(PL_USAGE,
                       "--channels last: examples of %s are %s, expected "
                       "height, width and channels",
                       parts->name, pl_shape_text(shape, text));
    }
    if (!are_last(shape, channels))
        return PL_OK;
    uint8_t *turned;
    size_t bytes = (size_t)(parts->count * pl_shape_row(shape) *
                            pl_dtype_bytes(parts->dtype));
    PL_TRY(PL_NEW_ALIGNED(turned, bytes));
    turn(parts, turned);
    if (channels == PL_CHANNELS_AUTO)
        pl_log(PL_LOG_INFO,
               "%s: the %lld channels come last and are moved to the front; "
               "--channels first prevents that",
               parts->name, (long long)shape.dim[2]);
    parts->shape = PL_SHAPE(shape.dim[2], shape.dim[0], shape.dim[1]);
    return move_to(parts, turned);
}

pl_status pl_dense_no_test(const char *name)
{
    return PL_FAIL(PL_USAGE,
                   "%s has no test examples of its own: give --test-data SRC, "
                   "or --holdout 0.1 to test on its last tenth, or "
                   "--eval-every never",
                   name);
}
