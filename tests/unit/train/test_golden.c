/* The losses of the first 20 steps of softmax regression on digits, against
 * tests/golden/softmax_loss.txt.
 *
 * A change of data, order, start, model, gradient or update shows here.  When
 * it is meant, the new curve is the one that the failing test prints. */
#include "data/digits/digits.h"
#include "support/train.h"

#include <math.h>

#define STEPS 20
#define BATCH 100

static void read_golden(double losses[STEPS])
{
    FILE *file = fopen(PL_GOLDEN "/softmax_loss.txt", "r");
    assert_non_null(file);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(1, fscanf(file, "%lf", &losses[i]));
    fclose(file);
}

static void train(pl_dataset *digits, const pl_kernels *kernels,
                  double losses[STEPS])
{
    rig r;
    rig_opts opts = { .model = &pl_model_softmax,
                      .side = PL_DIGITS_SIDE,
                      .classes = 10,
                      .kernels = kernels,
                      .lr = 0.1 };
    rig_init(&r, &opts);
    pl_reader *reader;
    pl_compute *compute;
    assert_ok(pl_reader_new(&reader, digits,
                            &(pl_reader_opts) { .batch = BATCH, .seed = 1 }));
    assert_ok(pl_compute_new(&compute, &(pl_compute_opts) {
                                           .network = r.network,
                                           .batch = BATCH,
                                           .pool = r.pool,
                                           .kernels = kernels,
                                       }));
    assert_ok(r.sync->ops->join(r.sync, &(pl_standing) { 0 }));
    for (int i = 0; i < STEPS; i++) {
        pl_batch batch;
        pl_commit committed;
        assert_ok(pl_reader_next(reader, &batch));
        losses[i] = pl_compute_gradient(compute, &batch, i + 1, 0, r.sync);
        assert_ok(r.sync->ops->commit(r.sync, &committed));
    }
    pl_compute_free(compute);
    pl_reader_free(reader);
    rig_close(&r);
}

static void softmax_on_digits_follows_the_golden_curve(void **state)
{
    (void)state;
    double golden[STEPS], losses[STEPS];
    pl_dataset *digits;
    read_golden(golden);
    assert_ok(pl_digits_open(&digits, PL_SPLIT_TRAIN, &(pl_source_opts) { 0 }));
    for (const pl_kernels *const *all = pl_kernels_all(); *all != NULL; all++) {
        const pl_kernels *kernels = pl_kernels_find((*all)->name);
        if (kernels == NULL)
            continue;
        train(digits, kernels, losses);
        bool same = true;
        for (int i = 0; i < STEPS; i++)
            same = same && fabs(losses[i] - golden[i]) <= 1e-4;
        for (int i = 0; !same && i < STEPS; i++)
            print_message("%.7f\n", losses[i]);
        if (!same)
            fail_msg("kernels %s: another curve, see above", kernels->name);
    }
    assert_true(golden[STEPS - 1] < golden[0]);
    pl_dataset_free(digits);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(softmax_on_digits_follows_the_golden_curve))
