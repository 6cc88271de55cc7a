/* test_memory.c - a program's examples as a data set: held-out parts, the order
 * of gathered batches, and allocations that fail. */
#include "data/memory/memory.h"
#include "support/unit.h"

#define ROWS 10

static const float features[ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static const int32_t labels[ROWS] = { 0, 1, 0, 1, 0, 1, 0, 1, 0, 1 };
static const int32_t indptr[ROWS + 1] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
static const int32_t indices[ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static int make_rows(void *context, const uint32_t *index, int64_t rows,
                     float *to, int32_t *label)
{
    (void)context;
    for (int64_t r = 0; r < rows; r++) {
        to[r] = (float)index[r];
        label[r] = (int32_t)index[r] % 2;
    }
    return 0;
}

static int make_wrong(void *context, const uint32_t *index, int64_t rows,
                      float *to, int32_t *label)
{
    (void)make_rows(context, index, rows, to, label);
    label[rows - 1] = 2;
    return 0;
}

static const pl_data_dense dense = { .features = features,
                                     .rows = ROWS,
                                     .example = { 1, { 1 } },
                                     .labels = labels,
                                     .copy = true };
static const pl_data_csr csr = { .rows = ROWS,
                                 .columns = ROWS,
                                 .index_bits = 32,
                                 .indptr = indptr,
                                 .indices = indices,
                                 .values = features,
                                 .labels = labels,
                                 .copy = true };
static const pl_data_callback callback = {
    .make = make_rows, .rows = ROWS, .example = { 1, { 1 } }, .classes = 2
};

/* Open the data and read its first batch in order. */
static pl_status open_and_read(const pl_data *data)
{
    pl_dataset *set;
    pl_reader *reader = NULL;
    pl_batch batch;
    PL_TRY(pl_memory_open(&set, data, false));
    pl_status status = pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = 4, .one_pass = true });
    if (status == PL_OK)
        status = pl_reader_next(reader, &batch);
    pl_reader_free(reader);
    pl_dataset_free(set);
    return status;
}

static pl_status make_all(int kind, pl_data **out)
{
    PL_TRY(kind == 0   ? pl_data_from_dense(out, &dense)
           : kind == 1 ? pl_data_from_csr(out, &csr)
                       : pl_data_from_callback(out, &callback));
    pl_status status = open_and_read(*out);
    if (status != PL_OK)
        pl_data_free(*out);
    return status;
}

static void survives_failed_allocations(void **state)
{
    (void)state;
    pl_data *data = NULL;
    for (int kind = 0; kind < 3; kind++)
        assert_survives_failed_allocations(make_all(kind, &data),
                                           pl_data_free(data));
}

/* The number in row r of a batch, whatever the kind of data. */
static float value_at(const pl_batch *batch, int64_t row)
{
    if (batch->row_start == NULL)
        return *pl_view_row_f32(&batch->features, row);
    int64_t at = batch->row_index != NULL ? batch->row_index[row] : row;
    assert_int_equal(1, batch->row_start[at + 1] - batch->row_start[at]);
    assert_int_equal((int64_t)batch->values[batch->row_start[at]],
                     batch->ids[batch->row_start[at]]);
    return batch->values[batch->row_start[at]];
}

/* Of the last six rows, in order and then shuffled: each once. */
static void read_part(const pl_data *data)
{
    pl_dataset *set;
    pl_reader *reader;
    pl_batch batch;
    assert_ok(pl_memory_open(&set, data, false));
    assert_ok(pl_dataset_keep(set, 4, 6));
    for (int pass = 0; pass < 2; pass++) {
        unsigned seen = 0;
        int64_t rows = 0;
        assert_ok(pl_reader_new(&reader, set,
                                &(pl_reader_opts) { .batch = pass == 0 ? 4 : 3,
                                                    .one_pass = pass == 0 }));
        while (rows < 6) {
            assert_ok(pl_reader_next(reader, &batch));
            for (int64_t r = 0; r < batch.rows; r++, rows++) {
                float value = value_at(&batch, r);
                seen |= 1u << (unsigned)value;
                assert_int_equal((int)value % 2,
                                 pl_view_label(&batch.labels, r));
                if (pass == 0)
                    assert_true(value == (float)(4 + rows));
            }
        }
        assert_int_equal(0x3f0, seen);
        pl_reader_free(reader);
    }
    pl_dataset_free(set);
}

static void examples_of_all_parts_are_read_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        pl_data *data;
        assert_ok(make_all(kind, &data));
        read_part(data);
        pl_data_free(data);
    }
}

static void rows_may_be_empty(void **state)
{
    (void)state;
    static const int32_t nothing[ROWS + 1] = { 0 };
    pl_data *data;
    pl_data_csr empty = csr;
    empty.indptr = nothing;
    empty.indices = NULL;
    empty.values = NULL;
    assert_ok(pl_data_from_csr(&data, &empty));
    assert_ok(open_and_read(data));
    pl_data_free(data);
}

static void labels_from_a_function_are_checked(void **state)
{
    (void)state;
    pl_data *data;
    pl_data_callback wrong = callback;
    wrong.make = make_wrong;
    assert_ok(pl_data_from_callback(&data, &wrong));
    assert_fails(PL_USAGE, "gave example 3 the label 2, expected 0 to 1",
                 open_and_read(data));
    pl_data_free(data);
}

UNIT_TESTS(cmocka_unit_test(survives_failed_allocations),
           cmocka_unit_test(examples_of_all_parts_are_read_once),
           cmocka_unit_test(rows_may_be_empty),
           cmocka_unit_test(labels_from_a_function_are_checked))
