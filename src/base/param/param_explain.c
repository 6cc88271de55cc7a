/* param_explain.c - prints everything in the row of one flag: `--help FLAG`. */
#include "base/param/param_priv.h"

#include <string.h>

#define COLUMN     10 /* where the text of a fact begins */
#define LINE_BYTES 1024

/* "  default   100" */
static void print_fact(FILE *file, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    int at = fprintf(file, "  %-*s", COLUMN, name);
    pl_param_print_wrapped(file, text, at, COLUMN + 2);
}

/* What the value may be, with its range. */
static void kind_text(const pl_param *param, char *text, size_t room)
{
    char range[2 * PL_PARAM_NUMBER_BYTES + 16];
    pl_param_range_text(param, range, sizeof range);
    const char *gap = range[0] == '\0' ? "" : " ";
    switch (param->kind) {
    case PL_PARAM_INT:
        snprintf(text, room, "a whole number%s%s", gap, range);
        break;
    case PL_PARAM_REAL:
        snprintf(text, room, "a number%s%s", gap, range);
        break;
    case PL_PARAM_CHOICE:
        pl_param_choices_text(param->choices, text, room);
        break;
    case PL_PARAM_EVERY:
        snprintf(text, room, "100 (steps), 20000ex, 1ep, 60s or never");
        break;
    case PL_PARAM_FLAG:
        snprintf(text, room, "none: the flag by itself turns it on");
        break;
    case PL_PARAM_TEXT:
        snprintf(text, room, "%s", pl_param_value_name(param));
        break;
    }
}

static void explain(const pl_param *param, const void *target,
                    const pl_param_facts *facts, FILE *file)
{
    char text[LINE_BYTES];
    const char *value = pl_param_value_name(param);
    fprintf(file, "--%s%s%s\n\n  ", param->name, value[0] == '\0' ? "" : " ",
            value);
    pl_param_print_wrapped(file, param->help != NULL ? param->help : "", 2, 2);
    if (param->why != NULL) {
        fputs("\n  ", file);
        pl_param_print_wrapped(file, param->why, 2, 2);
    }
    fputc('\n', file);
    kind_text(param, text, sizeof text);
    print_fact(file, "value", text);
    print_fact(file, "default",
               pl_param_default_text(param, target, text, sizeof text));
    if (facts != NULL && param->needs != NULL) {
        pl_param_needs_text(param, facts, text, sizeof text);
        print_fact(file, "needs", text);
    }
}

pl_status pl_param_explain(const pl_param_group *groups, size_t group_count,
                           const pl_param_facts *facts, const char *name,
                           FILE *file)
{
    name += strspn(name, "-");
    for (size_t g = 0; g < group_count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            if (strcmp(groups[g].params[i].name, name) == 0) {
                explain(&groups[g].params[i], groups[g].target, facts, file);
                return PL_OK;
            }
    char flag[80];
    snprintf(flag, sizeof flag, "--%.70s", name);
    return pl_param_unknown(groups, group_count, flag);
}
