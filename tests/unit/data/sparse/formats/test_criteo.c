#include "support/sparse.h"

#include <math.h>

#define INTS "\t1\t-2\t\t0\t5\t\t\t\t\t\t\t\t100"
#define CATS                                                                   \
    "\t68fd1e64\t80e26c9b\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"     \
    "a longer category"
#define LINE INTS CATS "\n"

static pl_status open_text(pl_dataset **out, const char *text,
                           const pl_source_opts *opts)
{
    return pl_sparse_open_memory(out, &pl_criteo_format, (const uint8_t *)text,
                                 strlen(text), opts);
}

static void integers_become_logarithms_and_categories_hashes(void **state)
{
    (void)state;
    pl_dataset *set;
    assert_ok(open_text(&set, "1" LINE "0" LINE,
                        &(pl_source_opts) { .threads = 1, .features = 1000 }));
    assert_int_equal(2, set->count);
    assert_int_equal(1000, set->feature_count);
    assert_int_equal(7, set->row_start[1]);
    static const struct {
        uint64_t id;
        double value;
    } ints[] = { { 0, 2 }, { 1, -3 }, { 4, 6 }, { 12, 101 } };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ints[i].id, set->ids[i]);
        float value = (float)copysign(log(fabs(ints[i].value)), ints[i].value);
        assert_true(fabsf(set->values[i] - value) < 1e-6f);
    }
    for (int i = 4; i < 7; i++) {
        assert_in_range(set->ids[i], 13, 999);
        assert_true(set->values[i] == 1);
        assert_int_equal(set->ids[i], set->ids[i + 7]); /* of the other row */
    }
    assert_int_equal(1, pl_view_label(&set->labels, 0));
    assert_int_equal(0, pl_view_label(&set->labels, 1));
    pl_dataset_free(set);
    assert_int_equal(0, pl_mem_live());
}

/* Models depend on these numbers. */
static void hashes_stay_as_they_are(void **state)
{
    (void)state;
    char got[512];
    pl_dataset *set;
    assert_ok(open_text(&set, "1" LINE, &(pl_source_opts) { .threads = 1 }));
    assert_int_equal(1 << 24, set->feature_count);
    sparse_pass(set, 1, got, sizeof got);
    pl_dataset_free(set);
    assert_string_equal(
        "1 0:0.693147 1:-1.09861 4:1.79176 12:4.61512 2479979:1 "
        "8602896:1 2918629:1|",
        got);
    assert_ok(open_text(
        &set, "1" LINE,
        &(pl_source_opts) { .threads = 1, .integers = PL_INTEGERS_BUCKET }));
    assert_null(set->values);
    sparse_pass(set, 1, got, sizeof got);
    pl_dataset_free(set);
    assert_string_equal("1 8159820:1 3846508:1 2087939:1 15503387:1 10748544:1 "
                        "2479968:1 8602890:1 2918618:1|",
                        got);
}

static void errors_name_their_position(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "2" LINE, "memory:1:1: '2', expected a label" },
        { "1" LINE "\t" LINE, "memory:2:1: '" },
        { "1" INTS "\n", "memory:1:23: 14 columns, expected 40" },
        { "1\t5x\n", "memory:1:3: '5x', expected an integer" },
        { "1\t--5\n", "memory:1:3: '--5', expected an integer" },
        { "1\t99999999999999999999\n", "memory:1:3: " },
        { "1" INTS CATS "\tx\n", "expected the end of the line" },
        { "", "no examples" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_dataset *set;
        assert_fails(
            PL_FORMAT, cases[i].message,
            open_text(&set, cases[i].text, &(pl_source_opts) { .threads = 1 }));
    }
    pl_dataset *set;
    assert_fails(PL_USAGE, "--features 13, expected at least 14",
                 open_text(&set, "1" LINE,
                           &(pl_source_opts) { .threads = 1, .features = 13 }));
    assert_int_equal(0, pl_mem_live());
}

static void bad_lines_are_skipped(void **state)
{
    (void)state;
    pl_dataset *set;
    assert_ok(open_text(&set, "1" LINE "?\n0" LINE "1\t2\n1" LINE,
                        &(pl_source_opts) { .threads = 1, .skip_bad = 2 }));
    assert_int_equal(3, set->count);
    assert_int_equal(21, set->row_start[3]);
    pl_dataset_free(set);
}

UNIT_TESTS(cmocka_unit_test(integers_become_logarithms_and_categories_hashes),
           cmocka_unit_test(hashes_stay_as_they_are),
           cmocka_unit_test(errors_name_their_position),
           cmocka_unit_test(bad_lines_are_skipped))
