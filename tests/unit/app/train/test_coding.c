#include "app/train/coding.h"

#include "support/unit.h"

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

static void link_is_that_of_the_resumed_run(void **state)
{
    (void)state;
    assert_int_equal(PL_LINK_FAST, link_of(PL_TRAIN_CODEC_AUTO,
                                           "192.0.2.1:4712", PL_LINK_FAST));
    assert_int_equal(PL_LINK_BYTES, link_of(PL_TRAIN_CODEC_FACTORS,
                                            "192.0.2.1:4712", PL_LINK_FAST));
}

UNIT_TESTS(cmocka_unit_test(link_of_one_host_is_not_measured),
           cmocka_unit_test(link_is_that_of_the_resumed_run))
