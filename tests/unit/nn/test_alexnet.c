#include "nn/model.h"
#include "nn/models.h"
#include "support/unit.h"

/* Its parameters need no memory to be counted. */
static pl_status make(pl_network **network, pl_shape example, int32_t classes)
{
    return pl_network_new(network, &pl_model_alexnet,
                          &(pl_network_opts) {
                              .example = example,
                              .classes = classes,
                              .no_values = true,
                          });
}

static int64_t parameters(pl_shape example, int32_t classes)
{
    pl_network *network;
    assert_ok(make(&network, example, classes));
    int64_t count = pl_params_elements(network->params);
    pl_network_free(network);
    return count;
}

static void alexnet_has_as_many_parameters_as_published(void **state)
{
    (void)state;
    assert_int_equal(61100840, parameters(PL_SHAPE(3, 224, 224), 1000));
    assert_int_equal(61100840 - 990 * 4097,
                     parameters(PL_SHAPE(3, 224, 224), 10));
}

static void alexnet_takes_images_that_are_large_enough(void **state)
{
    (void)state;
    /* A single pixel is left for the dense layers. */
    int64_t convolutions =
        64 * 364 + 192 * 1601 + 384 * 1729 + 256 * 3457 + 256 * 2305;
    int64_t dense = 4096 * 257 + 4096 * 4097 + 5 * 4097;
    assert_int_equal(convolutions + dense, parameters(PL_SHAPE(3, 63, 63), 5));
    /* One channel. */
    assert_int_equal(convolutions + dense - 64 * 242,
                     parameters(PL_SHAPE(63, 63), 5));
    pl_network *network;
    assert_int_equal(PL_USAGE, make(&network, PL_SHAPE(3, 62, 62), 5));
    assert_non_null(strstr(pl_error_message(), "expected 63 x 63"));
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(alexnet_has_as_many_parameters_as_published),
           cmocka_unit_test(alexnet_takes_images_that_are_large_enough))
