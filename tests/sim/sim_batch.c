/* What a simulated worker computes: gradients that can be told from each other
 * in the parameters, and, where these are keyed, which keys a batch has. */
#include "base/rng.h"
#include "sim/sim_priv.h"

int32_t sim_counter(const sim *s, int64_t element)
{
    for (int32_t j = 0; j < s->servers; j++) {
        int64_t at = element - s->server[j].first;
        if (at >= 0 && at < s->workers)
            return (int32_t)at;
    }
    return -1;
}

/* Every batch has the places that count its worker, and some others. */
bool sim_has_key(const sim *s, int32_t worker, sim_batch batch, int64_t element)
{
    int32_t place = sim_counter(s, element);
    if (!s->keyed)
        return true;
    if (place >= 0)
        return place == worker;
    uint64_t key = pl_rng_key(pl_rng_key(s->key, 79), (uint64_t)batch.share);
    return pl_rng_below(pl_rng_key(key, (uint64_t)batch.position),
                        (uint64_t)element, 4) == 0;
}

pl_status sim_batch_keys(const sim *s, int32_t worker, sim_batch batch,
                         pl_key_batch *out)
{
    int64_t count = 0;
    uint64_t keys[SIM_FLOATS];
    for (int64_t i = 0; i < s->floats; i++)
        if (sim_has_key(s, worker, batch, i))
            keys[count++] = (uint64_t)i;
    PL_TRY(pl_key_batch_resize(out, count));
    for (int64_t k = 0; k < count; k++)
        out->keys[k] = keys[k];
    return pl_key_batch_cut(out, s->floats);
}

/* In sync.  On each server element w counts worker w's gradients (exactly, with
 * a learning rate of 1); the others depend on the parameters and on what the
 * worker reads. */
void sim_gradient(const sim *s, int32_t worker, int64_t step, int64_t position,
                  const float *params, float *grad)
{
    uint64_t key = pl_rng_key(pl_rng_key(s->key, 77), (uint64_t)worker);
    sim_batch batch = { worker, position };
    key = pl_rng_key(key, (uint64_t)step);
    for (int64_t i = 0; i < s->floats; i++)
        if (!sim_has_key(s, worker, batch, i))
            grad[i] = 0.0f;
        else if (sim_counter(s, i) >= 0)
            grad[i] = sim_counter(s, i) == worker ? -1.0f : 0.0f;
        else
            grad[i] = 0.125f * params[i] +
                      (float)pl_rng_uniform(key, (uint64_t)i) - 0.5f;
}

void sim_combine(const sim *s, int64_t n, int32_t count,
                 const float *const *terms, float *sum)
{
    const pl_kernels *kernels = pl_kernels_best();
    if (!s->keyed) {
        kernels->sum_parts(n, count, terms, sum);
    } else { /* key by key, in the order of workers */
        for (int64_t i = 0; i < n; i++) {
            sum[i] = terms[0][i];
            for (int32_t t = 1; t < count; t++)
                sum[i] += terms[t][i];
        }
    }
    if (!s->sum && count > 1)
        kernels->scale(n, 1.0f / (float)count, sum, sum);
}

static void note_position(sim_worker *w, int64_t step)
{
    int64_t *at = &w->positions[step];
    *at = *at == 0 || *at == w->batch.position + 1 ? w->batch.position + 1 : -1;
}

void sim_make_gradient(sim_worker *w)
{
    sim *s = w->sim;
    pl_ps_client_view view = sim_view(w);
    if (s->mode == PL_PS_SYNC) {
        /* A backup worker may find that the job is further when it has its
         * parameters. */
        if (w->batch.position != view.step && sim_exact(s))
            sim_broken(s, "course C2: worker %d reads batch %lld for step %lld",
                       w->index, (long long)w->batch.position,
                       (long long)view.step);
        note_position(w, view.step);
        sim_gradient(s, w->index, view.step, w->batch.position, w->params,
                     w->grad);
        return;
    }
    if (w->pushed + 1 == SIM_PUSHES) {
        sim_broken(s, "course C1: worker %d makes gradients without end",
                   w->index);
        return;
    }
    w->pushes[++w->pushed] = (sim_push) {
        .batch = w->batch,
        .generation = view.generation,
        .life = s->server[0].life,
    };
    sim_stamp(s, w->index, w->pushed, w->grad);
}
