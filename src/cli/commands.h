/* commands.h - the commands of the program.
 *
 * Each gets the arguments behind its own name and returns a status; only
 * app.c turns it into an exit status.
 *
 * Threads: one. */
#ifndef PL_CLI_COMMANDS_H
#define PL_CLI_COMMANDS_H

#include "base/param.h"
#include "paceline/nn.h"

typedef struct pl_app {
    const char *program;  /* argv[0]'s last part, for messages */
    const pl_model *mine; /* the user's model, or NULL */
    int *exit_status;     /* of a command that went well; 0 unless set */
} pl_app;

typedef struct pl_command {
    const char *name;
    const char *usage; /* "train MODEL [flags]" */
    const char *help;  /* one line */
    pl_status (*run)(const pl_app *app, int argc, char **argv);
    const pl_param *params; /* its flags, for the documents; NULL: train's */
    size_t param_count;
} pl_command;

extern const pl_command pl_cmd_train, pl_cmd_eval, pl_cmd_predict,
    pl_cmd_compare, pl_cmd_sweep, pl_cmd_report, pl_cmd_models, pl_cmd_data,
    pl_cmd_keys, pl_cmd_docs;
extern const pl_command pl_cmd_matmul, pl_cmd_monitor, pl_cmd_profile;
extern const pl_command pl_cmd_launch, pl_cmd_doctor, pl_cmd_page;

/* All commands, NULL-terminated. */
const pl_command *const *pl_command_list(void);

/* True when --help or -h is among the arguments. */
bool pl_app_wants_help(int argc, char **argv);

/* For a command with one table of flags: fill `target` with the defaults and
 * with what the user gave; -o is --out.  The words are what is no flag (the
 * caller frees the list by pl_mem_free); no list when help was asked for and
 * printed, with `about` as its text. */
typedef struct pl_words {
    char **list;
    int count;
} pl_words;
pl_status pl_command_parse(const pl_command *command, const pl_app *app,
                           const char *about, void *target, int argc,
                           char **argv, pl_words *words) PL_MUST_CHECK;

/* PL_USAGE for an unknown one, with the nearest. */
pl_status pl_app_model(const pl_app *app, const char *name,
                       const pl_model **out) PL_MUST_CHECK;
/* All models: the user's first; at most `room`, NULL-terminated. */
void pl_app_models(const pl_app *app, const pl_model **out, int room);

#endif
