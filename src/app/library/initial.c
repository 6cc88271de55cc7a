/* initial.c - first values of parameters from a program: which of them fit the
 * network, and when they are refused.  Servers, the other workers of a ring and
 * a checkpoint have parameters of their own, which this process cannot set. */
#include "app/library/training.h"

#include "tensor/params.h"

#include <string.h>

pl_status pl_training_check_initial(const pl_training *t)
{
    const pl_train_options *train = &t->options.train;
    if (t->opts.initial_count == 0)
        return PL_OK;
    if (train->resume)
        return PL_FAIL(PL_USAGE, "--resume and first values of parameters: "
                                 "give one of them");
    if (t->part.kind != PL_PART_ALONE)
        return PL_FAIL(PL_UNSUPPORTED,
                       "first values of parameters can be given to a training "
                       "of one worker only; leave out --workers and --ps");
    return PL_OK;
}

static pl_status set(pl_params *params, const pl_predict_tensor *given)
{
    char expected[PL_SHAPE_TEXT], found[PL_SHAPE_TEXT];
    int at = given->name != NULL ? pl_params_find(params, given->name) : -1;
    if (at < 0)
        return PL_FAIL(PL_USAGE,
                       "first values of %s: the model has no such "
                       "parameter",
                       given->name != NULL ? given->name : "a nameless one");
    const pl_params_item *item = pl_params_get(params, at);
    if (!pl_shape_equal(given->shape, item->shape) || given->values == NULL)
        return PL_FAIL(PL_USAGE, "first values of %s: %s, expected %s",
                       given->name, pl_shape_text(given->shape, found),
                       pl_shape_text(item->shape, expected));
    memcpy(pl_params_data(params, at), given->values,
           (size_t)item->count * sizeof(float));
    return PL_OK;
}

pl_status pl_training_set_initial(void *context, pl_params *params)
{
    const pl_training *t = context;
    for (int32_t i = 0; i < t->opts.initial_count; i++)
        PL_TRY(set(params, &t->opts.initial[i]));
    return PL_OK;
}
