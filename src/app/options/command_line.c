/* The command line of a task, rebuilt from the parameter table: which flags are
 * passed on as given, which are filled in, and which stay with the parent. */
#include "app/options/command_line.h"

#include "app/options/options_priv.h"
#include "base/mem.h"
#include "nn/model.h"

#include <string.h>

#define VALUE_BYTES 64 /* of a number or a choice as text */
/* Every flag with a value, and the words before and after them. */
#define ARGS_MOST ((size_t)(2 * PL_OPTION_GROUPS * PL_OPTION_MOST + 8))

pl_status pl_command_line_add(pl_command_line *line, const char *word)
{
    PL_TRY(pl_mem_copy_text(&line->argv[line->count], word));
    line->count++;
    return PL_OK;
}

/* "--name value"; as one word when the value looks like a flag. */
static pl_status add_value(pl_command_line *line, const char *name,
                           const char *value)
{
    bool joined = strncmp(value, "--", 2) == 0;
    PL_TRY(pl_mem_format(&line->argv[line->count], "--%s%s%s", name,
                         joined ? "=" : "", joined ? value : ""));
    line->count++;
    return joined ? PL_OK : pl_command_line_add(line, value);
}

pl_status pl_command_line_number(pl_command_line *line, const char *name,
                                 int64_t number)
{
    char text[VALUE_BYTES];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return add_value(line, name, text);
}

static pl_status add_param(pl_command_line *line, const pl_param *param,
                           const void *target)
{
    const char *field = (const char *)target + param->offset;
    char room[VALUE_BYTES];
    if (param->kind == PL_PARAM_FLAG) {
        char name[VALUE_BYTES];
        snprintf(name, sizeof name, "--%s", param->name);
        return *(const bool *)field ? pl_command_line_add(line, name) : PL_OK;
    }
    if (param->kind == PL_PARAM_TEXT) {
        const char *text = *(const char *const *)field;
        return text == NULL ? PL_OK : add_value(line, param->name, text);
    }
    pl_param_value_text(param, target, room, sizeof room);
    return room[0] == '\0' ? PL_OK : add_value(line, param->name, room);
}

/* Flags that were given, and flags that tasks cannot fill in, where those have
 * an effect: elsewhere they would be refused. */
static bool is_wanted(const pl_param *param, bool given,
                      const pl_param_facts *facts)
{
    if ((param->traits & PL_OPTION_NOT_FORWARDED) != 0)
        return false;
    return given || ((param->traits & PL_OPTION_FILLED) != 0 &&
                     pl_param_applies(param, facts));
}

static pl_status fill(pl_command_line *line, const pl_options *options,
                      const char *program, const char *run)
{
    PL_TRY(pl_command_line_add(line, program));
    PL_TRY(pl_command_line_add(line, "train"));
    PL_TRY(pl_command_line_add(line, pl_model_word(options->model)));
    PL_TRY(add_value(line, "run", run));
    pl_param_facts facts = pl_options_facts(options);
    for (size_t g = 0; g < options->group_count; g++) {
        const pl_param_group *group = &options->groups[g];
        for (size_t i = 0; i < group->count; i++)
            if (is_wanted(&group->params[i], group->given[i], &facts))
                PL_TRY(add_param(line, &group->params[i], group->target));
    }
    return PL_OK;
}

pl_status pl_command_line_init(pl_command_line *line, const pl_options *options,
                               const char *program, const char *run)
{
    *line = (pl_command_line) { 0 };
    PL_TRY(PL_NEW(line->argv, ARGS_MOST));
    pl_status status = fill(line, options, program, run);
    if (status != PL_OK)
        pl_command_line_close(line);
    return status;
}

int pl_command_line_kept(const pl_options *options, int argc, char **argv)
{
    char name[VALUE_BYTES];
    size_t length = strncmp(argv[0], "--", 2) == 0 ? strcspn(argv[0], "=") : 0;
    if (length < 3 || length - 2 >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)length - 2, argv[0] + 2);
    const pl_param *param =
        pl_param_find(options->groups, options->group_count, name);
    if (param == NULL || (param->traits & PL_OPTION_LAUNCH) == 0)
        return 0;
    bool apart = argv[0][length] == '\0' && param->kind != PL_PARAM_FLAG;
    return apart && argc > 1 ? 2 : 1;
}

void pl_command_line_close(pl_command_line *line)
{
    for (size_t i = 0; i < line->count; i++)
        pl_mem_free(line->argv[i]);
    pl_mem_free(line->argv);
    *line = (pl_command_line) { 0 };
}
