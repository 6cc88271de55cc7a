#include "cli/summary.h"
#include "base/quote.h"

#include "base/ram.h"
#include "cli/bottleneck.h"
#include "cli/progress.h"
#include "data/sparse/set.h"

#include <string.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)

static int64_t peak_rss_mb(void)
{
    return (pl_ram_peak() + MB - 1) / MB;
}

/* Write `status` through a chain of setters: stops at the first failure. */
#define SET(call)                                                              \
    do {                                                                       \
        if (status == PL_OK)                                                   \
            status = (call);                                                   \
    } while (0)

pl_status pl_summary_score(pl_json *object, const pl_score *score, bool tested)
{
    const struct {
        const char *key;
        double value;
        bool binary; /* of models that answer yes or no */
    } all[] = {
        { "test_loss", score->loss, false },
        { "test_accuracy", score->accuracy, false },
        { "test_auc", score->auc, true },
        { "test_precision", score->precision, true },
        { "test_recall", score->recall, true },
        { "test_calibration", score->calibration, true },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].binary && !(tested && score->binary))
            continue;
        PL_TRY(tested ? pl_json_set_real(object, all[i].key, all[i].value)
                      : pl_json_set_null(object, all[i].key));
    }
    return PL_OK;
}

/* Examples of files that were passed over. */
static int64_t bad_of(const pl_job *job)
{
    int64_t bad = pl_sparse_set_bad((pl_sparse_set *)job->train);
    if (job->test != NULL && pl_sparse_set_is(job->test))
        bad += pl_sparse_set_bad((pl_sparse_set *)job->test);
    return bad;
}

pl_status pl_summary_row(pl_json **out, const pl_summary_row_opts *opts)
{
    const pl_loop_result *result = opts->result;
    const pl_phases *phases = &result->phases;
    double total =
        phases->input_s + phases->compute_s + phases->send_s + phases->wait_s;
    double whole = total > 0 ? total : 1;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    pl_json *row;
    PL_TRY(pl_json_new_object(&row));
    pl_status status = PL_OK;
    SET(pl_json_set_int(row, "index", opts->index));
    SET(pl_json_set_text(row, "host", host));
    SET(pl_json_set_int(row, "steps", result->own_steps));
    SET(pl_json_set_int(row, "examples", result->own_examples));
    SET(pl_json_set_real(row, "seconds", total));
    SET(pl_json_set_real(row, "input_share", phases->input_s / whole));
    SET(pl_json_set_real(row, "computing_share", phases->compute_s / whole));
    SET(pl_json_set_real(row, "sending_share", phases->send_s / whole));
    SET(pl_json_set_real(row, "waiting_share", phases->wait_s / whole));
    SET(pl_json_set_int(row, "dropped", result->dropped));
    SET(pl_json_set_int(row, "bytes_sent", opts->bytes_sent));
    SET(pl_json_set_int(row, "bytes_received", opts->bytes_received));
    SET(pl_json_set_int(row, "peak_rss_mb", peak_rss_mb()));
    SET(pl_json_set_int(row, "events_dropped", opts->events_dropped));
    SET(pl_summary_score(row, &result->test, result->tested));
    if (status != PL_OK) {
        pl_json_free(row);
        return status;
    }
    *out = row;
    return PL_OK;
}

/* The rows of all workers: those that server 0 gathered, or our own. */
static pl_status make_rows(pl_json **out, const pl_summary_opts *opts)
{
    const pl_json *given;
    if (opts->reports != NULL) {
        PL_TRY(pl_json_get_array(opts->reports, "workers", &given));
        return pl_json_copy(out, given);
    }
    pl_json *rows, *row;
    PL_TRY(pl_json_new_array(&rows));
    pl_status status =
        pl_summary_row(&row, &(pl_summary_row_opts) {
                                 .result = opts->result,
                                 .events_dropped = opts->events_dropped,
                             });
    if (status == PL_OK)
        status = pl_json_append_take(rows, row);
    if (status != PL_OK) {
        pl_json_free(rows);
        return status;
    }
    *out = rows;
    return PL_OK;
}

/* A number of a row; 0 where a lost worker left none. */
static int64_t number_of(const pl_json *row, const char *key)
{
    int64_t value;
    if (!pl_json_has(row, key) ||
        pl_json_get_int(row, key, 0, INT64_MAX, &value) != PL_OK)
        return 0;
    return value;
}

/* The most memory a task of these rows had, or `least`. */
static int64_t largest(const pl_json *rows, int64_t least)
{
    for (size_t i = 0; i < pl_json_length(rows); i++) {
        int64_t mb = number_of(pl_json_at(rows, i), "peak_rss_mb");
        least = mb > least ? mb : least;
    }
    return least;
}

/* The memory of the largest task; that of servers and evaluator beside it. */
static pl_status put_memory(pl_json *s, const pl_json *rows,
                            const pl_json *reports)
{
    int64_t most = largest(rows, peak_rss_mb());
    const pl_json *servers = NULL, *evaluator = NULL;
    pl_json *copy;
    if (reports != NULL && pl_json_has(reports, "servers"))
        PL_TRY(pl_json_get_array(reports, "servers", &servers));
    if (reports != NULL && pl_json_has(reports, "evaluator"))
        PL_TRY(pl_json_get_object(reports, "evaluator", &evaluator));
    if (servers != NULL)
        most = largest(servers, most);
    if (evaluator != NULL && number_of(evaluator, "peak_rss_mb") > most)
        most = number_of(evaluator, "peak_rss_mb");
    PL_TRY(pl_json_set_int(s, "peak_rss_mb", most));
    if (servers != NULL) {
        PL_TRY(pl_json_copy(&copy, servers));
        PL_TRY(pl_json_set_take(s, "per_server", copy));
    }
    if (evaluator != NULL) {
        PL_TRY(pl_json_copy(&copy, evaluator));
        PL_TRY(pl_json_set_take(s, "evaluator", copy));
    }
    return PL_OK;
}

/* What the job did in all. */
typedef struct totals {
    int64_t sent, received, restarts, dropped, events_dropped;
    bool mixed;
} totals;

static totals add_up(const pl_json *rows, const pl_summary_opts *opts)
{
    totals t = {
        .dropped = opts->result->dropped,
        .mixed = opts->result->progress.mixed,
    };
    for (size_t i = 0; i < pl_json_length(rows); i++) {
        const pl_json *row = pl_json_at(rows, i);
        t.sent += number_of(row, "bytes_sent");
        t.received += number_of(row, "bytes_received");
        t.events_dropped += number_of(row, "events_dropped");
    }
    bool mixed = false;
    if (opts->reports == NULL)
        return t;
    t.restarts = number_of(opts->reports, "restarts");
    t.dropped = number_of(opts->reports, "dropped");
    if (pl_json_get_bool(opts->reports, "mixed", &mixed) == PL_OK)
        t.mixed = t.mixed || mixed;
    return t;
}

/* In lock step the chief has seen all of it, unless it was started again. */
static double trained_seconds(const pl_summary_opts *opts, bool own_pace)
{
    const pl_loop_result *result = opts->result;
    int64_t steps = result->progress.step - opts->resumed_step;
    bool late =
        opts->reports != NULL && result->own_steps + result->dropped < steps;
    if (own_pace || late)
        return opts->resumed_seconds + opts->update_seconds;
    return result->progress.seconds;
}

pl_status pl_summary_make(pl_json **out, const pl_summary_opts *opts)
{
    const pl_loop_result *result = opts->result;
    const pl_progress *progress = &result->progress;
    const pl_train_options *train = &opts->job->options->train;
    static const char *const modes[] = { "sync", "async", "ssp" };
    static const char *const strategies[] = { "single", "ps", "allreduce" };
    const pl_cluster *cluster = opts->cluster;
    bool own_pace = cluster != NULL && train->mode != PL_TRAIN_MODE_SYNC;
    double trained = trained_seconds(opts, own_pace);
    double seconds = trained > 0 ? trained : 1e-9;
    char hash[65];
    if (opts->hash != NULL)
        memcpy(hash, opts->hash, sizeof hash);
    else
        pl_job_hash(opts->job, hash);

    pl_json *s, *rows = NULL;
    PL_TRY(pl_json_new_object(&s));
    pl_status status = make_rows(&rows, opts);
    totals all = { 0 };
    if (status == PL_OK)
        all = add_up(rows, opts);
    bool repeatable =
        !all.mixed && !own_pace && !(train->hogwild && train->threads > 1);
    SET(pl_json_set_text(s, "model", opts->job->options->model->name));
    SET(pl_json_set_text(s, "strategy", strategies[train->strategy]));
    SET(train->strategy == PL_TRAIN_STRATEGY_PS
            ? pl_json_set_text(s, "mode", modes[train->mode])
            : pl_json_set_null(s, "mode"));
    SET(pl_json_set_int(s, "workers", cluster != NULL ? cluster->workers : 1));
    SET(pl_json_set_int(s, "ps", cluster != NULL ? cluster->ps : 0));
    SET(pl_json_set_int(s, "batch", train->batch));
    SET(pl_json_set_int(s, "micro_batches", train->micro_batches));
    SET(pl_json_set_int(s, "steps", progress->step));
    SET(pl_json_set_real(s, "epochs", result->epochs));
    SET(pl_json_set_int(s, "examples", progress->examples));
    SET(pl_json_set_int(s, "examples_left_out", opts->left_out));
    SET(pl_json_set_real(s, "seconds", trained));
    SET(pl_json_set_real(s, "startup_seconds", opts->startup_s));
    SET(pl_json_set_real(s, "eval_seconds", result->eval_seconds));
    SET(pl_json_set_real(s, "checkpoint_seconds", result->save_seconds));
    SET(pl_json_set_real(s, "examples_per_s",
                         (double)progress->examples / seconds));
    SET(pl_json_set_real(s, "steps_per_s", (double)progress->step / seconds));
    SET(pl_json_set_real(s, "train_loss", result->train_loss));
    SET(pl_summary_score(s, &result->test, result->tested));
    SET(pl_json_set_text(s, "stopped_by", pl_stopped_text(result->stopped_by)));
    SET(pl_json_set_int(s, "resumed_step", opts->resumed_step));
    SET(pl_json_set_int(s, "restarts", all.restarts + train->restarted));
    SET(pl_json_set_int(s, "faults", opts->faults));
    SET(pl_json_set_bool(s, "deterministic", repeatable));
    if (opts->job->train != NULL && pl_sparse_set_is(opts->job->train))
        SET(pl_json_set_int(s, "bad_examples", bad_of(opts->job)));
    SET(pl_json_set_int(s, "dropped_gradients", all.dropped));
    SET(pl_json_set_int(s, "rolled_back", result->rolled_back));
    SET(pl_json_set_int(s, "bytes_sent", all.sent));
    SET(pl_json_set_int(s, "bytes_received", all.received));
    SET(put_memory(s, rows, opts->reports));
    SET(pl_json_set_int(s, "events_dropped", all.events_dropped));
    SET(pl_json_set_text(s, "kernels", opts->job->kernels->name));
    /* After a blow-up the parameters are not those of `steps`. */
    if (result->stopped_by == PL_STOPPED_NAN)
        SET(pl_json_set_null(s, "parameters_sha256"));
    else
        SET(pl_json_set_text(s, "parameters_sha256", hash));
    SET(pl_json_set_text(s, "run", opts->run));
    if (status == PL_OK) {
        status = pl_json_set_take(s, "per_worker", rows);
        rows = NULL;
    }
    SET(pl_bottleneck_put(s));
    if (status != PL_OK) {
        pl_json_free(rows);
        pl_json_free(s);
        return status;
    }
    *out = s;
    return PL_OK;
}

static double real_of(const pl_json *row, const char *key)
{
    double value;
    if (!pl_json_has(row, key) || pl_json_get_real(row, key, &value) != PL_OK)
        return 0;
    return value;
}

static void print_row(const pl_json *row, int64_t all, FILE *file)
{
    const char *host = "?";
    char accuracy[16] = "-", seconds[16], name[64];
    double score = 0;
    if (pl_json_get_text(row, "host", &host) != PL_OK)
        host = "?";
    if (pl_json_get_real(row, "test_accuracy", &score) == PL_OK)
        snprintf(accuracy, sizeof accuracy, "%.2f %%", 100 * score);
    snprintf(seconds, sizeof seconds, "%.2f", real_of(row, "seconds"));
    double share =
        all > 0 ? (double)number_of(row, "examples") / (double)all : 0;
    fprintf(file,
            "%6lld  %-16.16s %9lld %10lld %5.1f%% %8s %6.1f%% %6.1f%% %6.1f%% "
            "%7lld  %8s\n",
            (long long)number_of(row, "index"),
            pl_quote_line(name, sizeof name, host),
            (long long)number_of(row, "steps"),
            (long long)number_of(row, "examples"), 100 * share, seconds,
            100 *
                (real_of(row, "computing_share") + real_of(row, "input_share")),
            100 * real_of(row, "sending_share"),
            100 * real_of(row, "waiting_share"),
            (long long)number_of(row, "dropped"), accuracy);
}

/* What each worker did, where there were several. */
static void print_workers(const pl_json *summary, FILE *file)
{
    const pl_json *rows;
    int64_t all = 0;
    if (pl_json_get_array(summary, "per_worker", &rows) != PL_OK ||
        pl_json_length(rows) < 2)
        return;
    for (size_t i = 0; i < pl_json_length(rows); i++)
        all += number_of(pl_json_at(rows, i), "examples");
    fprintf(file, "\n%6s  %-16s %9s %10s %6s %8s %7s %7s %7s %7s  %8s\n",
            "worker", "host", "steps", "examples", "share", "seconds",
            "comput.", "sending", "waiting", "dropped", "accuracy");
    for (size_t i = 0; i < pl_json_length(rows); i++) {
        const pl_json *row = pl_json_at(rows, i);
        if (!pl_json_has(row, "lost"))
            print_row(row, all, file);
        else
            fprintf(file, "%6zu  %-16s %9lld  lost before it could report\n", i,
                    "-", (long long)number_of(row, "steps"));
    }
}

/* What a model that answers yes or no has beside. */
static void print_binary(const pl_json *summary, FILE *file)
{
    if (pl_json_has(summary, "test_auc"))
        fprintf(file,
                "test AUC       %.4f\nprecision      %.2f %%\nrecall         "
                "%.2f %%\ncalibration    %.3f\n",
                real_of(summary, "test_auc"),
                100 * real_of(summary, "test_precision"),
                100 * real_of(summary, "test_recall"),
                real_of(summary, "test_calibration"));
}

static void print_bottleneck(const pl_json *summary, FILE *file)
{
    const pl_json *found;
    const char *text;
    char quoted[1024];
    if (pl_json_get_object(summary, "bottleneck", &found) == PL_OK &&
        pl_json_get_text(found, "text", &text) == PL_OK)
        fprintf(file, "bottleneck     %s\n",
                pl_quote_line(quoted, sizeof quoted, text));
}

/* Of the largest task; with servers, also of each kind. */
static void print_memory(const pl_json *summary, FILE *file)
{
    const pl_json *workers, *servers, *evaluator;
    fprintf(file, "peak memory    %lld MB",
            (long long)number_of(summary, "peak_rss_mb"));
    if (pl_json_has(summary, "per_server") &&
        pl_json_get_array(summary, "per_server", &servers) == PL_OK &&
        pl_json_get_array(summary, "per_worker", &workers) == PL_OK) {
        fprintf(file, " (worker %lld MB, ps %lld MB",
                (long long)largest(workers, 0), (long long)largest(servers, 0));
        if (pl_json_has(summary, "evaluator") &&
            pl_json_get_object(summary, "evaluator", &evaluator) == PL_OK &&
            number_of(evaluator, "peak_rss_mb") > 0)
            fprintf(file, ", evaluator %lld MB",
                    (long long)number_of(evaluator, "peak_rss_mb"));
        fputc(')', file);
    }
    fputc('\n', file);
}

pl_status pl_summary_print(const pl_json *summary, FILE *file)
{
    const char *model, *stopped, *run;
    int64_t steps, examples;
    double epochs, seconds, rate, train_loss = 0, loss, accuracy;
    char number[16];
    PL_TRY(pl_json_get_text(summary, "model", &model));
    PL_TRY(pl_json_get_text(summary, "stopped_by", &stopped));
    PL_TRY(pl_json_get_text(summary, "run", &run));
    PL_TRY(pl_json_get_int(summary, "steps", 0, INT64_MAX, &steps));
    PL_TRY(pl_json_get_int(summary, "examples", 0, INT64_MAX, &examples));
    PL_TRY(pl_json_get_real(summary, "epochs", &epochs));
    PL_TRY(pl_json_get_real(summary, "seconds", &seconds));
    PL_TRY(pl_json_get_real(summary, "examples_per_s", &rate));
    fprintf(file,
            "%s: %lld steps, %.2f epochs in %.2f s (%s ex/s), ended by "
            "%s\n",
            model, (long long)steps, epochs, seconds,
            pl_progress_number(rate, number), stopped);
    if (pl_json_get_real(summary, "train_loss", &train_loss) == PL_OK)
        fprintf(file, "train loss     %.4f\n", train_loss);
    if (pl_json_get_real(summary, "test_loss", &loss) == PL_OK &&
        pl_json_get_real(summary, "test_accuracy", &accuracy) == PL_OK)
        fprintf(file, "test loss      %.4f\ntest accuracy  %.2f %%\n", loss,
                100 * accuracy);
    print_binary(summary, file);
    if (number_of(summary, "examples_left_out") > 0)
        fprintf(file, "left out       %lld examples an epoch, others in each\n",
                (long long)number_of(summary, "examples_left_out"));
    if (number_of(summary, "bad_examples") > 0)
        fprintf(file, "bad examples   %lld passed over\n",
                (long long)number_of(summary, "bad_examples"));
    if (number_of(summary, "faults") > 0)
        fprintf(file, "faults         %lld made by --chaos\n",
                (long long)number_of(summary, "faults"));
    if (number_of(summary, "events_dropped") > 0)
        fprintf(file, "not recorded   %lld events\n",
                (long long)number_of(summary, "events_dropped"));
    print_bottleneck(summary, file);
    print_memory(summary, file);
    fprintf(file, "run folder     %s\n", run);
    print_workers(summary, file);
    return PL_OK;
}
