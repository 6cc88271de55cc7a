#include "support/folder.h"
#include "support/unit.h"

#include "base/mem.h"
#include "data/sparse/numbering.h"

#include <string.h>

/* Three rows: 7 four times, 900 and 5 twice each, 1e18 once. */
static const int64_t row_start[] = { 0, 4, 6, 9 };
static const uint64_t ids[] = {
    7, 900, 7, 5, 7, 900, 5, 7, 1000000000000000000u
};

static pl_status count(pl_numbering **out)
{
    pl_batch batch = { .rows = 3, .row_start = row_start, .ids = ids };
    PL_TRY(pl_numbering_new(out));
    pl_status status = pl_numbering_count(*out, &batch);
    if (status == PL_OK)
        status = pl_numbering_finish(*out);
    if (status != PL_OK)
        pl_numbering_free(*out);
    return status;
}

static void assert_numbers(const pl_numbering *numbering)
{
    assert_int_equal(4, pl_numbering_size(numbering));
    assert_int_equal(0, pl_numbering_find(numbering, 7));
    assert_int_equal(1, pl_numbering_find(numbering, 5));
    assert_int_equal(2, pl_numbering_find(numbering, 900));
    assert_int_equal(3, pl_numbering_find(numbering, 1000000000000000000u));
    assert_int_equal(PL_NUMBERING_NONE, pl_numbering_find(numbering, 6));
}

static void numbering_puts_the_most_frequent_first(void **state)
{
    (void)state;
    pl_numbering *numbering;
    assert_ok(count(&numbering));
    assert_numbers(numbering);
    pl_numbering_free(numbering);
}

static void numbering_survives_its_file(void **state)
{
    pl_numbering *numbering, *read;
    const char *path = test_path(*state, "map");
    assert_ok(count(&numbering));
    assert_ok(pl_numbering_save(numbering, path));
    assert_ok(pl_numbering_load(&read, path));
    assert_numbers(read);
    assert_int_equal(pl_numbering_mark(numbering), pl_numbering_mark(read));
    pl_numbering_free(read);
    static const char other[] = "7\n900\n5\n1000000000000000000\n";
    assert_ok(pl_numbering_parse(&read, other, strlen(other), "other"));
    assert_true(pl_numbering_mark(numbering) != pl_numbering_mark(read));
    pl_numbering_free(read);
    pl_numbering_free(numbering);
}

static void numbering_of_many_ids_grows(void **state)
{
    (void)state;
    enum {
        MANY = 5000
    };
    static uint64_t many[MANY];
    const int64_t start[] = { 0, MANY };
    pl_batch batch = { .rows = 1, .row_start = start, .ids = many };
    pl_numbering *numbering;
    for (uint64_t i = 0; i < MANY; i++)
        many[i] = i * 1000003;
    assert_ok(pl_numbering_new(&numbering));
    assert_ok(pl_numbering_count(numbering, &batch));
    assert_ok(pl_numbering_finish(numbering));
    for (int64_t i = 0; i < MANY; i++) /* equally frequent: by id */
        assert_int_equal(i, pl_numbering_find(numbering, many[i]));
    pl_numbering_free(numbering);
}

static void numbering_names_a_bad_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "map: no ids" },
        { "# nothing\n", "map: no ids" },
        { "1\nx\n", "map:2: expected an id" },
        { "1\n\n2\n", "map:2: expected an id" },
        { "-1\n", "map:1: expected an id" },
        { "9223372036854775808\n", "map:1: expected an id" },
        { "3\n4\n3\n", "map:3: id 3 has a number already" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_numbering *numbering;
        assert_fails(PL_FORMAT, cases[i].says,
                     pl_numbering_parse(&numbering, cases[i].text,
                                        strlen(cases[i].text), "map"));
    }
}

static void numbering_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_numbering *numbering;
    assert_survives_failed_allocations(count(&numbering),
                                       pl_numbering_free(numbering));
}

UNIT_TESTS(cmocka_unit_test(numbering_puts_the_most_frequent_first),
           TEST_IN_FOLDER(numbering_survives_its_file),
           cmocka_unit_test(numbering_of_many_ids_grows),
           cmocka_unit_test(numbering_names_a_bad_line),
           cmocka_unit_test(numbering_survives_each_failed_allocation))
