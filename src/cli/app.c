/* app.c - the program's entry: finds the command, runs it, prints the message
 * of a failure and chooses the exit status. */
#include "base/assert.h"
#include "base/error.h"
#include "base/file/map.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param/param.h"
#include "base/text/console.h"
#include "cli/commands.h"
#include "cli/help/help.h"
#include "cli/help/version.h"
#include "job/supervise/local/host_local.h"
#include "nn/model.h"
#include "paceline/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND(name) &pl_cmd_##name,

const pl_command *const *pl_command_list(void)
{
    static const pl_command *const list[] = { PL_COMMAND_LIST(COMMAND) NULL };
    return list;
}

/* Refuse flags that have no effect with these words and the other flags. */
static pl_status check_flags(const pl_command *command,
                             const pl_param_group *group, const pl_words *words)
{
    pl_param_fact list[PL_COMMAND_FACTS];
    return pl_param_check(&(pl_param_facts) {
        .list = list,
        .count = command->facts != NULL ? command->facts(words, list) : 0,
        .terms = command->terms,
        .term_count = command->term_count,
        .groups = group,
        .group_count = 1,
    });
}

static pl_status print_help(const pl_command *command, const pl_app *app,
                            const pl_param_group *group, int argc, char **argv)
{
    const pl_param_facts facts = { .terms = command->terms,
                                   .term_count = command->term_count };
    return pl_help_print(&(pl_help) {
        .app = app,
        .command = command,
        .groups = group,
        .group_count = 1,
        .facts = &facts,
        .topic = pl_help_topic(argc, argv),
    });
}

pl_status pl_command_parse(const pl_command *command, const pl_app *app,
                           void *target, int argc, char **argv, pl_words *words)
{
    bool is_given[PL_COMMAND_FLAGS] = { false };
    pl_param_group group = { "Flags", command->params, command->param_count,
                             target, is_given };
    PL_ASSERT(command->param_count <= PL_COMMAND_FLAGS);
    *words = (pl_words) { NULL, 0 };
    PL_TRY(pl_param_defaults(&group, 1));
    if (pl_app_wants_help(argc, argv))
        return print_help(command, app, &group, argc, argv);
    char **list, **given, out[] = "--out";
    PL_TRY(PL_NEW(list, (size_t)argc + 1));
    pl_status status = PL_NEW(given, (size_t)argc + 1);
    bool flags = true;
    for (int i = 0; i < argc && status == PL_OK; i++) {
        flags = flags && strcmp(argv[i], "--") != 0;
        given[i] = flags && strcmp(argv[i], "-o") == 0 ? out : argv[i];
    }
    if (status == PL_OK)
        status = pl_param_parse(&group, 1, argc, given, list, &words->count);
    pl_mem_free(given);
    if (status == PL_OK) {
        words->list = list;
        status = check_flags(command, &group, words);
    }
    if (status != PL_OK) {
        pl_mem_free(list);
        *words = (pl_words) { NULL, 0 };
    }
    return status;
}

static pl_status dispatch(const pl_app *app, int argc, char **argv)
{
    const char *name = argv[0];
    char help[] = "--help", *asked[] = { help };
    bool is_help = pl_app_wants_help(1, argv) || strcmp(name, "help") == 0;
    if (strcmp(name, "--version") == 0)
        return pl_print_version();
    if (is_help && argc == 1) {
        pl_help_commands(app, stdout);
        return PL_OK;
    }
    if (is_help)
        name = argv[1]; /* "help train" */
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0)
            return is_help ? (*c)->run(app, 1, asked)
                           : (*c)->run(app, argc - 1, argv + 1);
    return pl_help_unknown(app, name);
}

static int exit_status(pl_status status)
{
    switch (status) {
    case PL_OK:
        return 0;
    case PL_USAGE:
        return 2;
    case PL_INTERRUPTED:
        return 130;
    default:
        return 1;
    }
}

/* For usage errors, even --verbose does not print the place in our source. */
static void report(const pl_app *app, pl_status status)
{
    const char *message = pl_error_message();
    size_t length = status == PL_USAGE || status == PL_INTERRUPTED
                        ? pl_error_words(message)
                        : strlen(message);
    char line[PL_CONSOLE_BYTES];
    int used = snprintf(line, sizeof line, "%s: %.*s\n", app->program,
                        (int)length, message);
    if (used >= (int)sizeof line) {
        used = sizeof line - 1;
        line[used - 1] = '\n';
    }
    pl_console_last(line, (size_t)used);
}

/* If standard error is closed, the next file to be opened gets its number, and
 * our messages end up in a checkpoint. */
static void hold_standard_files(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", O_RDWR) < 0)
            return; /* without /dev/null nothing better is possible */
}

/* Report output that could not be written, unless the reader has left. */
static pl_status finish_output(void)
{
    int flushed = fflush(stdout), error = errno;
    if (flushed == 0 && !ferror(stdout))
        return PL_OK;
    struct pollfd out = { .fd = STDOUT_FILENO };
    if (poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0)
        return PL_OK;
    return PL_FAIL(PL_IO, "write to standard output: %s",
                   strerror(flushed != 0 ? error : EIO));
}

/* A supervisor starts this program again for each task of a job.  If that
 * process used other arguments than its own, it would become a supervisor too
 * and start processes endlessly. */
static pl_status check_task(int argc, char **argv)
{
    const char *task = getenv(PL_HOST_TASK);
    bool told = false;
    for (int i = 1; i < argc; i++)
        told = told || strcmp(argv[i], "--control") == 0;
    if (task != NULL && !told)
        return PL_FAIL(PL_USAGE,
                       "this process was started as %.40s of a job, but "
                       "pl_app_main did not get its arguments: pass argc and "
                       "argv of main to it in every process",
                       task);
    unsetenv(PL_HOST_TASK); /* processes that a task starts are not tasks */
    return PL_OK;
}

int pl_app_main(int argc, char **argv, const pl_model *mine)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    int done = 0;
    pl_app_files files = { .count = 0 };
    pl_app app = {
        .program = slash != NULL ? slash + 1
                   : argc > 0    ? argv[0]
                                 : "paceline",
        .mine = mine,
        .files = &files,
        .exit_status = &done,
    };
    hold_standard_files();
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    pl_error_places(false); /* of no use to users */
    pl_map_allow();
    pl_mem_keep_freed();
    /* A reader that closes our output must not end a training, nor must a limit
     * on file sizes: the write reports the error. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    pl_status status = check_task(argc, argv);
    if (status == PL_OK && argc < 2) {
        pl_help_first(&app, stderr);
        return 2;
    }
    if (status == PL_OK)
        status = dispatch(&app, argc - 1, argv + 1);
    if (status == PL_OK)
        status = finish_output();
    else
        fflush(stdout);
    pl_app_files_close(&files);
    if (status != PL_OK)
        report(&app, status);
    return status == PL_OK ? done : exit_status(status);
}
