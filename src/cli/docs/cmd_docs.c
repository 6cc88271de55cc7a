/* The manual page and docs/options.md, from the same tables as the flags. */
#include "app/options/options.h"
#include "base/mem.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

/* Commands with flags of their own. */
static bool has_flags(const pl_command *command)
{
    return command->param_count > 0;
}

static pl_param_group flags_of(const pl_command *command)
{
    return (pl_param_group) { .title = command->usage,
                              .params = command->params,
                              .count = command->param_count };
}

static void print_man(const pl_options *options)
{
    printf(".TH PACELINE 1 \"\" \"paceline %s\"\n.SH NAME\npaceline \\- train "
           "models on one machine or many\n.SH SYNOPSIS\n",
           pl_version());
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        printf(".B paceline\n%s\n.br\n", (*c)->usage);
    printf(".SH COMMANDS\n");
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        printf(".TP\n.B %s\n%s\n", (*c)->usage, (*c)->help);
    printf(".SH FLAGS OF TRAIN\n");
    pl_param_print_troff(options->groups, options->group_count, stdout);
    printf(".SH FLAGS OF OTHER COMMANDS\n");
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++) {
        pl_param_group group = flags_of(*c);
        if (has_flags(*c))
            pl_param_print_troff(&group, 1, stdout);
    }
    printf(".SH EXIT STATUS\n0: done; 1: failed; 2: wrong usage; 130: "
           "interrupted.\n");
}

static void print_options(const pl_options *options)
{
    printf("# Flags\n\nMade by `paceline docs options`; do not edit.\n\n"
           "## `paceline train`\n\n");
    pl_param_facts facts = pl_options_facts(options);
    pl_param_print_markdown(options->groups, options->group_count, &facts,
                            stdout);
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++) {
        pl_param_group group = flags_of(*c);
        group.title = "Flags";
        if (has_flags(*c)) {
            printf("\n## `paceline %s`\n\n", (*c)->name);
            pl_param_print_markdown(
                &group, 1,
                &(pl_param_facts) { .terms = (*c)->terms,
                                    .term_count = (*c)->term_count,
                                    .groups = &group,
                                    .group_count = 1 },
                stdout);
        }
    }
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    if (pl_app_wants_help(argc, argv)) {
        printf("usage: %s docs man|options\n\nPrint the manual page, or all "
               "flags as Markdown.\n",
               app->program);
        return PL_OK;
    }
    bool man = argc == 1 && strcmp(argv[0], "man") == 0;
    if (!man && (argc != 1 || strcmp(argv[0], "options") != 0))
        return PL_FAIL(PL_USAGE, "expected: docs man or docs options");
    const pl_model *model;
    PL_TRY(pl_app_model(app, "softmax", &model));
    pl_options *options;
    PL_TRY(PL_NEW(options, 1));
    pl_status status = pl_options_init(options, model);
    if (status == PL_OK) {
        man ? print_man(options) : print_options(options);
        pl_options_close(options);
    }
    pl_mem_free(options);
    return status;
}

const pl_command pl_cmd_docs = {
    .name = "docs",
    .usage = "docs man|options",
    .help = "print the manual page, or the flags as Markdown",
    .run = run,
};
