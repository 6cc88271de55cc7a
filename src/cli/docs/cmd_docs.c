/* cmd_docs.c - `docs`: prints the manual pages, docs/options.md and the
 * completion scripts, from the same tables as the flags. */
#include "base/error.h"
#include "base/mem.h"
#include "cli/docs/docs.h"
#include "cli/help/help.h"

#include <stdio.h>
#include <string.h>

bool pl_docs_takes_train_flags(const pl_command *command)
{
    return command == &pl_cmd_train || command == &pl_cmd_models ||
           command == &pl_cmd_plan;
}

pl_param_group pl_docs_flags(const pl_command *command, const char *title)
{
    return (pl_param_group) { .title = title,
                              .params = command->params,
                              .count = command->param_count };
}

void pl_docs_options(const pl_options *options)
{
    printf("# Flags\n\nMade by `paceline docs options`; do not edit.\n\n"
           "## `paceline train`\n\n");
    pl_param_facts facts = pl_options_facts(options);
    pl_param_print_markdown(options->groups, options->group_count, &facts,
                            stdout);
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++) {
        pl_param_group group = pl_docs_flags(*c, "Flags");
        if (group.count == 0)
            continue;
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

static pl_status print_man_of(const char *name, const pl_options *options)
{
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0) {
            pl_docs_man_of(*c, options);
            return PL_OK;
        }
    return PL_FAIL(PL_USAGE, "docs man %s: there is no such command", name);
}

static pl_status print(const pl_app *app, int argc, char **argv,
                       const pl_options *options)
{
    static const char *const kinds[] = { "man", "options",  "bash",
                                         "zsh", "commands", NULL };
    const char *kind = argc > 0 ? argv[0] : "";
    if (argc == 2 && strcmp(kind, "man") == 0)
        return print_man_of(argv[1], options);
    if (argc == 1 && strcmp(kind, "man") == 0)
        pl_docs_man(options);
    else if (argc == 1 && strcmp(kind, "options") == 0)
        pl_docs_options(options);
    else if (argc == 1 && strcmp(kind, "bash") == 0)
        pl_docs_bash(app, options);
    else if (argc == 1 && strcmp(kind, "zsh") == 0)
        pl_docs_zsh(app, options);
    else if (argc == 1 && strcmp(kind, "commands") == 0)
        for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
            puts((*c)->name);
    else {
        const char *near = pl_param_nearest(kind, kinds);
        return PL_FAIL(PL_USAGE,
                       "expected: docs man [COMMAND], options, bash, zsh or "
                       "commands%s%s%s",
                       near != NULL && argc == 1 ? "; did you mean docs " : "",
                       near != NULL && argc == 1 ? near : "",
                       near != NULL && argc == 1 ? "?" : "");
    }
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    if (pl_app_wants_help(argc, argv))
        return pl_help_print(&(pl_help) { .app = app,
                                          .command = &pl_cmd_docs,
                                          .topic = pl_help_topic(argc, argv) });
    const pl_model *model;
    PL_TRY(pl_app_model(app, "softmax", &model));
    pl_options *options;
    PL_TRY(PL_NEW(options, 1));
    pl_status status = pl_options_init(options, model);
    if (status == PL_OK) {
        status = print(app, argc, argv, options);
        pl_options_close(options);
    }
    pl_mem_free(options);
    return status;
}

const pl_command pl_cmd_docs = {
    .name = "docs",
    .usage = "docs man [COMMAND]|options|bash|zsh|commands",
    .help = "print manual pages, the flags as Markdown, completions",
    .about = "Print what is made from the tables of commands and flags: "
             "manual pages, the\nflags as Markdown, completion scripts for "
             "bash and zsh, the commands' names.",
    .examples = {
        { "docs man train", "a manual page, in troff" },
        { "docs options", "docs/options.md" },
        { "docs bash", "for ~/.local/share/bash-completion" },
    },
    .run = run,
};
