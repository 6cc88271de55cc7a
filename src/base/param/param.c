/* param.c - finds flags in an argument list, stores their values through the
 * table, and suggests the nearest flag for a misspelled one (edit distance). */
#include "base/param/param.h"

#include "base/param/param_priv.h"

#include <string.h>

/* A longer word is not taken for a misspelled flag. */
#define NEAREST_MOST 40

pl_status pl_param_defaults(const pl_param_group *groups, size_t group_count)
{
    for (size_t g = 0; g < group_count; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            const pl_param *param = &groups[g].params[i];
            pl_param_clear(param, groups[g].target);
            if (param->fallback == NULL)
                continue;
            pl_status status =
                pl_param_store(param, groups[g].target, param->fallback);
            if (status != PL_OK)
                return pl_context(status, "default of --%s", param->name);
        }
    }
    return PL_OK;
}

/* Edits (insert, delete, replace, swap two neighbours) from a to b: optimal
 * string alignment, three rows of the table at a time. */
static size_t edits(const char *a, const char *b)
{
    size_t rows[3][NEAREST_MOST + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return row[width];
}

/* Keep `candidate` in *nearest when it is nearer than *distance. */
static void consider(const char *word, const char *candidate,
                     const char **nearest, size_t *distance)
{
    if (strlen(word) > NEAREST_MOST || strlen(candidate) > NEAREST_MOST)
        return;
    size_t found = edits(word, candidate);
    if (found < *distance) {
        *distance = found;
        *nearest = candidate;
    }
}

/* The number of edits from which a suggestion would be a guess. */
static size_t too_far(const char *word)
{
    size_t length = strlen(word);
    size_t far = length / 3 + 2;
    return far < length ? far : length;
}

pl_status pl_param_unknown(const pl_param_group *groups, size_t group_count,
                           const char *flag)
{
    const char *nearest = NULL;
    char name[NEAREST_MOST + 2];
    snprintf(name, sizeof name, "%s", flag + strspn(flag, "-"));
    name[strcspn(name, "=")] = '\0';
    size_t distance = too_far(name);
    for (size_t g = 0; g < group_count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            if ((groups[g].params[i].traits & PL_PARAM_INTERNAL) == 0)
                consider(name, groups[g].params[i].name, &nearest, &distance);
    int shown = (int)strcspn(flag, "=");
    if (nearest != NULL)
        return PL_FAIL(PL_USAGE, "unknown flag %.*s; did you mean --%s?", shown,
                       flag, nearest);
    return PL_FAIL(PL_USAGE, "unknown flag %.*s", shown, flag);
}

/* The parameter called name[0 .. length-1] and its group; NULL: none. */
static const pl_param *find(const pl_param_group *groups, size_t group_count,
                            const char *name, size_t length,
                            const pl_param_group **group)
{
    for (size_t g = 0; g < group_count; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            const pl_param *param = &groups[g].params[i];
            if (strlen(param->name) == length &&
                memcmp(param->name, name, length) == 0) {
                *group = &groups[g];
                return param;
            }
        }
    }
    return NULL;
}

const pl_param *pl_param_find(const pl_param_group *groups, size_t group_count,
                              const char *name)
{
    const pl_param_group *group;
    return find(groups, group_count, name, strlen(name), &group);
}

/* The next argument is the value; one that may be left out begins with a
 * digit. */
static bool takes(const pl_param *param, const char *next)
{
    if (param->kind == PL_PARAM_TEXT && param->choices != NULL)
        return next[0] >= '0' && next[0] <= '9';
    return strncmp(next, "--", 2) != 0;
}

/* Read the flag at argv[0] and its value; *used counts the arguments that it
 * took. */
static pl_status parse_flag(const pl_param_group *groups, size_t group_count,
                            int argc, char **argv, int *used)
{
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const pl_param_group *group = NULL;
    const pl_param *param = find(groups, group_count, name, length, &group);
    if (param == NULL)
        return pl_param_unknown(groups, group_count, argv[0]);

    *used = 1;
    if (param->kind == PL_PARAM_FLAG) {
        if (equals != NULL)
            return PL_FAIL(PL_USAGE, "--%s takes no value", param->name);
        *(bool *)((char *)group->target + param->offset) = true;
    } else {
        const char *value = equals == NULL ? NULL : equals + 1;
        if (value == NULL && argc > 1 && takes(param, argv[1])) {
            value = argv[1];
            *used = 2;
        }
        if (value == NULL && param->kind == PL_PARAM_TEXT)
            value = param->choices;
        if (value == NULL)
            return PL_FAIL(PL_USAGE, "--%s needs a value", param->name);
        pl_status status = pl_param_store(param, group->target, value);
        if (status != PL_OK)
            return pl_context(status, "--%s", param->name);
    }
    if (group->given != NULL)
        group->given[param - group->params] = true;
    return PL_OK;
}

/* "-" is a name (of standard input), "-3" and "-.5" are numbers. */
static bool is_flag(const char *arg)
{
    return arg[0] == '-' && arg[1] != '\0' &&
           strchr("0123456789.", arg[1]) == NULL;
}

pl_status pl_param_parse(const pl_param_group *groups, size_t group_count,
                         int argc, char **argv, char **positional,
                         int *positional_count)
{
    int count = 0;
    bool only_positional = false;
    for (int at = 0, used = 1; at < argc; at += used) {
        char *arg = argv[at];
        used = 1;
        if (only_positional || !is_flag(arg))
            positional[count++] = arg;
        else if (strcmp(arg, "--") == 0)
            only_positional = true;
        else if (arg[1] != '-')
            return pl_param_unknown(groups, group_count, arg);
        else
            PL_TRY(
                parse_flag(groups, group_count, argc - at, argv + at, &used));
    }
    *positional_count = count;
    return PL_OK;
}

const char *pl_param_nearest(const char *word, const char *const *candidates)
{
    const char *nearest = NULL;
    size_t distance = too_far(word);
    for (; *candidates != NULL; candidates++)
        consider(word, *candidates, &nearest, &distance);
    return nearest;
}
