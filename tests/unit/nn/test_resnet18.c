#include "nn/model.h"
#include "nn/models.h"
#include "support/kernels.h"

/* Its parameters need no memory to be counted. */
static pl_status make(pl_network **network, pl_shape example, int32_t classes)
{
    return pl_network_new(network, &pl_model_resnet18,
                          &(pl_network_opts) {
                              .example = example,
                              .classes = classes,
                              .no_values = true,
                          });
}

static void assert_parameters(int64_t expected, pl_shape example,
                              int32_t classes)
{
    pl_network *network;
    assert_ok(make(&network, example, classes));
    assert_int_equal(expected, pl_params_elements(network->params));
    pl_network_free(network);
}

/* torchvision's resnet18 has 11,689,512 for 1000 classes of large images. */
static void resnet18_has_as_many_parameters_as_published(void **state)
{
    (void)state;
    assert_parameters(11689512, PL_SHAPE(3, 224, 224), 1000);
    assert_parameters(11689512 - 990 * 513, PL_SHAPE(3, 64, 64), 10);
    /* Of small images the stem is 3 x 3. */
    int64_t small = 11689512 - 990 * 513 - 64 * 3 * (49 - 9);
    assert_parameters(small, PL_SHAPE(3, 32, 32), 10);
    assert_parameters(small - 64 * 2 * 9, PL_SHAPE(28, 28), 10);
}

static void resnet18_keeps_statistics_after_its_parameters(void **state)
{
    (void)state;
    pl_network *network;
    assert_ok(make(&network, PL_SHAPE(3, 32, 32), 10));
    const pl_params *params = network->params;
    int64_t statistics = 0;
    for (int i = 0; i < pl_params_count(params); i++) {
        const pl_params_item *item = pl_params_get(params, i);
        assert_true(item->averaged ==
                    (item->offset >= pl_params_trained(params)));
        statistics += item->averaged ? item->count : 0;
    }
    /* Mean and variance of 20 normalizations. */
    assert_int_equal(9600, statistics);
    assert_true(is_near(0.1, network->average_rate, 1e-7));
    pl_network_free(network);
}

static void resnet18_refuses_images_that_are_too_small(void **state)
{
    (void)state;
    pl_network *network;
    assert_int_equal(PL_USAGE, make(&network, PL_SHAPE(3, 7, 32), 5));
    assert_non_null(strstr(pl_error_message(), "expected 8 x 8"));
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(resnet18_has_as_many_parameters_as_published),
           cmocka_unit_test(resnet18_keeps_statistics_after_its_parameters),
           cmocka_unit_test(resnet18_refuses_images_that_are_too_small))
