#include "support/sparse.h"

#include <stdlib.h>

static pl_status open_text(pl_dataset **out, const char *text,
                           const pl_source_opts *opts)
{
    return pl_sparse_open_memory(out, &pl_libsvm_format, (const uint8_t *)text,
                                 strlen(text), opts);
}

static const pl_source_opts plain = { .threads = 1 };

/* What `text` holds, read whole and in a stream. */
static void assert_reads(const char *expected, int64_t features,
                         const char *text)
{
    char got[4096];
    for (int64_t buffer = 0; buffer < 2; buffer++) {
        pl_dataset *set;
        assert_ok(open_text(
            &set, text,
            &(pl_source_opts) { .threads = 1, .shuffle_buffer = buffer }));
        assert_string_equal(expected, sparse_pass(set, 2, got, sizeof got));
        assert_int_equal(features, set->feature_count);
        assert_int_equal(2, set->classes);
        assert_true(set->sparse);
        pl_dataset_free(set);
    }
    assert_int_equal(0, pl_mem_live());
}

static void libsvm_reads_labels_ids_and_values(void **state)
{
    (void)state;
    assert_reads("1 1:1 7:0.5|0 0:-2.25 3:1e+10|0|", 8,
                 "1 1:1 7:0.5\n0 0:-2.25 3:1e10\n0\n");
}

static void libsvm_maps_minus_one_to_zero(void **state)
{
    (void)state;
    assert_reads("1 1:1|0 2:1|1 3:1|", 4, "+1 1:1\n-1 2:1\n1.0 3:1\n");
}

static void libsvm_skips_comments_qid_and_blank_lines(void **state)
{
    (void)state;
    assert_reads("1 4:2|0 5:1|", 6,
                 "# head\n\n1 qid:3 4:2 # 9:9\n  \r\n\t0\t5:1\t\r\n#end");
}

static void libsvm_needs_no_line_feed_at_the_end(void **state)
{
    (void)state;
    assert_reads("1 1:1|0 12345678:1|", 12345679, "1 1:1\n0 12345678:1");
}

static void libsvm_takes_all_lengths_of_numbers(void **state)
{
    (void)state;
    char text[256], expected[256];
    uint64_t id = 0;
    for (int digits = 1; digits <= 18; digits++) {
        id = id * 10 + (uint64_t)(digits % 10);
        snprintf(text, sizeof text, "1 %llu:1\n", (unsigned long long)id);
        snprintf(expected, sizeof expected, "1 %llu:1|",
                 (unsigned long long)id);
        assert_reads(expected, (int64_t)id + 1, text);
    }
}

static void libsvm_values_round_as_strtod_does(void **state)
{
    (void)state;
    static const char *const values[] = {
        "0.1",
        "3.14159265",
        "123456.789",
        "1e-5",
        "-0.00001234",
        "1234567890.12345",
        ".5",
        "5.",
        "0.30000001192092896",
        "00001.500",
        "99999999.99999999",
        "1E+3",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        pl_dataset *set;
        pl_reader *reader;
        pl_batch batch;
        char text[64];
        snprintf(text, sizeof text, "1 2:%s\n", values[i]);
        assert_ok(open_text(&set, text, &plain));
        assert_ok(pl_reader_new(
            &reader, set, &(pl_reader_opts) { .batch = 1, .one_pass = true }));
        assert_ok(pl_reader_next(reader, &batch));
        assert_true(batch.values[0] == (float)strtod(values[i], NULL));
        pl_reader_free(reader);
        pl_dataset_free(set);
    }
}

static void libsvm_all_ones_have_no_values(void **state)
{
    (void)state;
    pl_dataset *set;
    pl_reader *reader;
    pl_batch batch;
    assert_ok(open_text(&set, "1 2:1 3:1.0\n0 5:1e0\n", &plain));
    assert_ok(pl_reader_new(&reader, set, &(pl_reader_opts) { .batch = 2 }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_null(batch.values);
    pl_reader_free(reader);
    pl_dataset_free(set);
}

static void libsvm_errors_name_their_position(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "1 1:1\n2 1:1\n", "memory:2:1: '2', expected a label" },
        { "x 1:1\n", "memory:1:1: 'x', expected a label" },
        { "1 -3:1\n", "memory:1:3: '-3:1', expected ID:VALUE" },
        { "1 a:1\n", "memory:1:3: 'a:1', expected ID:VALUE" },
        { "1 3\n", "memory:1:4: the end of the line, expected ':'" },
        { "1 3:\n", "memory:1:5: the end of the line, expected a finite" },
        { "1 3:x\n", "memory:1:5: 'x', expected a finite number" },
        { "1 3:nan\n", "memory:1:5: 'nan', expected a finite number" },
        { "1 3:1e99\n", "memory:1:5: '1e99', expected a finite number" },
        { "1 3:1:2\n", "memory:1:5: '1:2', expected a finite number" },
        { "1 qid:x 3:1\n", "memory:1:3: 'qid:x', expected ID:VALUE or qid" },
        { "1 99999999999999999999:1\n", "memory:1:3: " },
        { "\n#\n1 1:1\n1 1:1 4:x\n", "memory:4:9: 'x', expected a finite" },
        { "0 1:1\n-1 1:1\n", "memory:2:1: '-1', expected the labels" },
        { "1 1:1\r2:1\n", "memory:1:6" },
        { "", "memory: no examples" },
        { "# nothing\n\n", "memory: no examples" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_dataset *set;
        assert_fails(PL_FORMAT, cases[i].message,
                     open_text(&set, cases[i].text, &plain));
    }
    assert_int_equal(0, pl_mem_live());
}

static void libsvm_refuses_ids_beyond_features(void **state)
{
    (void)state;
    pl_dataset *set;
    assert_fails(PL_FORMAT,
                 "memory:2:7: id 10, expected ids below --features 10",
                 open_text(&set, "1 9:1\n0 1:1 10:1\n",
                           &(pl_source_opts) { .threads = 1, .features = 10 }));
    assert_ok(open_text(&set, "1 9:1\n",
                        &(pl_source_opts) { .threads = 1, .features = 50 }));
    assert_int_equal(50, set->feature_count);
    pl_dataset_free(set);
}

static void libsvm_skip_bad_skips_up_to_its_limit(void **state)
{
    (void)state;
    static const char text[] = "1 1:1\n9 1:1\n0 2:1\n1 x\n1 3:1\n";
    pl_dataset *set;
    char got[256];
    for (int64_t buffer = 0; buffer < 2; buffer++) {
        pl_source_opts opts = { .threads = 1,
                                .skip_bad = 2,
                                .shuffle_buffer = buffer };
        assert_ok(open_text(&set, text, &opts));
        assert_string_equal("1 1:1|0 2:1|1 3:1|",
                            sparse_pass(set, 2, got, sizeof got));
        assert_int_equal(2, pl_sparse_set_bad((pl_sparse_set *)set));
        pl_dataset_free(set);
        opts.skip_bad = 1;
        assert_fails(PL_FORMAT, "2 malformed examples, more than --skip-bad 1",
                     open_text(&set, text, &opts));
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(libsvm_reads_labels_ids_and_values),
           cmocka_unit_test(libsvm_maps_minus_one_to_zero),
           cmocka_unit_test(libsvm_skips_comments_qid_and_blank_lines),
           cmocka_unit_test(libsvm_needs_no_line_feed_at_the_end),
           cmocka_unit_test(libsvm_takes_all_lengths_of_numbers),
           cmocka_unit_test(libsvm_values_round_as_strtod_does),
           cmocka_unit_test(libsvm_all_ones_have_no_values),
           cmocka_unit_test(libsvm_errors_name_their_position),
           cmocka_unit_test(libsvm_refuses_ids_beyond_features),
           cmocka_unit_test(libsvm_skip_bad_skips_up_to_its_limit))
