/* arrays.c - makes a pl_data of a program's arrays: checks that they match and
 * that every label and index is in range, so that no later step has to, and
 * copies on request. */
#include "base/mem.h"
#include "data/memory/memory.h"
#include "tensor/shape.h"

#include <math.h>
#include <string.h>

#define COLUMNS_MOST INT64_C(4294967295)

void pl_data_free(pl_data *data)
{
    if (data == NULL)
        return;
    for (int i = 0; i < data->copy_count; i++)
        pl_mem_free(data->copies[i]);
    pl_mem_free(data->name);
    pl_mem_free(data);
}

void pl_data_describe(const pl_data *data, pl_data_info *out)
{
    *out = data->info;
}

static pl_status begin(pl_data **out, const char *name, const char *otherwise,
                       int64_t rows)
{
    pl_data *data;
    name = name != NULL ? name : otherwise;
    if (name[0] == '\0')
        return PL_FAIL(PL_USAGE, "data needs a name that is not empty");
    if (rows < 1 || rows > UINT32_MAX)
        return PL_FAIL(PL_USAGE, "%s: %lld rows, expected 1 to 2^32 - 1", name,
                       (long long)rows);
    PL_TRY(PL_NEW(data, 1));
    data->info.rows = rows;
    pl_status status = pl_mem_copy_text(&data->name, name);
    if (status == PL_OK)
        *out = data;
    else
        pl_data_free(data);
    return status;
}

/* A copy that is freed with the data. */
static pl_status copy_array(pl_data *data, const void *array, int64_t count,
                            size_t size, const void **out)
{
    void *copy = pl_mem_alloc_aligned((size_t)count, size);
    PL_TRY(pl_mem_check(copy, (size_t)count, size));
    if (count > 0) /* rows without non-zeros may have no array */
        memcpy(copy, array, (size_t)count * size);
    data->copies[data->copy_count++] = copy;
    *out = copy;
    return PL_OK;
}

/* Labels are 0 .. classes - 1; without a number of classes the largest label
 * determines it. */
static pl_status take_labels(pl_data *data, const int32_t *labels,
                             int32_t classes, bool copy)
{
    int64_t rows = data->info.rows;
    int32_t most = 0;
    for (int64_t i = 0; labels != NULL && i < rows; i++) {
        if (labels[i] < 0 || labels[i] == INT32_MAX ||
            (classes > 0 && labels[i] >= classes))
            return PL_FAIL(PL_USAGE,
                           "%s: row %lld has the label %d, expected 0 to %d",
                           data->name, (long long)i, labels[i],
                           (classes > 0 ? classes : INT32_MAX) - 1);
        most = labels[i] > most ? labels[i] : most;
    }
    data->info.labelled = labels != NULL;
    data->info.classes = classes > 0 ? classes : labels != NULL ? most + 1 : 1;
    data->labels = labels;
    if (labels == NULL || !copy)
        return PL_OK;
    const void *kept;
    PL_TRY(copy_array(data, labels, rows, sizeof *labels, &kept));
    data->labels = kept;
    return PL_OK;
}

/* Numbers to be predicted; one that is not finite would corrupt training. */
static pl_status take_targets(pl_data *data, const pl_data_dense *arrays)
{
    int64_t rows = data->info.rows;
    int32_t width = arrays->target_count > 0 ? arrays->target_count : 1;
    if (arrays->labels != NULL || arrays->target_count < 0 ||
        rows > INT64_MAX / 8 / width)
        return PL_FAIL(PL_USAGE,
                       "%s: labels and targets: give one of them, and 1 target "
                       "a row or more",
                       data->name);
    for (int64_t i = 0; i < rows * width; i++)
        if (!isfinite(arrays->targets[i]))
            return PL_FAIL(PL_USAGE,
                           "%s: row %lld has a target that is not "
                           "finite",
                           data->name, (long long)(i / width));
    data->info.labelled = data->info.numeric = true;
    data->info.classes = width;
    data->targets = arrays->targets;
    if (!arrays->copy)
        return PL_OK;
    const void *kept;
    PL_TRY(
        copy_array(data, arrays->targets, rows * width, sizeof(float), &kept));
    data->targets = kept;
    return PL_OK;
}

static pl_status take_weights(pl_data *data, const float *weights, bool copy)
{
    int64_t rows = data->info.rows;
    for (int64_t i = 0; weights != NULL && i < rows; i++)
        if (!(weights[i] >= 0) || !isfinite(weights[i]))
            return PL_FAIL(PL_USAGE,
                           "%s: row %lld has the weight %g, expected a number "
                           "from 0 on",
                           data->name, (long long)i, (double)weights[i]);
    data->weights = weights;
    if (weights == NULL || !copy)
        return PL_OK;
    const void *kept;
    PL_TRY(copy_array(data, weights, rows, sizeof *weights, &kept));
    data->weights = kept;
    return PL_OK;
}

static pl_status check_example(const pl_data *data, pl_shape example)
{
    pl_status status = PL_OK;
    if (example.rank < 1 || example.rank >= PL_MAX_RANK)
        status = PL_FAIL(PL_USAGE,
                         "an example of %d dimensions, expected 1 "
                         "to %d",
                         example.rank, PL_MAX_RANK - 1);
    else if (pl_shape_batched(example) || pl_shape_check(example) != PL_OK)
        status = PL_FAIL(PL_USAGE, "an example with a size below 1");
    return status == PL_OK ? PL_OK : pl_context(status, "%s", data->name);
}

/* Rows with gaps between them are copied without the gaps. */
static pl_status copy_rows(pl_data *data, int64_t row)
{
    const pl_view *from = &data->features;
    size_t size = from->dtype == PL_UINT8 ? 1 : sizeof(float);
    int64_t rows = data->info.rows;
    char *copy = pl_mem_alloc_aligned((size_t)(rows * row), size);
    PL_TRY(pl_mem_check(copy, (size_t)(rows * row), size));
    for (int64_t r = 0; r < rows; r++)
        memcpy(copy + (size_t)(r * row) * size,
               (const char *)from->data + (size_t)(r * from->stride) * size,
               (size_t)row * size);
    data->copies[data->copy_count++] = copy;
    data->features.data = copy;
    data->features.stride = row;
    return PL_OK;
}

static pl_status take_dense(pl_data *data, const pl_data_dense *arrays)
{
    int64_t row, total;
    bool bytes = arrays->dtype == PL_UINT8;
    PL_TRY(check_example(data, arrays->example));
    row = pl_shape_row(arrays->example);
    int64_t stride = arrays->stride > 0 ? arrays->stride : row;
    if (arrays->features == NULL)
        return PL_FAIL(PL_USAGE, "%s: no features", data->name);
    if (!bytes && arrays->dtype != PL_FLOAT32)
        return PL_FAIL(PL_USAGE,
                       "%s: features of type %d, expected float32 or uint8",
                       data->name, arrays->dtype);
    if (arrays->stride < 0 || stride < row ||
        __builtin_mul_overflow(stride, data->info.rows * 8, &total))
        return PL_FAIL(PL_USAGE,
                       "%s: %lld elements from row to row, but an example has "
                       "%lld",
                       data->name, (long long)arrays->stride, (long long)row);
    data->info.example = arrays->example;
    data->features = (pl_view) {
        .data = arrays->features,
        .stride = stride,
        .dtype = bytes ? PL_UINT8 : PL_FLOAT32,
        .scale = arrays->scale != 0 ? arrays->scale
                 : bytes            ? 1.0f / 255.0f
                                    : 1.0f,
    };
    if (arrays->copy)
        PL_TRY(copy_rows(data, row));
    PL_TRY(take_weights(data, arrays->weights, arrays->copy));
    if (arrays->targets != NULL)
        return take_targets(data, arrays);
    return take_labels(data, arrays->labels, arrays->classes, arrays->copy);
}

pl_status pl_data_from_dense(pl_data **out, const pl_data_dense *arrays)
{
    pl_data *data;
    PL_TRY(begin(&data, arrays->name, "memory", arrays->rows));
    pl_status status = take_dense(data, arrays);
    if (status == PL_OK)
        *out = data;
    else
        pl_data_free(data);
    return status;
}

static int64_t integer_at(const void *array, int32_t bits, int64_t at)
{
    return bits == 32 ? ((const int32_t *)array)[at]
                      : ((const int64_t *)array)[at];
}

/* Every row begins where the previous one ends; every index is a column. */
static pl_status check_csr(const pl_data *data, const pl_data_csr *arrays)
{
    int32_t bits = arrays->index_bits;
    int64_t at = integer_at(arrays->indptr, bits, 0);
    if (at != 0)
        return PL_FAIL(PL_USAGE, "%s: indptr begins with %lld, expected 0",
                       data->name, (long long)at);
    for (int64_t r = 0; r < arrays->rows; r++) {
        int64_t end = integer_at(arrays->indptr, bits, r + 1);
        if (end < at || (end > at && arrays->indices == NULL))
            return PL_FAIL(PL_USAGE,
                           "%s: row %lld ends at %lld, but begins at %lld%s",
                           data->name, (long long)r, (long long)end,
                           (long long)at, end > at ? ", without indices" : "");
        for (; at < end; at++) {
            int64_t id = integer_at(arrays->indices, bits, at);
            if (id < 0 || id >= arrays->columns)
                return PL_FAIL(PL_USAGE,
                               "%s: row %lld has the index %lld, expected 0 to "
                               "%lld",
                               data->name, (long long)r, (long long)id,
                               (long long)arrays->columns - 1);
        }
    }
    return PL_OK;
}

/* Keep borrowed pointers, or copies of what they point to. */
static pl_status take_arrays(pl_data *data, const pl_data_csr *arrays)
{
    const void *indptr = arrays->indptr, *indices = arrays->indices;
    const void *values = arrays->values;
    size_t size = (size_t)arrays->index_bits / 8;
    int64_t rows = arrays->rows;
    int64_t count = integer_at(indptr, arrays->index_bits, rows);
    if (arrays->copy) {
        PL_TRY(copy_array(data, indptr, rows + 1, size, &indptr));
        PL_TRY(copy_array(data, indices, count, size, &indices));
        if (values != NULL)
            PL_TRY(copy_array(data, values, count, sizeof(float), &values));
    }
    data->values = values;
    if (arrays->index_bits == 32) {
        data->row_start_32 = indptr;
        data->ids_32 = indices;
    } else {
        data->row_start = indptr;
        data->ids = indices; /* none is negative */
    }
    return PL_OK;
}

static pl_status take_csr(pl_data *data, const pl_data_csr *arrays)
{
    if (arrays->columns < 1 || arrays->columns > COLUMNS_MOST)
        return PL_FAIL(PL_USAGE, "%s: %lld columns, expected 1 to 2^32 - 1",
                       data->name, (long long)arrays->columns);
    if (arrays->index_bits != 32 && arrays->index_bits != 64)
        return PL_FAIL(PL_USAGE,
                       "%s: indices of %d bits, expected index_bits of 32 or "
                       "64",
                       data->name, arrays->index_bits);
    if (arrays->indptr == NULL)
        return PL_FAIL(PL_USAGE, "%s: no indptr", data->name);
    PL_TRY(check_csr(data, arrays));
    data->info.sparse = true;
    data->info.columns = arrays->columns;
    PL_TRY(take_arrays(data, arrays));
    PL_TRY(take_weights(data, arrays->weights, arrays->copy));
    return take_labels(data, arrays->labels, 2, arrays->copy);
}

pl_status pl_data_from_csr(pl_data **out, const pl_data_csr *arrays)
{
    pl_data *data;
    PL_TRY(begin(&data, arrays->name, "memory", arrays->rows));
    pl_status status = take_csr(data, arrays);
    if (status == PL_OK)
        *out = data;
    else
        pl_data_free(data);
    return status;
}

static pl_status take_callback(pl_data *data, const pl_data_callback *source)
{
    PL_TRY(check_example(data, source->example));
    if (source->make == NULL || source->classes < 1)
        return PL_FAIL(PL_USAGE,
                       "%s: needs a function and the number of classes",
                       data->name);
    data->make = source->make;
    data->context = source->context;
    data->info.example = source->example;
    data->info.classes = source->classes;
    data->info.labelled = true;
    return PL_OK;
}

pl_status pl_data_from_callback(pl_data **out, const pl_data_callback *source)
{
    pl_data *data;
    PL_TRY(begin(&data, source->name, "callback", source->rows));
    pl_status status = take_callback(data, source);
    if (status == PL_OK)
        *out = data;
    else
        pl_data_free(data);
    return status;
}
