/* help.c - decides what the help of the program and of a command shows, and
 * which command a mistyped one may stand for. */
#include "cli/help/help.h"

#include "base/error.h"

#include <string.h>

#define EXAMPLE_COLUMN 44
#define NAMES_MOST     64

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0 ||
           strncmp(arg, "--help=", 7) == 0;
}

bool pl_app_wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i]))
            return true;
    return false;
}

const char *pl_help_topic(int argc, char **argv)
{
    int at = 0;
    while (at < argc && !is_help(argv[at]))
        at++;
    if (at == argc)
        return NULL;
    if (strchr(argv[at], '=') != NULL)
        return strchr(argv[at], '=') + 1;
    return at + 1 < argc && strcmp(argv[at + 1], "--") != 0 ? argv[at + 1]
                                                            : NULL;
}

static void print_example(const pl_app *app, const pl_example *example,
                          FILE *file)
{
    int at = fprintf(file, "  %s%s%s", app->program,
                     example->words[0] != '\0' ? " " : "", example->words);
    if (at + 2 > EXAMPLE_COLUMN)
        fprintf(file, "\n%*s", EXAMPLE_COLUMN, "");
    else
        fprintf(file, "%*s", EXAMPLE_COLUMN - at, "");
    fprintf(file, "%s\n", example->says);
}

static void print_examples(const pl_app *app, const pl_example *list,
                           size_t count, FILE *file)
{
    for (size_t i = 0; i < count && list[i].words != NULL; i++)
        print_example(app, &list[i], file);
}

static void print_flags(const pl_help *help)
{
    size_t others = 0;
    if (help->topic != NULL)
        pl_param_print_help_where(help->groups, help->group_count, help->facts,
                                  stdout);
    else
        others = pl_param_print_common(help->groups, help->group_count,
                                       help->facts, stdout);
    if (others > 0)
        printf("\n%zu more flags: --help all. More about one flag: --help "
               "FLAG\n",
               others);
}

pl_status pl_help_print(const pl_help *help)
{
    const pl_command *command = help->command;
    const char *usage = help->usage != NULL ? help->usage : command->usage;
    const char *about = help->about != NULL ? help->about : command->about;
    if (help->topic != NULL && strcmp(help->topic, "all") != 0)
        return pl_param_explain(help->groups, help->group_count, help->facts,
                                help->topic, stdout);
    puts("Examples:");
    print_examples(help->app, command->examples, PL_COMMAND_EXAMPLES, stdout);
    printf("\nusage: %s %s\n\n%s\n", help->app->program, usage, about);
    if (help->group_count > 0) {
        putchar('\n');
        print_flags(help);
    }
    return PL_OK;
}

void pl_help_first(const pl_app *app, FILE *file)
{
    static const pl_example first[] = {
        { "demo", "the whole story, in two minutes" },
        { "train softmax", "train on the built-in digits" },
        { "train softmax --workers 2 --ps 1", "the same in three processes" },
        { "page", "follow the runs in a browser" },
        { "train --help", "what else a training can do" },
    };
    fprintf(file,
            "paceline %s: train models on one machine or many\n\nTry first:\n",
            pl_version());
    print_examples(app, first, sizeof first / sizeof *first, file);
    fprintf(file, "\n%s --help lists all commands.\n", app->program);
}

void pl_help_commands(const pl_app *app, FILE *file)
{
    fprintf(file,
            "paceline %s: train models on one machine or many\n\n"
            "usage: %s COMMAND [...]\n\n",
            pl_version(), app->program);
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        fprintf(file, "  %-15s %s\n", (*c)->name, (*c)->help);
    fprintf(file, "\n  %-15s %s\n  %-15s %s\n  %-15s %s\n", "COMMAND --help",
            "examples, and the flags most people need", "--help", "this text",
            "--version", "the version, and what it was built with");
}

pl_status pl_help_unknown(const pl_app *app, const char *name)
{
    const pl_model *models[NAMES_MOST];
    const char *names[NAMES_MOST] = { "--help", "--version" };
    size_t count = 2;
    pl_app_models(app, models, NAMES_MOST);
    for (const pl_model **m = models; *m != NULL; m++)
        if (strcmp((*m)->name, name) == 0)
            return PL_FAIL(PL_USAGE,
                           "unknown command \"%s\", which is a model; did you "
                           "mean train %s?",
                           name, name);
    for (const pl_command *const *c = pl_command_list();
         *c != NULL && count < NAMES_MOST - 1; c++)
        names[count++] = (*c)->name;
    names[count] = NULL;
    const char *near = pl_param_nearest(name, names);
    if (near != NULL)
        return PL_FAIL(PL_USAGE, "unknown command \"%s\"; did you mean %s?",
                       name, near);
    return PL_FAIL(PL_USAGE, "unknown command \"%s\"; --help lists them", name);
}
