/* progress.c - decides when progress is shown and which lines of the terminal
 * are redrawn.
 *
 * A drawn block stays until it is erased: by the next one, by a log line, which
 * goes above it, or at the end.  Its number of rows depends on its widths and
 * on the current width of the terminal, which may have become narrower.
 * Erasing and writing use a single write; if that would block it is skipped,
 * and the old block stays. */
#include "app/view/progress.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/console.h"
#include "base/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_MS   200
#define LINE_NS     ((int64_t)10 * 1000 * 1000 * 1000) /* between two lines */
#define LINE_SHARE  0.1 /* ... or this share of the run */
#define EPOCHS_MOST 100 /* the most epochs that all get a line */
#define SECOND_NS   ((int64_t)1000 * 1000 * 1000) /* between other epochs */
#define ERASE_ROOM  32

struct pl_progress_line {
    pl_progress_opts opts;
    int step, examples, loss, tests, test_loss, test_accuracy,
        activity; /* tags */
    pl_thread *thread;
    pl_mutex lock; /* guards all that follows */
    pl_cond wake;
    bool stopping;
    int64_t begin_ns;
    double last_examples, rate;
    int64_t last_ns;
    int64_t line_ns, line_step; /* of the last permanent line */
    int drawn;                  /* rows of the block on the terminal */
    int widths[PL_VIEW_ROWS];
};

/* The size of the terminal for the block. */
typedef struct terminal_size {
    int columns, rows;
} terminal_size;

pl_progress_kind pl_progress_chosen(const pl_train_options *train)
{
    const char *term = getenv("TERM");
    if (train->quiet)
        return PL_PROGRESS_NONE;
    if (train->progress >= 0)
        return (pl_progress_kind)train->progress;
    bool able = isatty(STDERR_FILENO) == 1 && term != NULL && term[0] != '\0' &&
                strcmp(term, "dumb") != 0;
    return able ? PL_PROGRESS_BAR : PL_PROGRESS_LINES;
}

static bool bars(const pl_progress_line *line)
{
    return line->opts.kind == PL_PROGRESS_BAR;
}

static terminal_size size_of(const pl_progress_line *line)
{
    struct winsize size;
    int file =
        line->opts.file != NULL ? fileno(line->opts.file) : STDERR_FILENO;
    if (!bars(line))
        return (terminal_size) { PL_VIEW_BYTES - 1, 0 };
    if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return (terminal_size) { 80, 24 };
    return (terminal_size) {
        size.ws_col < PL_VIEW_BYTES ? size.ws_col : PL_VIEW_BYTES - 1,
        size.ws_row > 0 ? size.ws_row : 24,
    };
}

static void measure_rate(pl_progress_line *line, int64_t now_ns)
{
    double examples = pl_metrics_get(line->opts.metrics, line->examples);
    double seconds = (double)(now_ns - line->last_ns) * 1e-9;
    if (seconds < 0.1 || examples < line->last_examples)
        return; /* too soon, or before the first step */
    double rate = (examples - line->last_examples) / seconds;
    line->rate = line->rate == 0 ? rate : 0.5 * (line->rate + rate);
    line->last_examples = examples;
    line->last_ns = now_ns;
}

/* Estimate the remaining time. */
static double seconds_left(const pl_progress_line *line, double step,
                           int64_t now_ns)
{
    double done = step - (double)line->opts.start_step;
    double seconds = (double)(now_ns - line->begin_ns) * 1e-9;
    if (line->opts.end_step == 0 || done <= 0 ||
        pl_metrics_get(line->opts.metrics, line->examples) <=
            (double)line->opts.start_examples)
        return NAN;
    double left = (double)line->opts.end_step - step;
    return left > 0 ? left * seconds / done : 0;
}

static pl_progress_view look(pl_progress_line *line, int64_t now_ns)
{
    const pl_metrics *metrics = line->opts.metrics;
    measure_rate(line, now_ns);
    double step = pl_metrics_get(metrics, line->step);
    if (line->opts.resumed && step > 0) {
        line->opts.resumed = false;
        line->opts.start_step = (int64_t)step;
        line->begin_ns = now_ns;
    }
    bool tested = pl_metrics_get(metrics, line->tests) > 0;
    const char *doing =
        pl_activity_text((pl_activity)pl_metrics_get(metrics, line->activity));
    pl_progress_view view = {
        .step = (int64_t)step,
        .end_step = line->opts.end_step,
        .per_epoch = line->opts.per_epoch,
        .loss = step > (double)line->opts.start_step
                    ? pl_metrics_get(metrics, line->loss)
                    : NAN,
        .test_loss = tested ? pl_metrics_get(metrics, line->test_loss) : NAN,
        .test_accuracy =
            tested ? pl_metrics_get(metrics, line->test_accuracy) : NAN,
        .rate = line->rate,
        .left_s = seconds_left(line, step, now_ns),
    };
    snprintf(view.doing, sizeof view.doing, "%s", doing != NULL ? doing : "");
    if (line->opts.fill != NULL)
        line->opts.fill(line->opts.context, &view);
    return view;
}

/* Go to the first row of the block and erase from there.  A terminal that has
 * become narrower has wrapped its rows. */
static int write_erase(const pl_progress_line *line, int columns, char *text)
{
    int up = -1;
    if (line->drawn == 0)
        return 0;
    for (int i = 0; i < line->drawn; i++)
        up += line->widths[i] > columns
                  ? (line->widths[i] + columns - 1) / columns
                  : 1;
    return up > 0 ? snprintf(text, ERASE_ROOM, "\r\033[%dA\033[J", up)
                  : snprintf(text, ERASE_ROOM, "\r\033[J");
}

static bool write_out(const pl_progress_line *line, const char *text,
                      size_t bytes, bool stays)
{
    if (line->opts.file != NULL) {
        fwrite(text, 1, bytes, line->opts.file);
        return fflush(line->opts.file) == 0;
    }
    return stays ? pl_console_write(text, bytes)
                 : pl_console_redraw(text, bytes);
}

/* Erase the block, write `above` (NULL: nothing) as a permanent line, then the
 * block of `view` (NULL: none). */
static void put(pl_progress_line *line, const char *above,
                const pl_progress_view *view)
{
    char out[ERASE_ROOM + PL_CONSOLE_BYTES + PL_VIEW_BLOCK_BYTES];
    char block[PL_VIEW_BLOCK_BYTES] = "";
    int widths[PL_VIEW_ROWS], rows = 0;
    terminal_size size = size_of(line);
    int used = write_erase(line, size.columns, out);
    if (bars(line) && view != NULL)
        rows = pl_layout_block(view, size.columns, size.rows, block, widths);
    used +=
        snprintf(out + used, sizeof out - (size_t)used, "%s%s%s",
                 above != NULL ? above : "", above != NULL ? "\n" : "", block);
    if (used == 0 || !write_out(line, out, (size_t)used, above != NULL))
        return;
    line->drawn = rows;
    memcpy(line->widths, widths, (size_t)rows * sizeof *widths);
}

static void put_line(pl_progress_line *line, const char *text,
                     const pl_progress_view *view, int64_t step, int64_t now_ns)
{
    put(line, text, view);
    line->line_ns = now_ns;
    line->line_step = step;
}

/* Without a bar a line is due after some time, or after a part of the run. */
static bool line_due(const pl_progress_line *line, const pl_progress_view *view,
                     int64_t now_ns)
{
    int64_t all = line->opts.end_step - line->opts.start_step;
    return now_ns - line->line_ns >= LINE_NS ||
           (all > 0 && now_ns - line->line_ns >= SECOND_NS &&
            (double)(view->step - line->line_step) >= LINE_SHARE * (double)all);
}

static bool few_epochs(const pl_progress_line *line)
{
    return line->opts.end_step > 0 && line->opts.per_epoch > 0 &&
           line->opts.end_step / line->opts.per_epoch <= EPOCHS_MOST;
}

/* Write the lines of epochs that have ended. */
static void put_epochs(pl_progress_line *line, const pl_progress_view *view,
                       int64_t now_ns)
{
    pl_epoch epoch;
    while (pl_metrics_epoch_take(line->opts.metrics, &epoch)) {
        char text[PL_VIEW_BYTES];
        bool due = bars(line) ? now_ns - line->line_ns >= SECOND_NS
                              : line_due(line, view, now_ns);
        if (!few_epochs(line) && !due)
            continue;
        pl_layout_epoch(view, &epoch, size_of(line).columns, text);
        put_line(line, text, view, epoch.step, now_ns);
    }
}

/* Called with the lock held. */
static void show(pl_progress_line *line, bool last)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    char text[PL_VIEW_BYTES];
    pl_progress_view view = look(line, now_ns);
    put_epochs(line, &view, now_ns);
    bool stays = last ? view.step != line->line_step &&
                            (bars(line) || line->line_ns > line->begin_ns)
                      : !bars(line) && line_due(line, &view, now_ns);
    if (stays && last && bars(line)) {
        int widths[PL_VIEW_ROWS];
        char block[PL_VIEW_BLOCK_BYTES];
        view.workers = 0;
        pl_layout_block(&view, size_of(line).columns, 0, block, widths);
        put_line(line, block, NULL, view.step, now_ns);
    } else if (stays) {
        pl_layout_line(&view, text);
        put_line(line, text, NULL, view.step, now_ns);
    } else if (bars(line)) {
        put(line, NULL, last ? NULL : &view);
    }
}

static pl_status progress_main(void *arg)
{
    pl_progress_line *line = arg;
    pl_mutex_lock(&line->lock);
    while (!line->stopping) {
        pl_deadline next = pl_deadline_in_ms(pl_clock_real(), REDRAW_MS);
        pl_cond_pause_until(&line->wake, &line->lock, &line->stopping, next);
        if (!line->stopping)
            show(line, false);
    }
    pl_mutex_unlock(&line->lock);
    return PL_OK;
}

/* Write log lines above the block, which is redrawn. */
static void log_above(void *context, pl_log_level level, const char *text)
{
    pl_progress_line *line = context;
    (void)level;
    pl_mutex_lock(&line->lock);
    if (line->drawn > 0) {
        pl_progress_view view = look(line, pl_clock_now_ns(pl_clock_real()));
        put(line, text, &view);
    } else {
        put(line, text, NULL);
    }
    pl_mutex_unlock(&line->lock);
}

static pl_status find_tags(pl_progress_line *line)
{
    pl_metrics *metrics = line->opts.metrics;
    PL_TRY(pl_metrics_tag(metrics, "step", &line->step));
    PL_TRY(pl_metrics_tag(metrics, "examples", &line->examples));
    PL_TRY(pl_metrics_tag(metrics, PL_METRICS_TRAIN_LOSS, &line->loss));
    PL_TRY(pl_metrics_tag(metrics, "tests", &line->tests));
    PL_TRY(pl_metrics_tag(metrics, "test_loss", &line->test_loss));
    PL_TRY(pl_metrics_tag(metrics, "test_accuracy", &line->test_accuracy));
    return pl_metrics_tag(metrics, PL_METRICS_ACTIVITY, &line->activity);
}

pl_status pl_progress_start(pl_progress_line **out,
                            const pl_progress_opts *opts)
{
    pl_progress_line *line;
    PL_TRY(PL_NEW(line, 1));
    line->opts = *opts;
    pl_mutex_init(&line->lock);
    pl_cond_init(&line->wake);
    line->begin_ns = pl_clock_now_ns(pl_clock_real());
    line->line_ns = line->last_ns = line->begin_ns;
    line->line_step = opts->start_step;
    line->last_examples = (double)opts->start_examples;
    pl_status status = find_tags(line);
    if (status == PL_OK)
        status =
            pl_thread_start(&line->thread, "progress", progress_main, line);
    if (status != PL_OK) {
        pl_progress_stop(line);
        return status;
    }
    pl_log_set(log_above, line, PL_LOG_INFO);
    *out = line;
    return PL_OK;
}

void pl_progress_stop(pl_progress_line *line)
{
    if (line == NULL)
        return;
    pl_mutex_lock(&line->lock);
    line->stopping = true;
    pl_cond_signal(&line->wake);
    pl_mutex_unlock(&line->lock);
    if (line->thread != NULL) {
        PL_ASSERT(pl_thread_join(line->thread) == PL_OK);
        pl_mutex_lock(&line->lock);
        show(line, true);
        pl_mutex_unlock(&line->lock);
        pl_log_set(NULL, NULL, PL_LOG_INFO);
    }
    pl_cond_close(&line->wake);
    pl_mutex_close(&line->lock);
    pl_mem_free(line);
}
