#include "app/train/memory.h"

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
    assert_int_equal(PL_USAGE,
                     pl_memory_check(opts, machine_with(bytes), NULL));
    if (strstr(pl_error_message(), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, pl_error_message());
}

static void sufficient_memory_is_accepted(void **state)
{
    (void)state;
    pl_network *network = draft();
    pl_budget_opts opts = { .network = network, .batch = 128 };
    pl_budget budget;
    assert_ok(pl_budget_make(&budget, &opts));
    int64_t enough = budget.total + budget.total / 20;
    assert_ok(pl_memory_check(&opts, machine_with(enough), NULL));
    assert_ok(pl_memory_check(&opts, machine_with(INT64_MAX), NULL));
    /* The memory of the data is already taken. */
    opts.data_bytes = (int64_t)1 << 40;
    assert_ok(pl_memory_check(&opts, machine_with(enough), NULL));
    pl_network_free(network);
}

static void insufficient_memory_is_refused_with_a_batch_that_fits(void **state)
{
    (void)state;
    pl_network *network = draft();
    pl_budget_opts opts = { .network = network, .batch = 100000 };
    const int64_t gb = 1000000000;
    assert_refused(&opts, 4 * gb, "--batch 100000 needs ");
    assert_refused(&opts, 4 * gb, "parameters 244 MB, gradients and results");
    assert_refused(&opts, 4 * gb, "the machine has 3.88 GB available");

    /* The batch it names fits, one more does not. */
    const char *named = strstr(pl_error_message(), "fits is --batch ");
    long long largest = 0;
    assert_non_null(named);
    assert_int_equal(1, sscanf(named, "fits is --batch %lld", &largest));
    assert_true(largest > 100 && largest < 100000);
    opts.batch = largest;
    assert_ok(pl_memory_check(&opts, machine_with(4 * gb), NULL));
    opts.batch = largest + 1;
    assert_refused(&opts, 4 * gb, "the largest batch");

    assert_refused(&opts, gb / 4, "not even --batch 1 fits");
    pl_network_free(network);
    assert_int_equal(0, pl_mem_live());
}

/* Address space of stacks adds to the need; it does not lower what is
 * available. */
static void available_memory_is_never_negative(void **state)
{
    (void)state;
    pl_network *network = draft();
    pl_budget_opts opts = { .network = network,
                            .batch = 1,
                            .address_bytes = 50000000 };
    pl_budget plain, whole;
    assert_ok(pl_budget_make(&whole, &opts));
    assert_refused(&opts, 20000000, "thread stacks and mapped files 50.0 MB");
    assert_refused(&opts, 20000000, "the machine has 19.4 MB available");
    assert_refused(&opts, 0, "the machine has 0 B available");
    opts.address_bytes = 0;
    assert_ok(pl_budget_make(&plain, &opts));
    assert_int_equal(50000000, whole.total - plain.total);
    char text[PL_BYTES_TEXT];
    assert_string_equal("-27.6 MB", pl_memory_text(-27610000, text));
    assert_string_equal("-5 B", pl_memory_text(-5, text));
    assert_string_equal("7.20 TB", pl_memory_text(7200000000000, text));
    pl_network_free(network);
}

/* --eval-batch is named only where it helps. */
static void memory_advice_is_tried_before_it_is_given(void **state)
{
    (void)state;
    pl_network *network; /* of a kind that has memory of its own for tests */
    assert_ok(pl_network_new(&network, &pl_model_softmax,
                             &(pl_network_opts) {
                                 .example = PL_SHAPE(28, 28),
                                 .classes = 10,
                                 .no_values = true,
                             }));
    pl_budget_opts opts = { .network = network, .batch = 1 };
    pl_budget budget;
    assert_ok(pl_budget_make(&budget, &opts));
    opts.eval_batch = 50000;
    int64_t room = budget.total + budget.total / 4;
    assert_refused(&opts, room,
                   "the largest batch that fits is --batch 1 with "
                   "--eval-batch 1");
    opts.eval_batch = 1;
    assert_ok(pl_memory_check(&opts, machine_with(room), NULL));
    opts.eval_batch = 50000;
    assert_refused(&opts, budget.params / 2, "not even --batch 1 fits");
    assert_null(strstr(pl_error_message(), "--eval-batch"));
    assert_int_equal(PL_USAGE,
                     pl_memory_check(&opts, machine_with(1000), "buy some"));
    assert_non_null(strstr(pl_error_message(), "--batch 1 fits: buy some"));
    pl_network_free(network);
}

UNIT_TESTS(
    cmocka_unit_test(available_memory_is_never_negative),
    cmocka_unit_test(memory_advice_is_tried_before_it_is_given),
    cmocka_unit_test(sufficient_memory_is_accepted),
    cmocka_unit_test(insufficient_memory_is_refused_with_a_batch_that_fits))
