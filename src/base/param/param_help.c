/* param_help.c - the printed forms of a parameter table: terminal, Markdown,
 * manual page; and which rows of it the short help shows. */
#include "base/param/param_priv.h"

#include <string.h>

#define WIDTH      80
#define INDENT     2
#define LEFT_MOST  30 /* a longer flag puts its help on the next line */
#define LINE_BYTES 1024

const char *pl_param_value_name(const pl_param *param)
{
    if (param->kind == PL_PARAM_FLAG)
        return "";
    if (param->value != NULL)
        return param->value;
    switch (param->kind) {
    case PL_PARAM_INT:
        return "N";
    case PL_PARAM_REAL:
        return "X";
    case PL_PARAM_CHOICE:
        return param->choices;
    case PL_PARAM_EVERY:
        return "E";
    default:
        return "TEXT";
    }
}

/* Which flags the terminal shows. */
typedef struct view {
    const pl_param_facts *facts; /* those that have an effect; NULL: all */
    bool common;                 /* those that most people need */
} view;

static bool is_shown(const pl_param *param)
{
    return (param->traits & PL_PARAM_INTERNAL) == 0;
}

static bool is_in_view(const pl_param *param, const view *shown)
{
    return is_shown(param) &&
           (shown->facts == NULL || pl_param_applies(param, shown->facts)) &&
           (!shown->common || (param->traits & PL_PARAM_COMMON) != 0);
}

static size_t count_in_view(const pl_param_group *group, const view *shown)
{
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++)
        count += is_in_view(&group->params[i], shown);
    return count;
}

const char *pl_param_default_text(const pl_param *param, const void *target,
                                  char *text, size_t room)
{
    if (param->fallback != NULL)
        return param->fallback;
    if ((param->traits & PL_PARAM_OF_MODEL) == 0)
        return "";
    text[0] = '\0';
    if (target != NULL)
        pl_param_value_text(param, target, text, room);
    return text[0] != '\0' ? text : "the model's";
}

/* "--batch N" */
static int flag_text(const pl_param *param, char *text, size_t room)
{
    const char *value = pl_param_value_name(param);
    return snprintf(text, room, "--%s%s%s", param->name,
                    value[0] == '\0' ? "" : " ", value);
}

/* The help line; a choice whose value has a name lists its choices. */
static void help_text(const pl_param *param, char *text, size_t room)
{
    const char *help = param->help == NULL ? "" : param->help;
    if (param->kind != PL_PARAM_CHOICE || param->value == NULL) {
        snprintf(text, room, "%s", help);
        return;
    }
    int used = snprintf(text, room, "%s: ", help);
    for (const char *c = param->choices;
         *c != '\0' && used > 0 && (size_t)used < room; c++)
        used += snprintf(text + used, room - (size_t)used, "%s%c",
                         *c == '|' ? "," : "", *c == '|' ? ' ' : *c);
}

/* The column at which help begins: two blanks after the widest flag. */
static int help_column(const pl_param_group *groups, size_t group_count,
                       const view *shown)
{
    int widest = 0;
    char flag[LINE_BYTES];
    for (size_t g = 0; g < group_count; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            int wide = flag_text(&groups[g].params[i], flag, sizeof flag);
            if (is_in_view(&groups[g].params[i], shown) && wide <= LEFT_MOST &&
                wide > widest)
                widest = wide;
        }
    }
    return INDENT + widest + 2;
}

void pl_param_print_wrapped(FILE *file, const char *text, int at, int column)
{
    bool first = true;
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (!first && at + 1 + length > WIDTH) {
            fprintf(file, "\n%*s", column, "");
            at = column;
            first = true;
        }
        at += fprintf(file, "%s%.*s", first ? "" : " ", length, text);
        first = false;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

static void print_param(FILE *file, const pl_param *param, const void *target,
                        int column)
{
    char flag[LINE_BYTES], help[LINE_BYTES], value[LINE_BYTES];
    char line[3 * LINE_BYTES];
    flag_text(param, flag, sizeof flag);
    help_text(param, help, sizeof help);
    const char *otherwise =
        pl_param_default_text(param, target, value, sizeof value);
    if (otherwise[0] != '\0')
        snprintf(line, sizeof line, "%s [%s]", help, otherwise);
    else
        snprintf(line, sizeof line, "%s", help);

    int at = fprintf(file, "%*s%s", INDENT, "", flag);
    if (at + 2 > column) {
        fputc('\n', file);
        at = 0;
    }
    fprintf(file, "%*s", column - at, "");
    pl_param_print_wrapped(file, line, column, column);
}

void pl_param_print_help(const pl_param_group *groups, size_t group_count,
                         FILE *file)
{
    pl_param_print_help_where(groups, group_count, NULL, file);
}

static void print_view(const pl_param_group *groups, size_t group_count,
                       const view *shown, FILE *file)
{
    int column = help_column(groups, group_count, shown);
    bool first = true;
    for (size_t g = 0; g < group_count; g++) {
        if (count_in_view(&groups[g], shown) == 0)
            continue;
        fprintf(file, "%s%s:\n", first ? "" : "\n", groups[g].title);
        first = false;
        for (size_t i = 0; i < groups[g].count; i++)
            if (is_in_view(&groups[g].params[i], shown))
                print_param(file, &groups[g].params[i], groups[g].target,
                            column);
    }
}

void pl_param_print_help_where(const pl_param_group *groups, size_t group_count,
                               const pl_param_facts *facts, FILE *file)
{
    print_view(groups, group_count, &(view) { .facts = facts }, file);
}

size_t pl_param_print_common(const pl_param_group *groups, size_t group_count,
                             const pl_param_facts *facts, FILE *file)
{
    view common = { .facts = facts, .common = true }, all = { .facts = facts };
    size_t kept = 0, count = 0;
    for (size_t g = 0; g < group_count; g++) {
        kept += count_in_view(&groups[g], &common);
        count += count_in_view(&groups[g], &all);
    }
    print_view(groups, group_count, kept > 0 ? &common : &all, file);
    return kept > 0 ? count - kept : 0;
}

/* Text inside a table cell: a bar would end the cell. */
static void print_cell(FILE *file, const char *text)
{
    for (; *text != '\0'; text++)
        fprintf(file, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void print_row(FILE *file, const pl_param *param,
                      const pl_param_facts *facts)
{
    char text[LINE_BYTES];
    fputs("| `", file);
    flag_text(param, text, sizeof text);
    print_cell(file, text);
    fputs("` | ", file);
    if (param->fallback != NULL) {
        fputc('`', file);
        print_cell(file, param->fallback);
        fputc('`', file);
    } else {
        fputs(pl_param_default_text(param, NULL, text, sizeof text), file);
    }
    fputs(" | ", file);
    help_text(param, text, sizeof text);
    print_cell(file, text);
    pl_param_range_text(param, text, sizeof text);
    fprintf(file, "%s%s |", text[0] == '\0' ? "" : ", ", text);
    if (facts != NULL) {
        pl_param_needs_text(param, facts, text, sizeof text);
        fprintf(file, " %s |", text);
    }
    fputc('\n', file);
}

/* Does a flag of the group have conditions? */
static bool has_needs(const pl_param_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (is_shown(&group->params[i]) && group->params[i].needs != NULL)
            return true;
    return false;
}

void pl_param_print_markdown(const pl_param_group *groups, size_t group_count,
                             const pl_param_facts *facts, FILE *file)
{
    for (size_t g = 0; g < group_count; g++) {
        fprintf(file, "%s### %s\n\n", g == 0 ? "" : "\n", groups[g].title);
        const pl_param_facts *needs = has_needs(&groups[g]) ? facts : NULL;
        fprintf(file, "| Flag | Default | Meaning |%s\n|---|---|---|%s\n",
                needs != NULL ? " Needs |" : "", needs != NULL ? "---|" : "");
        for (size_t i = 0; i < groups[g].count; i++)
            if (is_shown(&groups[g].params[i]))
                print_row(file, &groups[g].params[i], needs);
    }
}

/* Text escaped for troff: hyphens and backslashes stay literal, and a dot or
 * quote at the start of a line is not a request. */
static void print_troff_text(FILE *file, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", file);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", file);
        else if (*text == '-')
            fputs("\\-", file);
        else
            fputc(*text, file);
    }
}

static void print_troff_param(FILE *file, const pl_param *param)
{
    char help[LINE_BYTES];
    fputs(".TP\n\\fB\\-\\-", file);
    print_troff_text(file, param->name);
    fputs("\\fR", file);
    if (pl_param_value_name(param)[0] != '\0') {
        fputs(" \\fI", file);
        print_troff_text(file, pl_param_value_name(param));
        fputs("\\fR", file);
    }
    fputc('\n', file);
    help_text(param, help, sizeof help);
    print_troff_text(file, help);
    const char *otherwise =
        pl_param_default_text(param, NULL, help, sizeof help);
    if (otherwise[0] != '\0') {
        fputs(" [", file);
        print_troff_text(file, otherwise);
        fputc(']', file);
    }
    fputc('\n', file);
}

void pl_param_print_troff(const pl_param_group *groups, size_t group_count,
                          FILE *file)
{
    for (size_t g = 0; g < group_count; g++) {
        fputs(".SS ", file);
        print_troff_text(file, groups[g].title);
        fputc('\n', file);
        for (size_t i = 0; i < groups[g].count; i++)
            if (is_shown(&groups[g].params[i]))
                print_troff_param(file, &groups[g].params[i]);
    }
}
