/* predict_sparse.c - runs a sparse model over a source and prints one
 * probability per example. */
#include "app/predict/predict_sparse.h"

#include "base/buffer.h"
#include "base/text/quote.h"
#include "train/compute/compute.h"

#include <stdio.h>

#define BATCH  4096
#define WINDOW 32768 /* examples decoded at a time */

/* One source, from opening it to the last line. */
typedef struct session {
    const pl_predict_sparse_opts *opts;
    pl_dataset *set;
    pl_reader *reader;
    pl_compute *compute;
    int64_t index;    /* of the next example */
    pl_buffer prefix; /* of a line of text */
} session;

/* Examples with the settings of the training, all of them, in the order of the
 * file. */
static pl_status open_set(session *s, pl_trained *trained)
{
    pl_train_options *train = &trained->options.train;
    pl_job *job = &trained->job;
    train->features = job->example.dim[0];
    train->holdout = 0;
    train->shuffle_buffer = WINDOW;
    PL_TRY(pl_job_open_set(job, s->opts->source, PL_SPLIT_TEST, &s->set));
    if (!s->set->sparse)
        return PL_FAIL(PL_USAGE,
                       "%s has dense examples, but the model is sparse: "
                       "predict RUN libsvm:FILE",
                       s->opts->source);
    return pl_job_check_numbering(job, s->set);
}

static pl_status open_session(session *s, pl_trained *trained)
{
    const pl_job *job = &trained->job;
    PL_TRY(open_set(s, trained));
    PL_TRY(
        pl_reader_new(&s->reader, s->set,
                      &(pl_reader_opts) { .batch = BATCH, .one_pass = true }));
    return pl_compute_new(&s->compute, &(pl_compute_opts) {
                                           .network = job->network,
                                           .batch = BATCH,
                                           .pool = job->pool,
                                           .kernels = job->kernels,
                                           .forward = true,
                                       });
}

static pl_status make_prefix(session *s)
{
    if (s->opts->several) {
        pl_quote_terminal(&s->prefix, s->opts->source);
        pl_buffer_text(&s->prefix, ":");
    }
    return pl_buffer_status(&s->prefix);
}

static pl_status print_json(const session *s, int64_t index, float probability)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_set_text(json, "file", s->opts->source));
    PL_TRY_OUT(status, pl_json_set_int(json, "index", index));
    PL_TRY_OUT(status, pl_json_set_int(json, "class", probability >= 0.5f));
    PL_TRY_OUT(status,
               pl_json_set_real(json, "probability", (double)probability));
    PL_TRY_OUT(status, pl_json_print(json, stdout));
out:
    pl_json_free(json);
    return status;
}

static pl_status print_batch(session *s, const pl_batch *batch)
{
    PL_TRY(pl_compute_prepare(s->compute, batch));
    (void)pl_compute_score(s->compute, batch);
    const float *probs = pl_compute_probs(s->compute);
    for (int64_t r = 0; r < batch->rows; r++, s->index++) {
        if (s->opts->json) {
            PL_TRY(print_json(s, s->index, probs[r]));
            continue;
        }
        if (s->prefix.data != NULL)
            fputs(s->prefix.data, stdout);
        printf("%lld %.7g\n", (long long)s->index, (double)probs[r]);
    }
    return PL_OK;
}

static pl_status print_all(session *s)
{
    /* Without a reader of the output there is nothing left to compute. */
    while (!ferror(stdout)) {
        pl_batch batch;
        PL_TRY(pl_reader_next(s->reader, &batch));
        if (batch.rows == 0)
            break;
        PL_TRY(print_batch(s, &batch));
    }
    return PL_OK;
}

pl_status pl_predict_sparse(pl_trained *trained,
                            const pl_predict_sparse_opts *opts)
{
    session s = { .opts = opts };
    pl_status status = open_session(&s, trained);
    if (status == PL_OK)
        status = make_prefix(&s);
    if (status == PL_OK)
        status = print_all(&s);
    pl_buffer_close(&s.prefix);
    pl_compute_free(s.compute);
    pl_reader_free(s.reader);
    pl_dataset_free(s.set);
    return status;
}
