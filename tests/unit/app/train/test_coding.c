#include "app/train/coding.h"

#include "nn/models.h"
#include "support/unit.h"
#include "train/optim/optim.h"

#include <math.h>

static pl_link_class link_of(int codec, const char *last, int64_t kept)
{
    char first[] = "127.0.0.1:4711", second[64];
    snprintf(second, sizeof second, "%s", last);
    char *addresses[] = { first, second };
    pl_cluster cluster = { .workers = 2, .worker_address = addresses };
    pl_train_options train = { .codec = codec };
    return pl_coding_link(&train, &cluster, kept);
}

/* So that busy cores cannot make a slow link of memory. */
static void link_of_one_host_is_not_measured(void **state)
{
    (void)state;
    assert_int_equal(PL_LINK_FAST,
                     link_of(PL_TRAIN_CODEC_AUTO, "127.0.0.1:4712", 0));
    assert_int_equal(PL_LINK_UNKNOWN,
                     link_of(PL_TRAIN_CODEC_AUTO, "192.0.2.1:4712", 0));
    assert_int_equal(PL_LINK_UNKNOWN,
                     link_of(PL_TRAIN_CODEC_AUTO, "no address", 0));
}

static void link_of_a_resumed_run_is_reused(void **state)
{
    (void)state;
    assert_int_equal(PL_LINK_FAST, link_of(PL_TRAIN_CODEC_AUTO,
                                           "192.0.2.1:4712", PL_LINK_FAST));
    assert_int_equal(PL_LINK_BYTES, link_of(PL_TRAIN_CODEC_FACTORS,
                                            "192.0.2.1:4712", PL_LINK_FAST));
}

static pl_bottleneck_opts offer_of(const pl_train_options *train)
{
    pl_network *network;
    pl_bottleneck_opts found = { 0 };
    pl_options options = { .model = &pl_model_alexnet, .train = *train };
    assert_ok(pl_network_new(&network, options.model,
                             &(pl_network_opts) {
                                 .example = PL_SHAPE(3, 224, 224),
                                 .classes = 1000,
                                 .no_values = true,
                             }));
    assert_ok(pl_coding_offer(&found, &options, network, 2));
    pl_network_free(network);
    return found;
}

/* Dense layers hold 234 of AlexNet's 244 MB; their factors of 32 examples take
 * one hundredth of the bytes that a sum moves in both directions. */
static void offers_match_what_a_job_can_send(void **state)
{
    (void)state;
    pl_train_options train = {
        .strategy = PL_TRAIN_STRATEGY_ALLREDUCE,
        .engine = PL_TRAIN_ENGINE_RING,
        .batch = 32,
        .micro_batches = 1,
        .local_steps = 1,
        .topk_share = 0.01,
        .optimizer = PL_OPTIM_MOMENTUM,
    };
    pl_bottleneck_opts found = offer_of(&train);
    assert_true(found.may_use_bf16);
    assert_int_equal(2, found.planes); /* with the velocity */
    assert_true(fabs(found.topk_bytes - 0.02) < 1e-9);
    assert_true(found.factors_bytes > 0.04 && found.factors_bytes < 0.06);
    assert_true(found.factors_s > 0);
    /* Servers add gradients, and have no rounds. */
    train.strategy = PL_TRAIN_STRATEGY_PS;
    found = offer_of(&train);
    assert_true(found.may_use_bf16);
    assert_true(found.planes == 0 && found.topk_bytes == 0 &&
                found.factors_bytes == 0);
    /* With rounds there is no gradient. */
    train.strategy = PL_TRAIN_STRATEGY_ALLREDUCE;
    train.local_steps = 8;
    found = offer_of(&train);
    assert_true(!found.may_use_bf16 && found.planes == 0 &&
                found.topk_bytes == 0 && found.factors_bytes == 0);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(link_of_one_host_is_not_measured),
           cmocka_unit_test(link_of_a_resumed_run_is_reused),
           cmocka_unit_test(offers_match_what_a_job_can_send))
