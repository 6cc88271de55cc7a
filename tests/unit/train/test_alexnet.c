/* AlexNet as it is built in, on small images. */
#include "support/train.h"
#include "train/loop/loop.h"

#define CLASSES 4

/* With dropout, as by default; guessing costs log(4) = 1.39. */
static void alexnet_learns(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) {
                     .model = &pl_model_alexnet,
                     .side = 63,
                     .classes = CLASSES,
                     .examples = 32,
                     .threads = 2,
                     .optim = { .name = "momentum" },
                     .lr = 0.01,
                 });
    pl_loop_opts opts = rig_loop(&r);
    opts.test = NULL;
    opts.order = (pl_reader_opts) { .batch = 16, .seed = 1 };
    opts.steps = 50;
    pl_loop_result result;
    assert_ok(pl_loop_run(&opts, &result));
    assert_true(result.train_loss.loss < 0.9);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(alexnet_learns))
