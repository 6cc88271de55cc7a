/* replay_ring.c - one step of all-reduce by a ring.
 *
 * Gradients are collected into buckets in backward order.  A bucket starts when
 * the slowest worker has it, takes 2 (N - 1) hops of 1 / N of its bytes over
 * every link at once, and shares the links with the buckets before it; its
 * latency does not occupy the links.  When all sums are complete, every worker
 * makes the update and reads its next batch.
 *
 * With local steps the workers make a round of updates independently; then the
 * planes are all-reduced one after another, without overlap.  The result is the
 * mean step of a round. */
#include "observe/steps/steps_priv.h"

#include "base/mem.h"

#include <math.h>

/* When the gradients of all workers are done; returns the time of the last. */
static double compute(const pl_step_case *c, const double *zeros, double *ready,
                      double *slow)
{
    double last = pl_step_compute(c, PL_STEP_OTHERS, c->input_s, zeros, ready);
    if (!c->differs)
        return last;
    last =
        fmax(last, pl_step_compute(c, PL_STEP_SLOW, c->input_s, zeros, slow));
    for (size_t i = 0; i < c->work->layer_count; i++)
        ready[i] = fmax(ready[i], slow[i]);
    return last;
}

/* When the last sum is complete. */
static double sum(const pl_step_case *c, const double *ready)
{
    double n = c->job.workers, link_s = fmax(c->link_s, c->slow_link_s);
    double hops = 2 * (n - 1), free_s = 0, last = 0, bytes = 0;
    for (size_t i = c->work->layer_count; i-- > 0;) {
        bytes += c->work->layers[i].push_bytes;
        if (bytes < PL_STEP_BUCKET && i > 0)
            continue;
        double wire = hops / n * bytes * link_s + hops * c->message_s;
        double adding =
            c->push > 0 ? (n - 1) / n * bytes / c->push * c->add_s : 0;
        free_s = fmax(free_s, ready[i]) + fmax(wire, adding);
        last = fmax(last, free_s + hops * c->latency_s);
        bytes = 0;
    }
    return last;
}

/* The time that the exchanges of a round add to each of its steps: one status
 * exchange, and all sums. */
static double round_share(const pl_step_case *c, const double *zeros)
{
    double sums = c->job.planes * sum(c, zeros);
    return (2 * c->latency_s + sums) / c->job.local_steps;
}

pl_status pl_step_ring(const pl_step_case *c, double *step_s)
{
    size_t layers = c->work->layer_count;
    double *times;
    PL_TRY(PL_NEW(times, 3 * layers + 1));
    double *ready = times + layers, *slow = ready + layers;
    double last = compute(c, times, ready, slow);
    if (c->job.local_steps > 1 && c->job.workers > 1) {
        last += round_share(c, times);
    } else if (layers > 0 && c->job.workers > 1) {
        /* All workers also exchange their status. */
        double exchanged = ready[layers - 1] + 2 * c->latency_s;
        last = fmax(last, fmax(exchanged, sum(c, ready)));
    }
    *step_s = last + c->update_s;
    pl_mem_free(times);
    return PL_OK;
}
