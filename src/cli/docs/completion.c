/* completion.c - completion scripts for bash and zsh: what may follow a command
 * or a flag, according to the tables.
 *
 * Both scripts hold a list of flags for each command, and a list of choices for
 * each flag that has them.  Other text values complete to file names. */
#include "cli/docs/docs.h"

#include <stdio.h>
#include <string.h>

static bool is_shown(const pl_param *param)
{
    return (param->traits & PL_PARAM_INTERNAL) == 0;
}

/* "--mode " for each flag of the groups. */
static void print_names(const pl_param_group *groups, size_t count)
{
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            if (is_shown(&groups[g].params[i]))
                printf(" --%s", groups[g].params[i].name);
}

static void print_models(const pl_app *app)
{
    const pl_model *models[64];
    pl_app_models(app, models, 64);
    for (const pl_model **m = models; *m != NULL; m++)
        printf(" %s", (*m)->name);
}

/* The words that may follow these commands first. */
static void print_words(const pl_app *app, const pl_command *command)
{
    if (pl_docs_takes_train_flags(command))
        print_models(app);
    if (command == &pl_cmd_data)
        fputs(" get digits convert stats", stdout);
    if (command == &pl_cmd_docs)
        fputs(" man options bash zsh commands", stdout);
}

/* "mean sum" of "mean|sum" */
static void print_choices(const char *choices)
{
    for (; *choices != '\0'; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* A line of a shell's `case` for each flag with a value: its choices, "@" for a
 * text, "-" for anything else. */
static void print_values(const char *name, const pl_param_group *groups,
                         size_t count)
{
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const pl_param *param = &groups[g].params[i];
            if (!is_shown(param) || param->kind == PL_PARAM_FLAG)
                continue;
            printf("    %s:--%s) echo '", name, param->name);
            if (param->kind == PL_PARAM_CHOICE)
                print_choices(param->choices);
            else
                putchar(param->kind == PL_PARAM_TEXT ? '@' : '-');
            puts("' ;;");
        }
}

/* Two functions that work in both shells: the words of a command, and the
 * values of a flag ("@" a file, "-" a number). */
static void print_tables(const pl_app *app, const pl_options *options)
{
    puts("_paceline_words() {\n    case $1 in");
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++) {
        pl_param_group own = pl_docs_flags(*c, "");
        printf("    %s) echo '", (*c)->name);
        print_words(app, *c);
        print_names(&own, 1);
        if (pl_docs_takes_train_flags(*c))
            print_names(options->groups, options->group_count);
        puts(" --help' ;;");
    }
    fputs("    '') echo '--help --version help", stdout);
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++)
        printf(" %s", (*c)->name);
    puts("' ;;\n    esac\n}\n\n_paceline_values() {\n    case $1:$2 in");
    for (const pl_command *const *c = pl_command_list(); *c != NULL; c++) {
        pl_param_group own = pl_docs_flags(*c, "");
        print_values((*c)->name, &own, 1);
        if (pl_docs_takes_train_flags(*c))
            print_values((*c)->name, options->groups, options->group_count);
    }
    puts("    esac\n}\n");
}

void pl_docs_bash(const pl_app *app, const pl_options *options)
{
    puts("# bash completion of paceline; made by `paceline docs bash`.\n");
    print_tables(app, options);
    puts(
        "_paceline() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} command='' values='' at=1\n"
        "    [ \"$COMP_CWORD\" -gt 1 ] && command=${COMP_WORDS[1]}\n"
        "    if [ \"$command\" = launch ]; then # after --: its command\n"
        "        while [ \"$at\" -lt \"$COMP_CWORD\" ]; do\n"
        "            if [ \"${COMP_WORDS[at]}\" = -- ]; then\n"
        "                command=${COMP_WORDS[at + 1]}\n"
        "                [ \"$((at + 1))\" -lt \"$COMP_CWORD\" ] ||\n"
        "                    command=''\n"
        "            fi\n"
        "            at=$((at + 1))\n"
        "        done\n"
        "    fi\n"
        "    [ \"$COMP_CWORD\" -gt 1 ] && values=$(_paceline_values "
        "\"$command\" \"${COMP_WORDS[COMP_CWORD - 1]}\")\n"
        "    case $values in\n"
        "    '' | @) ;;\n"
        "    -) return ;;\n"
        "    *)\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
        "        return\n"
        "        ;;\n"
        "    esac\n"
        "    if [ \"$values\" != @ ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W "
        "\"$(_paceline_words \"$command\")\" -- \"$cur\")\n"
        "    fi\n"
        "    [ \"${#COMPREPLY[@]}\" -gt 0 ] ||\n"
        "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
        "}\n\ncomplete -o filenames -F _paceline paceline");
}

void pl_docs_zsh(const pl_app *app, const pl_options *options)
{
    puts("#compdef paceline\n"
         "# zsh completion of paceline; made by `paceline docs zsh`.\n");
    print_tables(app, options);
    puts("_paceline() {\n"
         "    local command='' values='' at\n"
         "    (( CURRENT > 2 )) && command=${words[2]}\n"
         "    if [[ $command == launch ]]; then # after --: its command\n"
         "        for (( at = 3; at < CURRENT; at++ )); do\n"
         "            [[ ${words[at]} == -- ]] || continue\n"
         "            command=''\n"
         "            (( at + 1 < CURRENT )) && command=${words[at + 1]}\n"
         "        done\n"
         "    fi\n"
         "    (( CURRENT > 2 )) &&\n"
         "        values=$(_paceline_values \"$command\" "
         "\"${words[CURRENT - 1]}\")\n"
         "    case $values in\n"
         "    -) return ;;\n"
         "    @) _files; return ;;\n"
         "    ?*) compadd -- ${=values}; return ;;\n"
         "    esac\n"
         "    compadd -- ${=\"$(_paceline_words \"$command\")\"}\n"
         "    [[ ${words[CURRENT]} == -* ]] || _files\n"
         "}\n\nif [ \"$funcstack[1]\" = _paceline ]; then\n"
         "    _paceline \"$@\"\nelse\n    compdef _paceline paceline\nfi");
}
