#include "cli/memory.h"

#include "nn/models.h"
#include "support/unit.h"

static pl_network *draft(void)
{
    pl_network *network;
    assert_ok(pl_network_new(&network, &pl_model_alexnet,
                             &(pl_network_opts) {
                                 .example = PL_SHAPE(3, 224, 224),
                                 .classes = 1000,
                                 .no_values = true,
                             }));
    return network;
}

static pl_ram machine_with(int64_t bytes)
{
    return (pl_ram) { .bytes = bytes, .limit = "the machine" };
}

static void assert_refused(const pl_budget_opts *opts, int64_t bytes,
                           const char *text)
{
    assert_int_equal(PL_USAGE, pl_memory_check(opts, machine_with(bytes)));
    if (strstr(pl_error_message(), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, pl_error_message());
}

static void memory_that_suffices_is_taken(void **state)
{
    (void)state;
    pl_network *network = draft();
    pl_budget_opts opts = { .network = network, .batch = 128 };
    pl_budget budget;
    assert_ok(pl_budget_make(&budget, &opts));
    int64_t enough = budget.total + budget.total / 20;
    assert_ok(pl_memory_check(&opts, machine_with(enough)));
    assert_ok(pl_memory_check(&opts, machine_with(INT64_MAX)));
    /* What the data holds is taken already. */
    opts.data_bytes = (int64_t)1 << 40;
    assert_ok(pl_memory_check(&opts, machine_with(enough)));
    pl_network_free(network);
}

static void memory_that_is_short_is_refused_with_what_fits(void **state)
{
    (void)state;
    pl_network *network = draft();
    pl_budget_opts opts = { .network = network, .batch = 100000 };
    const int64_t gb = 1000000000;
    assert_refused(&opts, 4 * gb, "--batch 100000 needs ");
    assert_refused(&opts, 4 * gb, "parameters 244 MB, gradients and results");
    assert_refused(&opts, 4 * gb, "the machine has 3.88 GB to give");

    /* The batch it names fits, one more does not. */
    const char *named = strstr(pl_error_message(), "fits is --batch ");
    long long largest = 0;
    assert_non_null(named);
    assert_int_equal(1, sscanf(named, "fits is --batch %lld", &largest));
    assert_true(largest > 100 && largest < 100000);
    opts.batch = largest;
    assert_ok(pl_memory_check(&opts, machine_with(4 * gb)));
    opts.batch = largest + 1;
    assert_refused(&opts, 4 * gb, "the largest batch");

    assert_refused(&opts, gb / 4, "not even --batch 1 fits");
    pl_network_free(network);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(memory_that_suffices_is_taken),
           cmocka_unit_test(memory_that_is_short_is_refused_with_what_fits))
