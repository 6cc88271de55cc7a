/* man.c - the manual pages: paceline(1), and one for each command with its
 * examples and flags. */
#include "cli/docs/docs.h"

#include <ctype.h>
#include <stdio.h>

/* Text for troff: hyphens that can be copied, visible backslashes, and no
 * leading dot or quote that would be read as a request. */
static void print_text(const char *text)
{
    bool begins = true;
    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        begins = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '~')
            fputs("\\(ti", stdout);
        else
            putchar(*text);
    }
}

static void print_heading(const char *name)
{
    fputs(".TH PACELINE", stdout);
    if (name != NULL)
        fputs("\\-", stdout);
    for (const char *c = name != NULL ? name : ""; *c != '\0'; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"paceline %s\"\n.SH NAME\n", pl_version());
}

static void print_usage(const char *usage)
{
    fputs(".B paceline\n", stdout);
    print_text(usage);
    fputs("\n.br\n", stdout);
}

static void print_examples(const pl_command *command)
{
    puts(".SH EXAMPLES");
    for (size_t i = 0; i < PL_COMMAND_EXAMPLES; i++) {
        fputs(".TP\n\\fBpaceline ", stdout);
        print_text(command->examples[i].words);
        fputs("\\fR\n", stdout);
        print_text(command->examples[i].says);
        putchar('\n');
    }
}

static void print_end(const pl_command *command)
{
    puts(".SH EXIT STATUS\n0: done; 1: failed; 2: wrong usage; 130: "
         "interrupted.\n.SH SEE ALSO");
    const char *before = command != NULL ? ".BR paceline (1)" : "";
    fputs(before, stdout);
    if (command == NULL)
        for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
            printf(".BR paceline\\-%s (1)%s\n", (*c)->name,
                   c[1] != NULL ? "," : "");
    else
        putchar('\n');
}

void pl_docs_man(const pl_options *options)
{
    (void)options;
    print_heading(NULL);
    puts("paceline \\- train models on one machine or many\n.SH SYNOPSIS");
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        print_usage((*c)->usage);
    puts(".SH COMMANDS");
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++) {
        fputs(".TP\n.B ", stdout);
        print_text((*c)->usage);
        putchar('\n');
        print_text((*c)->help);
        putchar('\n');
    }
    puts(".PP\nEach has a page of its own, and\n.B \\-\\-help\nof each shows "
         "examples.");
    print_end(NULL);
}

void pl_docs_man_of(const pl_command *command, const pl_options *options)
{
    print_heading(command->name);
    printf("paceline\\-%s \\- ", command->name);
    print_text(command->help);
    puts("\n.SH SYNOPSIS");
    print_usage(command->usage);
    puts(".SH DESCRIPTION\n.nf");
    print_text(command->about);
    puts("\n.fi");
    print_examples(command);
    puts(".SH FLAGS");
    pl_param_group own = pl_docs_flags(command, "Flags");
    if (own.count > 0)
        pl_param_print_troff(&own, 1, stdout);
    if (command == &pl_cmd_train)
        pl_param_print_troff(options->groups, options->group_count, stdout);
    else if (pl_docs_takes_train_flags(command))
        puts("Those of\n.BR paceline\\-train (1).");
    else if (own.count == 0)
        puts("None.");
    print_end(command);
}
