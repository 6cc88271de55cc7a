/* progress.c - the progress line: a thread that reads the metrics a few times a
 * second and redraws one line, or prints a line every few seconds where there
 * is no terminal. */
#include "app/view/progress.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/console.h"
#include "base/thread.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_BYTES    PL_PROGRESS_BYTES
#define REDRAW_MS     200
#define PLAIN_MS      5000 /* between lines without a terminal */
#define PLAIN_TEST_MS 1000 /* ... when there is a new test result */

struct pl_progress_line {
    pl_progress_opts opts;
    int step, examples, loss, tests, test_loss, test_accuracy; /* tags */
    pl_thread *thread;
    pl_mutex lock;
    pl_cond wake;
    bool stopping; /* guarded by lock */
    /* The display thread's. */
    int64_t begin_ns, shown_ns;
    double last_examples, rate;
    int64_t last_ns;
    double tested; /* how often, when last looked at */
    bool new_test;
    bool drawn; /* the terminal's line is not empty */
};

const char *pl_progress_number(double value, char text[16])
{
    static const char *const units[] = { "", " k", " M", " G", " T" };
    int unit = 0;
    while (fabs(value) >= 999.5 && unit < 4) {
        value /= 1000;
        unit++;
    }
    double size = fabs(value);
    int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(text, 16, "%.*f%s", digits, value, units[unit]);
    return text;
}

static void look_at_tests(pl_progress_line *line)
{
    double tests = pl_metrics_get(line->opts.metrics, line->tests);
    line->new_test = line->new_test || tests > line->tested;
    line->tested = tests;
}

static void measure_rate(pl_progress_line *line, int64_t now_ns,
                         double examples)
{
    double seconds = (double)(now_ns - line->last_ns) * 1e-9;
    if (seconds < 0.1 || examples < line->last_examples)
        return; /* too soon to tell, or before the first step */
    double rate = (examples - line->last_examples) / seconds;
    line->rate = line->rate == 0 ? rate : 0.5 * (line->rate + rate);
    line->last_examples = examples;
    line->last_ns = now_ns;
}

static int append(char *text, int used, int room, const char *format, ...)
    PL_PRINTF(4, 5);

static int append(char *text, int used, int room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(text + used, (size_t)(room - used), format, args);
    va_end(args);
    return wrote < 0 || used + wrote >= room ? room - 1 : used + wrote;
}

/* How long it will still take, as far as one can tell. */
static int describe_rest(const pl_progress_line *line, char *text, int used,
                         int room)
{
    const pl_metrics *metrics = line->opts.metrics;
    double step = pl_metrics_get(metrics, line->step);
    double done = step - (double)line->opts.start_step;
    double seconds =
        (double)(pl_clock_now_ns(pl_clock_real()) - line->begin_ns) * 1e-9;
    if (line->opts.end_step == 0 || done <= 0 ||
        pl_metrics_get(metrics, line->examples) <=
            (double)line->opts.start_examples)
        return used;
    double left = ((double)line->opts.end_step - step) * seconds / done;
    return append(text, used, room, "  ETA %lld:%02d", (long long)left / 60,
                  (int)((long long)left % 60));
}

/* The state in at most room - 1 characters; what matters least is left out
 * when there is no room for it. */
static void describe(pl_progress_line *line, bool epoch, char *text, int room)
{
    const pl_metrics *metrics = line->opts.metrics;
    double step = pl_metrics_get(metrics, line->step);
    char number[16];
    int used = append(text, 0, room, "step %.0f", step);
    if (line->opts.end_step > 0)
        used =
            append(text, used, room, "/%lld", (long long)line->opts.end_step);
    if (epoch && line->opts.per_epoch > 0)
        used = append(text, used, room, "  epoch %.2f",
                      step / (double)line->opts.per_epoch);
    double loss = pl_metrics_get(metrics, line->loss);
    if (!isnan(loss)) /* none yet */
        used = append(text, used, room, "  loss %.4f", loss);
    if (line->tested > 0)
        used = append(text, used, room, "  test %.4f, %.2f %%",
                      pl_metrics_get(metrics, line->test_loss),
                      100 * pl_metrics_get(metrics, line->test_accuracy));
    used = append(text, used, room, "  %s ex/s",
                  pl_progress_number(line->rate, number));
    used = describe_rest(line, text, used, room);
    if (line->opts.detail != NULL) {
        char detail[LINE_BYTES];
        line->opts.detail(line->opts.context, detail, sizeof detail);
        append(text, used, room, "%s%s", detail[0] == '\0' ? "" : "  ", detail);
    }
}

/* A line that is wider than the terminal could not be drawn over. */
static int columns(const pl_progress_line *line)
{
    struct winsize size;
    if (!line->opts.terminal)
        return LINE_BYTES;
    int file =
        line->opts.file != NULL ? fileno(line->opts.file) : STDERR_FILENO;
    if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col < LINE_BYTES ? size.ws_col : LINE_BYTES;
}

/* Write a line over what is drawn; `whole`: it stays. */
static void put(const pl_progress_line *line, const char *text, bool whole)
{
    char out[PL_CONSOLE_BYTES + 8];
    int used = snprintf(out, sizeof out, "%s%s%s",
                        line->opts.terminal ? "\r\033[K" : "", text,
                        whole ? "\n" : "");
    size_t bytes = used < (int)sizeof out ? (size_t)used : sizeof out - 1;
    if (line->opts.file != NULL) {
        fwrite(out, 1, bytes, line->opts.file);
        fflush(line->opts.file);
    } else if (whole) {
        pl_console_write(out, bytes);
    } else {
        pl_console_redraw(out, bytes);
    }
}

/* Look at the metrics; write when it is time. */
static void show(pl_progress_line *line, bool last)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    look_at_tests(line);
    measure_rate(line, now_ns,
                 pl_metrics_get(line->opts.metrics, line->examples));
    int64_t since_ms = (now_ns - line->shown_ns) / 1000000;
    if (!line->opts.terminal && !last && since_ms < PLAIN_MS &&
        !(line->new_test && since_ms >= PLAIN_TEST_MS))
        return;
    char text[LINE_BYTES];
    describe(line, true, text, LINE_BYTES);
    int room = columns(line);
    if ((int)strlen(text) >= room)
        describe(line, false, text, room);
    if (line->opts.terminal || !last || line->shown_ns != line->begin_ns)
        put(line, text, !line->opts.terminal || last);
    line->drawn = line->opts.terminal && !last;
    line->shown_ns = now_ns;
    line->new_test = false;
}

static pl_status progress_main(void *arg)
{
    pl_progress_line *line = arg;
    pl_mutex_lock(&line->lock);
    while (!line->stopping) {
        pl_deadline next = pl_deadline_in_ms(pl_clock_real(), REDRAW_MS);
        while (!line->stopping && !pl_deadline_passed(next))
            if (pl_cond_wait_until(&line->wake, &line->lock, next) != PL_OK)
                break;
        if (!line->stopping)
            show(line, false);
    }
    pl_mutex_unlock(&line->lock);
    return PL_OK;
}

/* Log lines go above the redrawn one. */
static void log_above(void *context, pl_log_level level, const char *text)
{
    pl_progress_line *line = context;
    (void)level;
    put(line, text, true);
}

static pl_status find_tags(pl_progress_line *line)
{
    pl_metrics *metrics = line->opts.metrics;
    PL_TRY(pl_metrics_tag(metrics, "step", &line->step));
    PL_TRY(pl_metrics_tag(metrics, "examples", &line->examples));
    PL_TRY(pl_metrics_tag(metrics, "loss", &line->loss));
    PL_TRY(pl_metrics_tag(metrics, "tests", &line->tests));
    PL_TRY(pl_metrics_tag(metrics, "test_loss", &line->test_loss));
    return pl_metrics_tag(metrics, "test_accuracy", &line->test_accuracy);
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
    line->shown_ns = line->last_ns = line->begin_ns;
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
        show(line, true);
        pl_log_set(NULL, NULL, PL_LOG_INFO);
    }
    pl_cond_close(&line->wake);
    pl_mutex_close(&line->lock);
    pl_mem_free(line);
}
