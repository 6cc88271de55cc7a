/* Reference counting of tensor memory, owned or borrowed. */
#include "tensor/tensor.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdatomic.h>

struct pl_tensor {
    atomic_int references;
    pl_dtype dtype;
    pl_shape shape;
    void *data;
    void (*release)(void *owner); /* NULL: nothing to release */
    void *owner;
};

pl_status pl_tensor_new(pl_tensor **out, pl_dtype dtype, pl_shape shape)
{
    PL_TRY(pl_shape_check(shape));
    size_t count = (size_t)pl_shape_count(shape, 1);
    size_t size = (size_t)pl_dtype_bytes(dtype);
    void *data = pl_mem_alloc_aligned(count, size);
    PL_TRY(pl_mem_check(data, count, size));

    pl_status status =
        pl_tensor_wrap(out, dtype, shape, data, pl_mem_free, data);
    if (status != PL_OK)
        pl_mem_free(data);
    return status;
}

pl_status pl_tensor_wrap(pl_tensor **out, pl_dtype dtype, pl_shape shape,
                         void *data, void (*release)(void *owner), void *owner)
{
    PL_ASSERT(!pl_shape_batched(shape));
    PL_TRY(pl_shape_check(shape));
    pl_tensor *tensor;
    PL_TRY(PL_NEW(tensor, 1));
    atomic_init(&tensor->references, 1);
    tensor->dtype = dtype;
    tensor->shape = shape;
    tensor->data = data;
    tensor->release = release;
    tensor->owner = owner;
    *out = tensor;
    return PL_OK;
}

pl_tensor *pl_tensor_ref(pl_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void pl_tensor_unref(pl_tensor *tensor)
{
    if (tensor == NULL)
        return;
    /* Writes by threads that released their reference happen before release. */
    int before =
        atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel);
    PL_ASSERT(before >= 1);
    if (before > 1)
        return;
    if (tensor->release != NULL)
        tensor->release(tensor->owner);
    pl_mem_free(tensor);
}

pl_dtype pl_tensor_dtype(const pl_tensor *tensor)
{
    return tensor->dtype;
}

pl_shape pl_tensor_shape(const pl_tensor *tensor)
{
    return tensor->shape;
}

int64_t pl_tensor_count(const pl_tensor *tensor)
{
    return pl_shape_count(tensor->shape, 1);
}

int64_t pl_tensor_bytes(const pl_tensor *tensor)
{
    return pl_tensor_count(tensor) * pl_dtype_bytes(tensor->dtype);
}

void *pl_tensor_data(pl_tensor *tensor)
{
    return tensor->data;
}

float *pl_tensor_f32(pl_tensor *tensor)
{
    PL_ASSERT(tensor->dtype == PL_FLOAT32);
    return tensor->data;
}
