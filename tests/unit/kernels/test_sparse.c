#include "kernels/sparse.h"

#include "support/kernels.h"

#define ROWS     90
#define FEATURES 500
#define MOST     (ROWS * 20)

/* Rows of 0 to 19 non-zeros with many ids in common, in another order. */
typedef struct fixture {
    pl_rows rows;
    int64_t start[ROWS + 1];
    uint32_t index[ROWS];
    uint64_t ids[MOST];
    float values[MOST];
    float table[FEATURES];
    /* What packing makes. */
    pl_entries entries;
    uint64_t list[MOST], other[MOST];
    uint32_t row_of[MOST];
    float value[MOST];
    uint64_t keys[MOST + 1], largest;
    uint32_t first[MOST + 1];
    int64_t key_count;
} fixture;

static fixture make(bool values, bool index)
{
    fixture f = { .start = { 0 } };
    for (int r = 0; r < ROWS; r++) {
        f.start[r + 1] = f.start[r] + draw_int(0, 19);
        f.index[r] = (uint32_t)((r * 7 + 3) % ROWS);
    }
    for (int64_t j = 0; j < f.start[ROWS]; j++)
        f.ids[j] = (uint64_t)draw_int(0, j % 2 == 0 ? 9 : FEATURES - 1);
    draw_all(f.values, MOST, -1, 1);
    draw_all(f.table, FEATURES, -1, 1);
    f.rows = (pl_rows) { .count = ROWS };
    if (index)
        f.rows.index = f.index;
    if (values)
        f.rows.values = f.values;
    return f;
}

/* The parts of a fixture that point into it, then pack, sort and count. */
static void sort(fixture *f)
{
    f->rows.start = f->start;
    f->rows.ids = f->ids;
    f->rows.index = f->rows.index != NULL ? f->index : NULL;
    f->rows.values = f->rows.values != NULL ? f->values : NULL;
    f->entries = (pl_entries) { .list = f->list };
    if (f->rows.values != NULL) {
        f->entries.row_of = f->row_of;
        f->entries.value = f->value;
    }
    pl_sparse_pack(&f->rows, f->table, &f->entries, &f->largest);
    assert_int_equal(pl_rows_entries(&f->rows), f->entries.count);
    f->entries.list = pl_sparse_sort(f->entries.count, 9, f->list, f->other);
    f->key_count =
        pl_sparse_keys(f->entries.count, f->entries.list, f->keys, f->first);
}

#define FOR_EACH_FIXTURE(f)                                                    \
    for (int kind_ = 0; kind_ < 4; kind_++)                                    \
        for (fixture f = make(kind_ & 1, kind_ & 2), *once_ = &f;              \
             once_ != NULL; once_ = NULL)

static float value_at(const fixture *f, int64_t j)
{
    return f->rows.values != NULL ? f->values[j] : 1;
}

static void sparse_keys_are_the_distinct_ids_in_order(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        bool there[FEATURES] = { false };
        int64_t distinct = 0;
        uint64_t largest = 0;
        sort(&f);
        for (int64_t j = 0; j < f.start[ROWS]; j++) {
            distinct += !there[f.ids[j]];
            there[f.ids[j]] = true;
            largest = f.ids[j] > largest ? f.ids[j] : largest;
        }
        assert_int_equal(distinct, f.key_count);
        assert_int_equal(largest, f.largest);
        for (int64_t k = 0; k < f.key_count; k++) {
            assert_true(there[f.keys[k]]);
            assert_true(k == 0 || f.keys[k - 1] < f.keys[k]);
            assert_true(f.first[k] < f.first[k + 1]);
            for (uint32_t i = f.first[k]; i < f.first[k + 1]; i++) {
                assert_int_equal(f.keys[k], f.entries.list[i] >> 32);
                assert_true(i == f.first[k] ||
                            f.entries.list[i - 1] <= f.entries.list[i]);
            }
        }
        assert_int_equal(f.start[ROWS], f.first[f.key_count]);
    }
}

static void sparse_sort_knows_all_32_bits(void **state)
{
    (void)state;
    uint64_t list[777], other[777];
    for (uint64_t i = 0; i < 777; i++)
        list[i] = (i * 2654435761u << 32) | i;
    const uint64_t *sorted = pl_sparse_sort(777, 32, list, other);
    for (int i = 1; i < 777; i++)
        assert_true(sorted[i - 1] < sorted[i]);
    assert_int_equal(0, pl_sparse_keys(0, list, other, (uint32_t[1]) { 0 }));
}

static void sparse_forward_is_the_product_with_the_table(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        float weights[MOST], logits[ROWS] = { 0 }, direct[ROWS];
        sort(&f);
        pl_sparse_gather(f.key_count, f.keys, f.table, weights);
        /* In two parts, as two threads do. */
        int64_t half = f.key_count / 2;
        pl_sparse_forward(half, f.first, &f.entries, weights, logits);
        pl_sparse_forward(f.key_count - half, f.first + half, &f.entries,
                          weights + half, logits);
        pl_sparse_rows(&f.rows, 0, 31, f.table, 0.5f, direct);
        pl_sparse_rows(&f.rows, 31, ROWS - 31, f.table, 0.5f, direct + 31);
        for (int64_t r = 0; r < ROWS; r++) {
            int64_t s = pl_rows_source(&f.rows, r);
            double sum = 0;
            for (int64_t j = f.start[s]; j < f.start[s + 1]; j++)
                sum += (double)f.table[f.ids[j]] * (double)value_at(&f, j);
            assert_true(is_near(sum, (double)logits[r], 1e-5));
            assert_true(is_near(sum + 0.5, (double)direct[r], 1e-5));
        }
    }
}

static void sparse_backward_adds_up_what_a_key_has(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        float diff[ROWS], grad[MOST];
        double sums[FEATURES] = { 0 };
        draw_all(diff, ROWS, -1, 1);
        sort(&f);
        pl_sparse_backward(f.key_count, f.first, &f.entries, diff, grad);
        for (int64_t r = 0; r < ROWS; r++) {
            int64_t s = pl_rows_source(&f.rows, r);
            for (int64_t j = f.start[s]; j < f.start[s + 1]; j++)
                sums[f.ids[j]] += (double)diff[r] * (double)value_at(&f, j);
        }
        for (int64_t k = 0; k < f.key_count; k++)
            assert_true(is_near(sums[f.keys[k]], (double)grad[k], 1e-5));
    }
}

static void sparse_loss_is_that_of_each_row(void **state)
{
    (void)state;
    float probs[1000];
    int32_t labels[1000];
    double expected = 0;
    draw_all(probs, 1000, 0.0001f, 0.9999f);
    for (int i = 0; i < 1000; i++) {
        labels[i] = i % 3 == 0;
        expected -= log(labels[i] ? (double)probs[i] : (double)(1 - probs[i]));
    }
    pl_view view = { .data = labels, .stride = 1, .dtype = PL_INT32 };
    assert_true(
        is_near(expected, pl_sparse_loss(1000, probs, &view), 1e-9 * expected));
    probs[0] = 0; /* of label 1: as unlikely as can be */
    assert_true(is_near(-log(1e-38), pl_sparse_loss(1, probs, &view), 1e-9));
    probs[0] = NAN;
    assert_true(isnan(pl_sparse_loss(1, probs, &view)));
}

UNIT_TESTS(cmocka_unit_test(sparse_keys_are_the_distinct_ids_in_order),
           cmocka_unit_test(sparse_sort_knows_all_32_bits),
           cmocka_unit_test(sparse_forward_is_the_product_with_the_table),
           cmocka_unit_test(sparse_backward_adds_up_what_a_key_has),
           cmocka_unit_test(sparse_loss_is_that_of_each_row))
