/* Watch the host, or a command and the processes it starts, from outside: the
 * recorder of resources/<host>.csv as a separate tool. */
#include "app/train/interrupt.h"
#include "app/view/output.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/view/monitor_view.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE_MS  20 /* how often to check for the end */
#define PIDS_MOST 1024
#define ASK_NS    INT64_C(5000000000) /* Ctrl-C to SIGTERM to SIGKILL */

extern char **environ;

typedef struct monitor_options {
    const char *csv;
    double every;
} monitor_options;

static const pl_param params[] = {
    { .name = "csv",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(monitor_options, csv),
      .value = "FILE",
      .help = "also write every sample to FILE as a line of CSV; - is standard "
              "output",
      .why = "Use it to plot the use of a machine later, or to compare "
             "programs: one line for each sample, with a column for each core "
             "and network interface." },
    { .name = "every",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(monitor_options, every),
      .fallback = "1",
      .least = 0.05,
      .most = 3600,
      .value = "S",
      .help = "seconds between two samples",
      .why = "Lower it to see short peaks, such as 0.1 for a command of a few "
             "seconds. Sampling itself takes processor time, so keep 1 or more "
             "for hours." },
};

typedef struct monitor {
    const monitor_options *options;
    char **command; /* NULL-terminated; NULL: none */
    const atomic_bool *interrupt;
    pid_t child;
    bool ended; /* the child has ended */
    int wait_status;
    pl_usage *usage;
    FILE *csv;
    pl_monitor_view view;
    int64_t begin_ns, asked_ns;
} monitor;

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static pl_status write_csv(monitor *m, const char *text)
{
    if (m->csv == NULL)
        return PL_OK;
    if (fputs(text, m->csv) < 0 || fflush(m->csv) != 0)
        return PL_FAIL(PL_IO, "write %s: %s", m->options->csv, strerror(errno));
    return PL_OK;
}

static pl_status open_csv(monitor *m)
{
    if (m->options->csv == NULL)
        return PL_OK;
    int file;
    pl_status status = pl_file_stream(&file, pl_output_path(m->options->csv));
    if (status != PL_OK)
        return pl_context(status, "--csv %s", m->options->csv);
    m->csv = fdopen(file, "w");
    if (m->csv == NULL) {
        close(file);
        return PL_FAIL(PL_NOMEM, "--csv %s: %s", m->options->csv,
                       strerror(errno));
    }
    return write_csv(m, pl_usage_header(m->usage));
}

/* The command gets the signal handling that we were started with. */
static pl_status start_command(monitor *m)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    if (m->command == NULL)
        return PL_OK;
    posix_spawnattr_init(&attributes);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&m->child, m->command[0], NULL, &attributes,
                             m->command, environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        return PL_FAIL(PL_NOTFOUND, "start %s: %s", m->command[0],
                       strerror(error));
    return PL_OK;
}

static pl_status sample(monitor *m, bool show)
{
    pid_t pids[PIDS_MOST];
    pl_usage_job job = { .pids = pids,
                         .sent_bytes = NAN,
                         .received_bytes = NAN };
    if (m->child > 0)
        job.count = pl_process_tree(PL_PROC, m->child, pids, PIDS_MOST);
    const pl_usage_view *usage =
        pl_usage_sample(m->usage, (double)pl_clock_wall_ns() * 1e-9, &job);
    if (!show)
        return PL_OK;
    PL_TRY(write_csv(m, pl_usage_line(m->usage)));
    pl_monitor_view_show(&m->view, usage);
    return PL_OK;
}

/* The command received Ctrl-C as well; if it does not end, it gets SIGTERM,
 * then SIGKILL. */
static void end_command(monitor *m)
{
    if (m->child <= 0 || m->ended || !atomic_load(m->interrupt))
        return;
    int64_t now = now_ns();
    if (m->asked_ns == 0)
        m->asked_ns = now;
    if (now - m->asked_ns > 2 * ASK_NS)
        kill(m->child, SIGKILL);
    else if (now - m->asked_ns > ASK_NS)
        kill(m->child, SIGTERM);
}

static bool over(monitor *m)
{
    if (m->child > 0 && !m->ended)
        m->ended = waitpid(m->child, &m->wait_status, WNOHANG) == m->child;
    return m->child > 0 ? m->ended : atomic_load(m->interrupt);
}

static pl_status watch(monitor *m)
{
    int64_t every_ns = (int64_t)(m->options->every * 1e9);
    PL_TRY(sample(m, false));
    int64_t next_ns = m->begin_ns + every_ns;
    while (!over(m)) {
        end_command(m);
        if (now_ns() >= next_ns) {
            PL_TRY(sample(m, true));
            next_ns += every_ns;
        }
        poll(NULL, 0, SLICE_MS);
    }
    return m->view.samples == 0 ? sample(m, true) : PL_OK;
}

static void close_monitor(monitor *m)
{
    if (m->child > 0 && !m->ended) { /* we failed: end it too */
        kill(m->child, SIGKILL);
        waitpid(m->child, NULL, 0);
    }
    if (m->csv != NULL)
        fclose(m->csv);
    pl_usage_free(m->usage);
}

static pl_status run_monitor(monitor *m, int *exit_status)
{
    /* The command's output stays separate, and so do the lines of CSV. */
    const char *csv = m->options->csv;
    m->view.file = m->command != NULL ? stderr
                   : csv == NULL      ? stdout
                                      : pl_output_notices(pl_output_path(csv));
    m->view.job = m->command != NULL;
    m->view.terminal = isatty(fileno(m->view.file)) != 0 &&
                       (m->command == NULL || !isatty(STDOUT_FILENO));
    PL_TRY(pl_usage_new(&m->usage, NULL));
    PL_TRY(open_csv(m));
    m->interrupt = pl_interrupt_catch();
    m->begin_ns = now_ns();
    PL_TRY(start_command(m));
    PL_TRY(watch(m));
    pl_monitor_view_end(&m->view, (double)(now_ns() - m->begin_ns) * 1e-9);
    if (m->ended)
        *exit_status = WIFEXITED(m->wait_status)
                           ? WEXITSTATUS(m->wait_status)
                           : 128 + WTERMSIG(m->wait_status);
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    monitor_options options;
    pl_words words;
    PL_TRY(
        pl_command_parse(&pl_cmd_monitor, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    words.list[words.count] = NULL;
    monitor m = {
        .options = &options,
        .command = words.count > 0 ? words.list : NULL,
    };
    pl_status status = run_monitor(&m, app->exit_status);
    close_monitor(&m);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_monitor = {
    .name = "monitor",
    .usage = "monitor [flags] [-- COMMAND]",
    .help = "show and record the resources that are used",
    .about =
        "Show the use of processor, memory, network and disk of this host "
        "until Ctrl-C.\nWith a command, also show what it and its child "
        "processes use, until it ends;\nthe exit status is then the command's.",
    .examples = {
        { "monitor", "this host, until Ctrl-C" },
        { "monitor --csv host.csv", "also write a file" },
        { "monitor -- make -j8", "a command and its child processes" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
