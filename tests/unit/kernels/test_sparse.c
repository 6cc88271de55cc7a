#include "kernels/sparse.h"

#include "support/kernels.h"

#define ROWS     90
#define FEATURES 500
#define MOST     (ROWS * 20)
#define BITS     12
#define CELLS    (1 << BITS) /* two for each non-zero */

/* Rows of 0 to 19 non-zeros with many ids in common, in another order. */
typedef struct fixture {
    pl_rows rows;
    int64_t start[ROWS + 1];
    uint32_t index[ROWS];
    uint64_t ids[MOST];
    float values[MOST];
    float table[FEATURES];
    /* What finding makes. */
    pl_key_map map;
    uint32_t cells[CELLS];
    pl_slots slots;
    uint32_t list[MOST];
    int64_t begin[ROWS + 1];
    uint64_t keys[MOST + 1], largest;
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

/* The parts of a fixture that point into it, then find the keys; sorted on
 * request. */
static void find(fixture *f, bool sorted)
{
    static uint64_t work[MOST], other[MOST];
    f->rows.start = f->start;
    f->rows.ids = f->ids;
    f->rows.index = f->rows.index != NULL ? f->index : NULL;
    f->rows.values = f->rows.values != NULL ? f->values : NULL;
    f->slots = (pl_slots) { f->list, f->begin };
    f->map.cells = f->cells;
    f->map.bits = BITS;
    f->key_count = pl_sparse_find(&f->map, &f->rows, f->table, f->keys,
                                  &f->slots, &f->largest);
    if (sorted)
        pl_sparse_order(f->key_count, 9, f->keys, pl_rows_entries(&f->rows),
                        f->list, work, other);
}

#define FOR_EACH_FIXTURE(f)                                                    \
    for (int kind_ = 0; kind_ < 4; kind_++)                                    \
        for (fixture f = make(kind_ & 1, kind_ & 2), *once_ = &f;              \
             once_ != NULL; once_ = NULL)

static float value_at(const fixture *f, int64_t j)
{
    return f->rows.values != NULL ? f->values[j] : 1;
}

/* Every non-zero has the slot of its key, every key is there once. */
static void check_keys(const fixture *f)
{
    bool there[FEATURES] = { false };
    int64_t distinct = 0, at = 0;
    for (int64_t k = 0; k < f->key_count; k++) {
        assert_true(f->keys[k] < FEATURES && !there[f->keys[k]]);
        there[f->keys[k]] = true;
    }
    for (int64_t r = 0; r < ROWS; r++) {
        int64_t s = pl_rows_source(&f->rows, r);
        assert_int_equal(at, f->begin[r]);
        for (int64_t j = f->start[s]; j < f->start[s + 1]; j++, at++) {
            assert_true(f->list[at] < f->key_count);
            assert_int_equal(f->ids[j], f->keys[f->list[at]]);
            distinct += there[f->ids[j]];
            there[f->ids[j]] = false;
        }
    }
    assert_int_equal(at, f->begin[ROWS]);
    assert_int_equal(distinct, f->key_count);
}

static void sparse_keys_are_the_distinct_ids(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        uint64_t largest = 0;
        find(&f, false);
        check_keys(&f);
        for (int64_t j = 0; j < f.start[ROWS]; j++)
            largest = f.ids[j] > largest ? f.ids[j] : largest;
        assert_int_equal(largest, f.largest);
        find(&f, true); /* nothing remains of the first call */
        check_keys(&f);
        for (int64_t k = 1; k < f.key_count; k++)
            assert_true(f.keys[k - 1] < f.keys[k]);
    }
}

static void sparse_keys_are_found_when_the_numbers_run_out(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        find(&f, false);
        f.map.base =
            (uint32_t)(UINT32_MAX - pl_rows_entries(&f.rows) - f.key_count / 2);
        find(&f, false); /* the last that fits */
        check_keys(&f);
        assert_true(f.map.base > UINT32_MAX - MOST);
        find(&f, false);
        check_keys(&f);
        assert_int_equal(f.key_count + 1, f.map.base);
    }
}

static void sparse_order_knows_all_32_bits(void **state)
{
    (void)state;
    uint64_t keys[777], work[777], other[777];
    uint32_t slots[777];
    for (uint32_t i = 0; i < 777; i++) {
        keys[i] = i * 2654435761u;
        slots[i] = i;
    }
    pl_sparse_order(777, 32, keys, 777, slots, work, other);
    for (uint32_t i = 0; i < 777; i++) {
        assert_true(i == 0 || keys[i - 1] < keys[i]);
        assert_int_equal(i * 2654435761u, keys[slots[i]]);
    }
}

static void sparse_forward_is_the_product_with_the_table(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        float weights[MOST], logits[ROWS], sorted[ROWS], direct[ROWS];
        find(&f, false);
        pl_sparse_gather(f.key_count, f.keys, f.table, weights);
        /* In two parts, as two threads do. */
        pl_sparse_forward(&f.rows, &f.slots, 0, 31, weights, 0, logits);
        pl_sparse_forward(&f.rows, &f.slots, 31, ROWS - 31, weights, 0, logits);
        find(&f, true);
        pl_sparse_gather(f.key_count, f.keys, f.table, weights);
        pl_sparse_forward(&f.rows, &f.slots, 0, ROWS, weights, 0, sorted);
        assert_memory_equal(logits, sorted, sizeof logits);
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

static void sparse_backward_sums_the_gradients_of_a_key(void **state)
{
    (void)state;
    FOR_EACH_FIXTURE(f)
    {
        float diff[ROWS], grad[MOST] = { 0 };
        double sums[FEATURES] = { 0 };
        draw_all(diff, ROWS, -1, 1);
        find(&f, true);
        pl_sparse_backward(&f.rows, &f.slots, 0, ROWS, diff, grad);
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

UNIT_TESTS(cmocka_unit_test(sparse_keys_are_the_distinct_ids),
           cmocka_unit_test(sparse_keys_are_found_when_the_numbers_run_out),
           cmocka_unit_test(sparse_order_knows_all_32_bits),
           cmocka_unit_test(sparse_forward_is_the_product_with_the_table),
           cmocka_unit_test(sparse_backward_sums_the_gradients_of_a_key),
           cmocka_unit_test(sparse_loss_is_that_of_each_row))
