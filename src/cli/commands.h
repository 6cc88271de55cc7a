/* commands.h - the commands of the program.
 *
 * Each receives the arguments after its own name and returns a status, which
 * only app.c turns into an exit status.
 *
 * Threads: one. */
#ifndef PL_CLI_COMMANDS_H
#define PL_CLI_COMMANDS_H

#include "app/app.h"
#include "app/launch/launch.h"
#include "base/param/param.h"

typedef struct pl_example {
    const char *words; /* after the program's name */
    const char *says;  /* what it does */
} pl_example;

#define PL_COMMAND_EXAMPLES 3

typedef struct pl_command {
    const char *name;
    const char *usage; /* "train MODEL [flags]" */
    const char *help;  /* one line */
    const char *about; /* what it does, as lines of at most 80 columns */
    pl_example examples[PL_COMMAND_EXAMPLES];
    pl_status (*run)(const pl_app *app, int argc, char **argv);
    const pl_param *params; /* its flags, for the documents; NULL: train's */
    size_t param_count;     /* at most PL_COMMAND_FLAGS */
    /* Optional: what the flags' conditions refer to besides other flags (at
     * most PL_COMMAND_FACTS; returns the number), and how conditions are
     * phrased. */
    size_t (*facts)(const pl_words *words, pl_param_fact *facts);
    const pl_param_term *terms;
    size_t term_count;
} pl_command;

#define PL_COMMAND_FLAGS 32
#define PL_COMMAND_FACTS 8

/* Every command, in the order of --help: pl_cmd_<name> in cmd_<name>.c. */
#define PL_COMMAND_LIST(X)                                                     \
    X(demo)                                                                    \
    X(train)                                                                   \
    X(eval)                                                                    \
    X(predict)                                                                 \
    X(export)                                                                  \
    X(compare)                                                                 \
    X(plan)                                                                    \
    X(sweep)                                                                   \
    X(report)                                                                  \
    X(page)                                                                    \
    X(models)                                                                  \
    X(monitor)                                                                 \
    X(profile)                                                                 \
    X(data)                                                                    \
    X(keys)                                                                    \
    X(launch)                                                                  \
    X(doctor)                                                                  \
    X(matmul)                                                                  \
    X(docs)

#define PL_DECLARE_COMMAND(name) extern const pl_command pl_cmd_##name;
PL_COMMAND_LIST(PL_DECLARE_COMMAND)
#undef PL_DECLARE_COMMAND

/* All commands, NULL-terminated. */
const pl_command *const *pl_command_list(void);

/* `matmul` on the hosts of `launch`; argv is what follows the word. */
pl_status pl_cmd_matmul_launch(const pl_app *app, const pl_launch_flags *flags,
                               int argc, char **argv) PL_MUST_CHECK;

/* True when --help or -h is among the arguments. */
bool pl_app_wants_help(int argc, char **argv);

/* For a command with one table of flags: fill `target` with the defaults and
 * the given flags; -o is --out.  Flags without an effect are refused.  The
 * words are the arguments that are not flags (the caller frees the list with
 * pl_mem_free); there is no list when help was requested and printed. */
pl_status pl_command_parse(const pl_command *command, const pl_app *app,
                           void *target, int argc, char **argv,
                           pl_words *words) PL_MUST_CHECK;

#endif
