/* A set of named tensors in one block, each starting on a cache line; the
 * padding stays zero so that sums and norms may run over the whole block. */
#include "tensor/params.h"

#include "base/assert.h"
#include "base/mem.h"
#include "tensor/tensor.h"

#include <string.h>

#define LINE ((int64_t)(PL_CACHE_LINE / sizeof(float)))

typedef struct item {
    pl_params_item info;
    char *name; /* owned; info.name points to it */
} item;

struct pl_params {
    item *items;
    int count;
    int room;
    int64_t block_count; /* floats, including gaps */
    int64_t trained;     /* floats before the first running average */
    int64_t elements;    /* trained floats, without gaps */
    pl_tensor *block;    /* NULL until sealed */
    float *borrowed; /* used instead of block when the memory is not owned */
};

pl_status pl_params_new(pl_params **out)
{
    pl_params *params;
    PL_TRY(PL_NEW(params, 1));
    *out = params;
    return PL_OK;
}

void pl_params_free(pl_params *params)
{
    if (params == NULL)
        return;
    for (int i = 0; i < params->count; i++)
        pl_mem_free(params->items[i].name);
    pl_mem_free(params->items);
    pl_tensor_unref(params->block);
    pl_mem_free(params);
}

static pl_status make_room(pl_params *params)
{
    if (params->count < params->room)
        return PL_OK;
    int room = params->room == 0 ? 8 : 2 * params->room;
    PL_TRY(PL_RESIZE(params->items, (size_t)room));
    params->room = room;
    return PL_OK;
}

static pl_status add(pl_params *params, const char *name, pl_shape shape,
                     bool averaged)
{
    PL_ASSERT(params->block == NULL && !pl_shape_batched(shape));
    PL_ASSERT(averaged || params->trained == params->block_count);
    if (pl_params_find(params, name) >= 0)
        return PL_FAIL(PL_USAGE, "there are two parameters named '%s'", name);
    pl_status status = pl_shape_check(shape);
    if (status != PL_OK)
        return pl_context(status, "parameter '%s'", name);
    PL_TRY(make_room(params));
    char *copy;
    PL_TRY(pl_mem_copy_text(&copy, name));

    int64_t count = pl_shape_count(shape, 1);
    int64_t floats = (count + LINE - 1) / LINE * LINE;
    params->items[params->count++] = (item) {
        .name = copy,
        .info = { copy, shape, count, params->block_count, averaged },
    };
    params->block_count += floats;
    if (!averaged) {
        params->elements += count;
        params->trained = params->block_count;
    }
    return PL_OK;
}

pl_status pl_params_add(pl_params *params, const char *name, pl_shape shape)
{
    return add(params, name, shape, false);
}

pl_status pl_params_add_averaged(pl_params *params, const char *name,
                                 pl_shape shape)
{
    return add(params, name, shape, true);
}

pl_status pl_params_seal(pl_params *params)
{
    PL_ASSERT(params->block == NULL);
    int64_t count = params->block_count > 0 ? params->block_count : LINE;
    return pl_tensor_new(&params->block, PL_FLOAT32, PL_SHAPE(count));
}

pl_status pl_params_seal_in(pl_params *params, float *block)
{
    params->borrowed = block;
    return block != NULL ? PL_OK : pl_params_seal(params);
}

pl_status pl_params_like(pl_params **out, const pl_params *other)
{
    return pl_params_like_in(out, other, NULL);
}

pl_status pl_params_like_in(pl_params **out, const pl_params *other,
                            float *block)
{
    PL_ASSERT(other->block != NULL || other->borrowed != NULL);
    pl_status status;
    pl_params *params = NULL;
    PL_TRY_OUT(status, pl_params_new(&params));
    for (int i = 0; i < other->count; i++) {
        const pl_params_item *info = &other->items[i].info;
        PL_TRY_OUT(status,
                   add(params, info->name, info->shape, info->averaged));
    }
    PL_TRY_OUT(status, pl_params_seal_in(params, block));

    *out = params;
    params = NULL; /* owned by the caller now */
out:
    pl_params_free(params);
    return status;
}

int pl_params_count(const pl_params *params)
{
    return params->count;
}

const pl_params_item *pl_params_get(const pl_params *params, int index)
{
    PL_ASSERT(index >= 0 && index < params->count);
    return &params->items[index].info;
}

int pl_params_find(const pl_params *params, const char *name)
{
    for (int i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, name) == 0)
            return i;
    return -1;
}

float *pl_params_data(const pl_params *params, int index)
{
    return pl_params_block(params) + pl_params_get(params, index)->offset;
}

float *pl_params_block(const pl_params *params)
{
    if (params->borrowed != NULL)
        return params->borrowed;
    PL_ASSERT(params->block != NULL);
    return pl_tensor_f32(params->block);
}

int64_t pl_params_block_count(const pl_params *params)
{
    return params->block_count;
}

int64_t pl_params_elements(const pl_params *params)
{
    return params->elements;
}

int64_t pl_params_trained(const pl_params *params)
{
    return params->trained;
}
