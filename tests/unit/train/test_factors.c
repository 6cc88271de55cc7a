/* Which layers travel as factors, and how many bytes that is. */
#include "train/factors.h"

#include "nn/models.h"
#include "support/unit.h"

/* AlexNet's first dense layer. */
static const pl_factor_layer large = { .sizes = { 4096, 9216 } };

static void factors_count_bytes_of_the_busiest_link(void **state)
{
    (void)state;
    assert_int_equal(32 * (4096 + 9216) * 4, pl_factors_bytes(&large, 32, 2));
    assert_int_equal(3 * 32 * (4096 + 9216) * 4,
                     pl_factors_bytes(&large, 32, 4));
    assert_int_equal(4096 * 9216 * 4, pl_factors_plain_bytes(&large, 2));
    assert_int_equal(4096 * 9216 * 6, pl_factors_plain_bytes(&large, 4));
}

static void factors_pay_where_the_link_is_slower_than_products(void **state)
{
    (void)state;
    for (int32_t n = 2; n <= 4; n++) {
        assert_false(pl_factors_pay(&large, 32, n, PL_LINK_UNKNOWN));
        assert_false(pl_factors_pay(&large, 32, n, PL_LINK_FAST));
        assert_true(pl_factors_pay(&large, 32, n, PL_LINK_1G));
        assert_true(pl_factors_pay(&large, 32, n, PL_LINK_SLOW));
        assert_true(pl_factors_pay(&large, 32, n, PL_LINK_BYTES));
    }
    assert_false(pl_factors_pay(&large, 32, 8, PL_LINK_10G));
    /* Factors that are no smaller than the gradient. */
    assert_false(pl_factors_pay(&large, 4000, 2, PL_LINK_BYTES));
}

static void links_have_classes(void **state)
{
    (void)state;
    assert_int_equal(PL_LINK_SLOW, pl_link_class_of(11e6));
    assert_int_equal(PL_LINK_1G, pl_link_class_of(117e6));
    assert_int_equal(PL_LINK_10G, pl_link_class_of(1.1e9));
    assert_int_equal(PL_LINK_FAST, pl_link_class_of(6e9));
    assert_int_equal(PL_LINK_FAST, pl_link_class_of(-1)); /* no time at all */
}

static void factors_are_of_dense_layers_that_pay(void **state)
{
    (void)state;
    pl_network *network;
    pl_factors *factors;
    assert_ok(pl_network_new(&network, &pl_model_lenet,
                             &(pl_network_opts) { .example = PL_SHAPE(28, 28),
                                                  .classes = 10,
                                                  .no_values = true }));
    assert_ok(pl_factors_new(&factors, network, 16, 2));
    assert_non_null(factors);
    int64_t end = 1 + factors->count;
    for (int i = 0; i < factors->count; i++) {
        const pl_factor_layer *layer = &factors->layers[i];
        assert_true(layer->first >= end && layer->first % 16 == 0);
        end = layer->first + 16 * (layer->sizes.outputs + layer->sizes.inputs);
        assert_true(pl_factors_bytes(layer, 16, 2) <
                    pl_factors_plain_bytes(layer, 2));
    }
    assert_true(end <= factors->floats);
    pl_factors_free(factors);
    assert_ok(pl_factors_new(&factors, network, 100000, 2));
    assert_null(factors); /* too many rows */
    assert_ok(pl_factors_new(&factors, network, 16, 1));
    assert_null(factors); /* no peer to send them to */
    pl_network_free(network);
    assert_int_equal(0, pl_mem_live());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_count_bytes_of_the_busiest_link),
        cmocka_unit_test(factors_pay_where_the_link_is_slower_than_products),
        cmocka_unit_test(links_have_classes),
        cmocka_unit_test(factors_are_of_dense_layers_that_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
