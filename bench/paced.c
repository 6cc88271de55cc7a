/* paced - the whole program, with workers that wait instead of computing.
 *
 * The linker substitutes the functions below for pl_compute_gradient,
 * pl_compute_stream, pl_compute_score and pl_reader_next, so that data,
 * messages, servers, updates, checkpoints and records are those of `paceline`,
 * and a machine can stand for more hosts than it has cores.  `plan` measures
 * the same steps.
 *
 * PACED=FILE  a line of two numbers for each parameter: the nanoseconds of its
 *             forward and its backward pass; their sum is the computing time of
 *             a step.  A small model also computes, and waits for the rest of
 *             the time.  Without it nothing changes.
 * PACED_SPIN  waits busily, like a processor that computes
 * PACED_INPUT=NS, PACED_SCORE=NS  reading a batch of training data, and
 *             scoring one of a test, take this many nanoseconds longer
 * PACED_STEPS=FILE  is written at the end: a line for each step with its start,
 *             in nanoseconds
 *
 * Threads: the one that runs the loop; `read_pace` runs before it. */
#include <paceline.h>

#include "train/compute/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define PARAMS_MOST 64
#define STEPS_MOST  (1 << 16)

static struct {
    bool on, spin, warm; /* warm: a gradient was computed */
    int params;
    int64_t forward_ns[PARAMS_MOST], backward_ns[PARAMS_MOST], all_ns;
    int64_t input_ns, score_ns;
} pace;

static struct {
    const char *path; /* NULL: not wanted */
    int count;
    int64_t begin_ns[STEPS_MOST];
} steps;

double __real_pl_compute_gradient(pl_compute *compute, const pl_batch *batch,
                                  int64_t step, int64_t part, pl_sync *apply);
double __wrap_pl_compute_gradient(pl_compute *compute, const pl_batch *batch,
                                  int64_t step, int64_t part, pl_sync *apply);
pl_status __real_pl_compute_stream(pl_compute *compute, const pl_batch *batch,
                                   int64_t step, int64_t part,
                                   pl_exec_hooks *hooks, double *loss);
pl_status __wrap_pl_compute_stream(pl_compute *compute, const pl_batch *batch,
                                   int64_t step, int64_t part,
                                   pl_exec_hooks *hooks, double *loss);

pl_score __real_pl_compute_score(pl_compute *compute, const pl_batch *batch);
pl_score __wrap_pl_compute_score(pl_compute *compute, const pl_batch *batch);
pl_status __real_pl_reader_next(pl_reader *reader, pl_batch *batch);
pl_status __wrap_pl_reader_next(pl_reader *reader, pl_batch *batch);

static int64_t now_on(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void wait_until(int64_t at_ns)
{
    struct timespec at = { .tv_sec = at_ns / 1000000000,
                           .tv_nsec = at_ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        continue;
}

/* By processor time, not the clock: a task with less processor takes longer. */
static void spin(int64_t ns)
{
    int64_t until = now_on(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now_on(CLOCK_THREAD_CPUTIME_ID) < until)
        continue;
}

static int64_t begin_step(void)
{
    int64_t now = now_on(CLOCK_MONOTONIC);
    if (steps.count < STEPS_MOST)
        steps.begin_ns[steps.count++] = now;
    return now;
}

static void write_steps(void)
{
    FILE *file = steps.path != NULL ? fopen(steps.path, "w") : NULL;
    if (file == NULL)
        return;
    for (int i = 0; i < steps.count; i++)
        fprintf(file, "%lld\n", (long long)steps.begin_ns[i]);
    fclose(file);
}

/* *at is the time of the paced clock. */
static void advance(int64_t *at, int64_t ns)
{
    *at += ns;
    if (pace.spin)
        spin(ns);
    else
        wait_until(*at);
}

double __wrap_pl_compute_gradient(pl_compute *compute, const pl_batch *batch,
                                  int64_t step, int64_t part, pl_sync *apply)
{
    int64_t at = begin_step();
    double loss = __real_pl_compute_gradient(compute, batch, step, part, apply);
    if (pace.on)
        advance(&at, pace.all_ns);
    return loss;
}

/* The time of a hook, such as waiting for parameters, is added. */
static pl_status call(pl_status (*hook)(void *, int), pl_exec_hooks *hooks,
                      int param, int64_t *at)
{
    int64_t begin = now_on(CLOCK_MONOTONIC);
    hooks->status = hook(hooks->context, param);
    *at += now_on(CLOCK_MONOTONIC) - begin;
    return hooks->status;
}

/* It still has the sums of the last step. */
static void clear(pl_params *gradient)
{
    for (int p = 0; p < pl_params_count(gradient); p++)
        memset(pl_params_data(gradient, p), 0,
               (size_t)pl_params_get(gradient, p)->count * sizeof(float));
}

pl_status __wrap_pl_compute_stream(pl_compute *compute, const pl_batch *batch,
                                   int64_t step, int64_t part,
                                   pl_exec_hooks *hooks, double *loss)
{
    static double first;
    if (!pace.on || !pace.warm) {
        pace.warm = true;
        pl_status status =
            __real_pl_compute_stream(compute, batch, step, part, hooks, loss);
        first = *loss;
        return status;
    }
    int64_t at = begin_step();
    clear(pl_compute_diff(compute));
    for (int p = 0; p < pace.params; p++) {
        PL_TRY(call(hooks->need, hooks, p, &at));
        advance(&at, pace.forward_ns[p]);
    }
    for (int p = pace.params; p-- > 0;) {
        advance(&at, pace.backward_ns[p]);
        PL_TRY(call(hooks->ready, hooks, p, &at));
    }
    *loss = first;
    return PL_OK;
}

pl_score __wrap_pl_compute_score(pl_compute *compute, const pl_batch *batch)
{
    wait_until(now_on(CLOCK_MONOTONIC) + pace.score_ns);
    return __real_pl_compute_score(compute, batch);
}

pl_status __wrap_pl_reader_next(pl_reader *reader, pl_batch *batch)
{
    wait_until(now_on(CLOCK_MONOTONIC) + pace.input_ns);
    return __real_pl_reader_next(reader, batch);
}

static int64_t read_ns(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

static bool read_pace(const char *path)
{
    long long forward, backward;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (pace.params < PARAMS_MOST &&
           fscanf(file, "%lld %lld", &forward, &backward) == 2) {
        pace.forward_ns[pace.params] = forward;
        pace.backward_ns[pace.params++] = backward;
        pace.all_ns += forward + backward;
    }
    fclose(file);
    pace.on = pace.params > 0;
    return pace.on;
}

int main(int argc, char **argv)
{
    const char *path = getenv("PACED");
    (void)!prctl(PR_SET_TIMERSLACK, 1);
    pace.spin = getenv("PACED_SPIN") != NULL;
    pace.input_ns = read_ns("PACED_INPUT");
    pace.score_ns = read_ns("PACED_SCORE");
    if (path != NULL && !read_pace(path)) {
        fprintf(stderr, "paced: %s: no times in it\n", path);
        return 2;
    }
    steps.path = getenv("PACED_STEPS");
    int code = pl_app_main(argc, argv, NULL);
    write_steps();
    return code;
}
