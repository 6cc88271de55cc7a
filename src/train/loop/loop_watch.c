/* A training diverges if the mean loss of the last 20 batches is more than 4
 * times that of an untrained model.  That is the loss of the first batch, or of
 * random answers if higher, so that a lucky batch, or a resumed run, which
 * starts low, raises no alarm.  In async and ssp, other workers may have
 * updated the parameters before the first batch is computed: its loss may have
 * exploded already and is not used, unless the parameters start with a loss far
 * above random answers. */
#include "train/loop/loop_priv.h"

#include "base/log.h"

#include <math.h>
#include <stdio.h>

#define BATCHES 20
#define TIMES   4

/* Of random answers. */
static double chance_loss(const pl_network *network)
{
    if (network->sparse) /* binary */
        return log(2);
    return log((double)pl_node_shape(network->logits).dim[1]);
}

/* Loss of an untrained model, from the first batch. */
static double first_loss(const pl_loop *l, double loss)
{
    double chance = chance_loss(l->opts->network);
    bool untouched = !l->opts->own_pace || l->result->progress.step == 1;
    return untouched || l->opts->far_start ? fmax(loss, chance) : chance;
}

void pl_loop_watch(pl_loop *l, double loss)
{
    const pl_losses *losses = &l->recorder.losses;
    const pl_network *network = l->opts->network;
    if (l->usual_loss <= 0)
        l->usual_loss = first_loss(l, loss);
    if (l->warned || l->opts->follower || losses->steps % BATCHES != 0)
        return;
    double now = pl_losses_last(losses, BATCHES).loss;
    if (!(now > TIMES * l->usual_loss))
        return;
    char text[160];
    int64_t step = l->result->progress.step;
    l->warned = true;
    snprintf(text, sizeof text,
             "the training loss is %.4g, up from %.4g: the training diverges; "
             "use a smaller --lr%s",
             now, l->usual_loss, network->sparse ? "" : " or --clip");
    pl_log(PL_LOG_WARN, "step %lld: %s", (long long)step, text);
    pl_recorder_warn(&l->recorder, step, text);
}
