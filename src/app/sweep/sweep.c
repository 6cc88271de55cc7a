/* sweep.c - runs the cells of a sweep one after another as `train` processes,
 * and estimates the time left. */
#include "app/sweep/sweep.h"

#include "app/sweep/state.h"
#include "app/train/interrupt.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/record/summary.h"
#include "base/text/console.h"
#include "base/text/duration.h"
#include "base/text/quote.h"
#include "job/supervise/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM     "/proc/self/exe"
#define TICK_MS     200
#define END_MS      60000 /* for a training to save after SIGTERM */
#define BAR_CELLS   16
#define OTHER_CELLS 44 /* of the line, at most: counts and times */
#define ERROR_BYTES 512

typedef struct sweep {
    const pl_sweep_opts *opts;
    pl_sweep_state state;
    int lock;
    const atomic_bool *interrupt;
    bool terminal;
    pl_sweep_total own;  /* of this sweep */
    pl_sweep_total *all; /* of all sweeps; `own` for a single one */
    size_t now;          /* index of the running cell */
    int64_t cell_ns;     /* when it started */
} sweep;

/* --- progress --------------------------------------------------------- */

static double seconds_since(int64_t ns)
{
    return (double)(pl_clock_now_ns(pl_clock_real()) - ns) * 1e-9;
}

static size_t rest_of(const pl_sweep_total *total)
{
    size_t over = total->done + total->failed;
    return total->cells > over ? total->cells - over : 0;
}

static double mean_of(const pl_sweep_total *total)
{
    return total->took_s / (double)total->took_count;
}

/* Assume that each remaining cell takes as long as previous ones on average:
 * cells of this sweep as its own, cells of later sweeps as all. */
static double left_seconds(const sweep *s, double elapsed)
{
    size_t here = rest_of(&s->own), rest = rest_of(s->all);
    double all = mean_of(s->all);
    double own = s->own.took_count > 0 ? mean_of(&s->own) : all;
    double now = own * (double)here - elapsed;
    return (now > 0 ? now : 0) +
           (rest > here ? all * (double)(rest - here) : 0);
}

/* Columns left for the name: a line that is wider than the terminal could not
 * be redrawn. */
static int name_room(void)
{
    struct winsize size;
    int columns = 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    return columns > BAR_CELLS + OTHER_CELLS + 8
               ? columns - BAR_CELLS - OTHER_CELLS
               : 8;
}

static void draw(const sweep *s)
{
    if (!s->terminal)
        return;
    size_t over = s->all->done + s->all->failed, count = s->all->cells;
    size_t full = BAR_CELLS * over / count;
    double elapsed = seconds_since(s->cell_ns);
    char now[PL_DURATION], left[PL_DURATION], name[ERROR_BYTES];
    char bar[BAR_CELLS + 1], eta[48] = "", line[PL_CONSOLE_BYTES];
    for (size_t i = 0; i < BAR_CELLS; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[BAR_CELLS] = '\0';
    if (s->all->took_count > 0)
        snprintf(eta, sizeof eta, "  ETA %s",
                 pl_duration_text(left_seconds(s, elapsed), left));
    int used =
        snprintf(line, sizeof line, "\r\033[K[%s] %zu/%zu  %.*s  %s%s", bar,
                 over, count, name_room(),
                 pl_quote_line(name, sizeof name, s->state.cells[s->now].name),
                 pl_duration_text(elapsed, now), eta);
    pl_console_redraw(line,
                      used < (int)sizeof line ? (size_t)used : sizeof line - 1);
}

/* Appended to the line of a finished cell if no bar shows it. */
static const char *estimate(const sweep *s, char *text, size_t room)
{
    char left[PL_DURATION];
    text[0] = '\0';
    if (!s->terminal && s->all->took_count > 0 && rest_of(s->all) > 0)
        snprintf(text, room, "  ETA %s",
                 pl_duration_text(left_seconds(s, 0), left));
    return text;
}

/* A permanent line; the bar is drawn below it. */
static void say(const sweep *s, const pl_sweep_cell *cell, const char *what)
{
    char name[ERROR_BYTES], text[2 * ERROR_BYTES], eta[48];
    if (s->opts->quiet && cell->state != PL_CELL_FAILED)
        return;
    pl_console_print(
        "%s[%zu/%zu] %s%s%s: %s%s\n", s->terminal ? "\r\033[K" : "",
        s->all->done + s->all->failed, s->all->cells,
        s->opts->name != NULL ? s->opts->name : "",
        s->opts->name != NULL ? "/" : "",
        pl_quote_line(name, sizeof name, cell->name),
        pl_quote_line(text, sizeof text, what), estimate(s, eta, sizeof eta));
}

static pl_status say_done(const sweep *s, const pl_sweep_cell *cell)
{
    char *path, text[160];
    pl_summary summary;
    PL_TRY(
        pl_mem_format(&path, "%s/%s/summary.json", s->opts->out, cell->name));
    pl_status status = pl_summary_read(&summary, path);
    pl_mem_free(path);
    PL_TRY(status);
    int used = snprintf(text, sizeof text, "%.2f s, %lld steps",
                        summary.seconds, (long long)summary.steps);
    if (summary.test.loss >= 0)
        snprintf(text + used, sizeof text - (size_t)used,
                 isnan(summary.test.accuracy)
                     ? ", test loss %.4g"
                     : ", test loss %.4f, accuracy %.2f %%",
                 summary.test.loss, 100 * summary.test.accuracy);
    pl_summary_close(&summary);
    say(s, cell, text);
    return PL_OK;
}

/* --- one cell --------------------------------------------------------- */

typedef struct process {
    pid_t pid;
    int file;        /* of the process: readable when it ends; -1: none */
    char *run, *log; /* folder and file */
    const char **argv;
    int64_t log_from;
} process;

static void close_process(process *p)
{
    if (p->file >= 0)
        close(p->file);
    pl_mem_free(p->run);
    pl_mem_free(p->log);
    pl_mem_free(p->argv);
}

static size_t count_words(const char *const *words)
{
    size_t count = 0;
    while (words != NULL && words[count] != NULL)
        count++;
    return count;
}

static bool names_workers(const char *word)
{
    static const char flag[] = "--workers";
    return strncmp(word, flag, sizeof flag - 1) == 0 &&
           (word[sizeof flag - 1] == '\0' || word[sizeof flag - 1] == '=');
}

/* Without --workers, `train` uses one worker and `launch` one per host. */
static pl_status make_command(const sweep *s, const pl_sweep_cell *cell,
                              bool resumes, process *p)
{
    const pl_json *args = cell->args;
    const char *const *launch = s->opts->launch;
    size_t count = pl_json_length(args), used = 0;
    bool counted = launch == NULL;
    PL_TRY(PL_NEW(p->argv, count + count_words(launch) + 9));
    p->argv[used++] = s->opts->program;
    for (; launch != NULL && *launch != NULL; launch++)
        p->argv[used++] = *launch;
    p->argv[used++] = "train";
    p->argv[used++] = s->opts->model;
    for (size_t i = 0; i < count; i++, used++) {
        PL_TRY(pl_json_as_text(pl_json_at(args, i), "args", &p->argv[used]));
        counted = counted || names_workers(p->argv[used]);
    }
    if (!counted) {
        p->argv[used++] = "--workers";
        p->argv[used++] = "1";
    }
    p->argv[used++] = "--run";
    p->argv[used++] = p->run;
    if (resumes)
        p->argv[used++] = "--resume-or-start"; /* it may not have started */
    return PL_OK;
}

static pl_status start_process(const sweep *s, const pl_sweep_cell *cell,
                               bool resumes, process *p)
{
    PL_TRY(pl_mem_format(&p->log, "%s/log/%s.log", s->opts->out, cell->name));
    PL_TRY(make_command(s, cell, resumes, p));
    PL_TRY(pl_child_start(&p->pid, &p->log_from,
                          &(pl_child_opts) {
                              .program = PROGRAM,
                              .argv = (char *const *)p->argv,
                              .log = p->log,
                              .mark = "--- start",
                          }));
    p->file = (int)syscall(SYS_pidfd_open, p->pid, 0);
    return PL_OK;
}

/* Wait for its end.  After an interrupt it gets SIGTERM, then SIGKILL. */
static int wait_for(const sweep *s, const process *p)
{
    bool asked = false, killed = false;
    pl_deadline end = pl_deadline_in_ms(pl_clock_real(), END_MS);
    for (int ended;;) {
        pid_t pid = waitpid(p->pid, &ended, WNOHANG);
        if (pid == p->pid || (pid < 0 && errno != EINTR))
            return pid == p->pid ? ended : -1;
        if (atomic_load(s->interrupt) && !asked) {
            asked = true;
            end = pl_deadline_in_ms(pl_clock_real(), END_MS);
            kill(p->pid, SIGTERM);
        }
        if (asked && !killed && pl_deadline_passed(end))
            killed = kill(p->pid, SIGKILL) == 0;
        struct pollfd wait = { .fd = p->file, .events = POLLIN };
        poll(&wait, 1, TICK_MS);
        draw(s);
    }
}

static void count(sweep *s, size_t done, size_t failed)
{
    s->own.done += done;
    s->own.failed += failed;
    if (s->all == &s->own)
        return;
    s->all->done += done;
    s->all->failed += failed;
}

static void add_time(sweep *s, double seconds)
{
    s->own.took_s += seconds;
    s->own.took_count++;
    if (s->all == &s->own)
        return;
    s->all->took_s += seconds;
    s->all->took_count++;
}

/* The last line of its output as plain text, for a JSON file. */
static pl_status note_failure(sweep *s, pl_sweep_cell *cell, const process *p,
                              int ended)
{
    char how[96], said[ERROR_BYTES], last[ERROR_BYTES];
    pl_child_how(ended, how, sizeof how);
    pl_child_last_lines(p->log, p->log_from, 1, said, sizeof said);
    pl_quote_line(last, sizeof last, said);
    cell->state = PL_CELL_FAILED;
    count(s, 0, 1);
    pl_mem_free(cell->error);
    cell->error = NULL;
    PL_TRY(pl_mem_format(&cell->error, "%s%s%s", how,
                         last[0] != '\0' ? ": " : "", last));
    say(s, cell, cell->error);
    return PL_OK;
}

static pl_status judge(sweep *s, pl_sweep_cell *cell, const process *p,
                       int ended)
{
    double seconds = seconds_since(s->cell_ns);
    cell->seconds += seconds;
    add_time(s, seconds);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) {
        cell->state = PL_CELL_DONE;
        count(s, 1, 0);
        return say_done(s, cell);
    }
    if (atomic_load(s->interrupt))
        return PL_OK; /* it resumes next time */
    return note_failure(s, cell, p, ended);
}

/* sweep.json records that the cell runs before the cell creates anything; the
 * same write records the result of the previous cell. */
static pl_status begin_cell(sweep *s, pl_sweep_cell *cell, process *p)
{
    bool resumes = cell->state == PL_CELL_RUNNING;
    PL_TRY(pl_file_join(&p->run, s->opts->out, cell->name));
    if (cell->state == PL_CELL_FAILED) /* its files are of no use */
        PL_TRY(pl_file_remove_all(p->run));
    cell->seconds = resumes ? cell->seconds : 0;
    cell->state = PL_CELL_RUNNING;
    PL_TRY(pl_sweep_state_save(&s->state));
    return start_process(s, cell, resumes, p);
}

static pl_status run_cell(sweep *s, pl_sweep_cell *cell)
{
    process p = { .file = -1 };
    s->cell_ns = pl_clock_now_ns(pl_clock_real());
    draw(s);
    pl_status status = begin_cell(s, cell, &p);
    if (status == PL_OK)
        status = judge(s, cell, &p, wait_for(s, &p));
    close_process(&p);
    return status;
}

/* --- all cells -------------------------------------------------------- */

static pl_status make_logs(const sweep *s)
{
    char *logs;
    PL_TRY(pl_file_join(&logs, s->opts->out, "log"));
    pl_status status = pl_file_make_folder_unflushed(logs);
    pl_mem_free(logs);
    return status;
}

static pl_status lock_folder(sweep *s)
{
    const char *out = s->opts->out;
    PL_TRY(pl_file_make_folder(out));
    s->lock = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->lock < 0)
        return PL_FAIL(PL_IO, "open %s: %s", out, strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return PL_FAIL(PL_USAGE,
                       "another sweep is running in %s; wait for it, or choose "
                       "another --out",
                       out);
    return PL_OK;
}

/* Cells of earlier starts also contribute to the estimate. */
static void count_done(sweep *s)
{
    for (size_t i = 0; i < s->state.count; i++)
        if (s->state.cells[i].state == PL_CELL_DONE) {
            count(s, 1, 0);
            add_time(s, s->state.cells[i].seconds);
        }
    if (s->own.done > 0 && !s->opts->quiet)
        pl_log(PL_LOG_INFO, "%s%s%zu of %zu cells are already done",
               s->opts->name != NULL ? s->opts->name : "",
               s->opts->name != NULL ? ": " : "", s->own.done, s->own.cells);
}

/* The first cell from `at` on that is not done. */
static size_t next_cell(const sweep *s, size_t at)
{
    while (at < s->state.count && s->state.cells[at].state == PL_CELL_DONE)
        at++;
    return at;
}

static pl_status run_cells(sweep *s)
{
    s->own.cells = s->state.count;
    count_done(s);
    size_t next = next_cell(s, 0);
    while ((s->now = next) < s->state.count) {
        next = next_cell(s, s->now + 1);
        pl_status status = run_cell(s, &s->state.cells[s->now]);
        if (s->terminal)
            pl_console_print("\r\033[K");
        PL_TRY(status);
        bool interrupted = atomic_load(s->interrupt);
        if (interrupted || next == s->state.count)
            PL_TRY(pl_sweep_state_save(&s->state));
        if (interrupted)
            return PL_FAIL(PL_INTERRUPTED,
                           "interrupted; %zu of %zu cells are done. Repeat "
                           "the command to continue",
                           s->all->done, s->all->cells);
    }
    if (s->own.failed > 0)
        return PL_FAIL(PL_IO,
                       "%zu of %zu cells failed; their logs are in %s/log. "
                       "Repeat the command to retry them",
                       s->own.failed, s->own.cells, s->opts->out);
    return PL_OK;
}

pl_status pl_sweep_run(const pl_sweep_opts *opts)
{
    sweep s = {
        .opts = opts,
        .lock = -1,
        .interrupt = pl_interrupt_catch(),
        .terminal = !opts->quiet && isatty(STDERR_FILENO) == 1,
    };
    s.all = opts->total != NULL ? opts->total : &s.own;
    pl_status status = lock_folder(&s);
    if (status == PL_OK)
        status = pl_sweep_state_init(&s.state, opts->out, opts->model,
                                     opts->about, opts->cells);
    if (status == PL_OK)
        status = make_logs(&s);
    if (status == PL_OK)
        status = run_cells(&s);
    pl_sweep_state_close(&s.state);
    if (s.lock >= 0)
        close(s.lock);
    return status;
}
