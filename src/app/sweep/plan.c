/* Design.  A grid is traversed like the digits of a number, the last axis
 * fastest.  A cell has the flags of all cells, followed by its own.
 *
 * Two rules keep grids over clusters short.  A cell with a mode, but neither ps
 * nor strategy, gets one parameter server, as only parameter servers have
 * modes. workers=0 is one process that trains alone: all flags of a cluster are
 * left out, and only one of the resulting equal cells is made. */
#include "app/sweep/plan.h"

#include "app/options/options_priv.h"
#include "app/sweep/published.h"
#include "app/task/part.h"
#include "base/buffer.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define AXES_MOST  16
#define NAME_BYTES 64 /* of a flag */

typedef struct axis {
    const char *name;
    const pl_json *values;
    const pl_param *param;
    size_t at; /* index of its current value */
} axis;

typedef struct planner {
    const pl_sweep_plan_opts *opts;
    pl_options *options; /* of the current cell */
    pl_json *cells;
    pl_json *kept;       /* copies of the cells that a quick sweep keeps */
    const pl_json *only; /* {flag: values} of a quick sweep; NULL: all */
    axis axes[AXES_MOST];
    size_t axis_count;
    const char **words; /* flags of all cells */
    size_t word_count;
    int64_t repeat;
    pl_publisher publisher;
} planner;

static bool names_flag(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, "--", 2) == 0 &&
           strncmp(word + 2, name, length) == 0 &&
           (word[2 + length] == '\0' || word[2 + length] == '=');
}

static bool has_word(const planner *p, const char *name)
{
    for (size_t i = 0; i < p->word_count; i++)
        if (names_flag(p->words[i], name))
            return true;
    return false;
}

static const char *value_of(const axis *a)
{
    const char *text = "";
    return pl_json_as_text(pl_json_at(a->values, a->at), a->name, &text) ==
                   PL_OK
               ? text
               : "";
}

static const axis *find_axis(const planner *p, const char *name)
{
    for (size_t i = 0; i < p->axis_count; i++)
        if (strcmp(p->axes[i].name, name) == 0)
            return &p->axes[i];
    return NULL;
}

/* The flag of train with the name name[0 .. length-1]; NULL: none. */
static const pl_param *find_param(const planner *p, const char *name,
                                  size_t length)
{
    const pl_options *options = p->options;
    char whole[NAME_BYTES];
    if (length >= sizeof whole)
        return NULL;
    memcpy(whole, name, length);
    whole[length] = '\0';
    return pl_param_find(options->groups, options->group_count, whole);
}

/* True for flags that are not for one process that trains alone. */
static bool is_of_cluster(const pl_param *param)
{
    static const pl_param_fact single = { "strategy", "single" };
    return (param->traits & PL_OPTION_TASKS) != 0 ||
           !pl_param_applies(param,
                             &(pl_param_facts) { .list = &single, .count = 1 });
}

static bool trains_alone(const planner *p)
{
    const axis *workers = find_axis(p, "workers");
    return workers != NULL && strcmp(value_of(workers), "0") == 0;
}

/* The flags of all cells; without a cluster's flags for one that trains
 * alone. */
static pl_status add_words(const planner *p, pl_json *args)
{
    bool alone = trains_alone(p);
    for (size_t i = 0; i < p->word_count; i++) {
        const char *word = p->words[i];
        const char *name = strncmp(word, "--", 2) == 0 ? word + 2 : "";
        size_t length = strcspn(name, "=");
        const pl_param *param = find_param(p, name, length);
        if (!alone || param == NULL || !is_of_cluster(param))
            PL_TRY(pl_json_append_text(args, word));
        else if (param->kind != PL_PARAM_FLAG && name[length] == '\0')
            i++; /* its value */
    }
    return PL_OK;
}

static pl_status add_flag(pl_json *args, const char *name, const char *value)
{
    char *word;
    PL_TRY(pl_mem_format(&word, "--%s", name));
    pl_status status = pl_json_append_text(args, word);
    pl_mem_free(word);
    if (status == PL_OK && value != NULL)
        status = pl_json_append_text(args, value);
    return status;
}

static pl_status add_axes(const planner *p, pl_json *args)
{
    bool alone = trains_alone(p);
    for (size_t i = 0; i < p->axis_count; i++) {
        const axis *a = &p->axes[i];
        const char *value = value_of(a);
        if (alone && is_of_cluster(a->param))
            continue;
        if (a->param->kind != PL_PARAM_FLAG)
            PL_TRY(add_flag(args, a->name, value));
        else if (strcmp(value, "true") == 0)
            PL_TRY(add_flag(args, a->name, NULL));
        else if (strcmp(value, "false") != 0)
            return PL_FAIL(PL_USAGE, "%s=%s: expected true or false", a->name,
                           value);
    }
    return PL_OK;
}

static bool is_set(const planner *p, const char *name)
{
    return has_word(p, name) || find_axis(p, name) != NULL;
}

static pl_status add_server(const planner *p, pl_json *args)
{
    if (trains_alone(p) || !is_set(p, "mode") || is_set(p, "ps") ||
        is_set(p, "strategy"))
        return PL_OK;
    return add_flag(args, "ps", "1");
}

/* Characters that are safe in the name of a folder. */
static void put_plain(pl_buffer *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-";
    for (; *text != '\0'; text++)
        pl_buffer_put(out, strchr(plain, *text) != NULL ? text : "-", 1);
}

/* "mode-sync_batch-10_workers-2"; "single_batch-10" */
static void put_name(const planner *p, int64_t repeat, pl_buffer *out)
{
    bool alone = trains_alone(p);
    if (alone)
        pl_buffer_text(out, "single");
    for (size_t i = 0; i < p->axis_count; i++) {
        const axis *a = &p->axes[i];
        if (alone && is_of_cluster(a->param))
            continue;
        pl_buffer_text(out, out->bytes > 0 ? "_" : "");
        put_plain(out, a->name);
        pl_buffer_text(out, "-");
        put_plain(out, value_of(a));
    }
    if (out->bytes == 0)
        pl_buffer_text(out, "all");
    if (p->repeat > 1)
        pl_buffer_format(out, "_r%lld", (long long)repeat);
}

/* Parse the cell's flags as `train` does. */
static pl_status check_args(planner *p, const pl_json *args)
{
    size_t count = pl_json_length(args);
    char **argv;
    pl_part part = { 0 };
    PL_TRY(PL_NEW(argv, count + 1));
    pl_status status = pl_options_init(p->options, p->opts->model);
    if (status != PL_OK) {
        pl_mem_free(argv);
        return status;
    }
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        const char *text;
        status = pl_json_as_text(pl_json_at(args, i), "args", &text);
        argv[i] = (char *)text; /* parsing does not modify it */
    }
    if (status == PL_OK)
        status = pl_options_parse(p->options, (int)count, argv);
    if (status == PL_OK)
        status = pl_part_init(&part, p->options, NULL);
    if (status == PL_OK)
        status = pl_options_resolve(p->options);
    pl_part_close(&part);
    pl_options_close(p->options);
    pl_mem_free(argv);
    return status;
}

static pl_status make_args(planner *p, int64_t repeat, pl_json **out)
{
    char seed[32];
    pl_json *args;
    PL_TRY(pl_json_new_array(&args));
    pl_status status;
    PL_TRY_OUT(status, add_words(p, args));
    PL_TRY_OUT(status, add_axes(p, args));
    PL_TRY_OUT(status, add_server(p, args));
    PL_TRY_OUT(status, check_args(p, args));
    if (p->repeat > 1) {
        snprintf(seed, sizeof seed, "%lld",
                 (long long)(p->options->train.seed + repeat - 1));
        PL_TRY_OUT(status, add_flag(args, "seed", seed));
    }
    *out = args;
    return PL_OK;
out:
    pl_json_free(args);
    return status;
}

static pl_status make_values(const planner *p, pl_json **out)
{
    pl_json *values;
    PL_TRY(pl_json_new_object(&values));
    pl_status status = PL_OK;
    for (size_t i = 0; i < p->axis_count && status == PL_OK; i++)
        status =
            pl_json_set_text(values, p->axes[i].name, value_of(&p->axes[i]));
    if (status == PL_OK)
        *out = values;
    else
        pl_json_free(values);
    return status;
}

/* *same: an equal cell exists.  PL_USAGE when a different cell has its name. */
static pl_status look_for(const planner *p, const char *name,
                          const pl_json *args, bool *same)
{
    *same = false;
    for (size_t i = 0; i < pl_json_length(p->cells); i++) {
        const pl_json *cell = pl_json_at(p->cells, i), *others;
        const char *other;
        PL_TRY(pl_json_get_text(cell, "name", &other));
        PL_TRY(pl_json_get_array(cell, "args", &others));
        *same = *same || pl_json_equal(args, others);
        if (!pl_json_equal(args, others) && strcmp(name, other) == 0)
            return PL_FAIL(PL_USAGE,
                           "another cell of this name has other "
                           "flags; make the cells differ in the grid");
    }
    return PL_OK;
}

/* True if, for each flag of the line quick, the cell has one of its values. */
static pl_status is_kept(const planner *p, bool *out)
{
    *out = true;
    for (size_t i = 0; i < p->axis_count; i++) {
        const axis *a = &p->axes[i];
        const pl_json *values;
        bool found = false;
        if (p->only == NULL || !pl_json_has(p->only, a->name))
            continue;
        PL_TRY(pl_json_get_array(p->only, a->name, &values));
        for (size_t k = 0; k < pl_json_length(values); k++)
            found = found || pl_json_equal(pl_json_at(values, k),
                                           pl_json_at(a->values, a->at));
        *out = *out && found;
    }
    return PL_OK;
}

static pl_status keep_cell(const planner *p, const pl_json *cell)
{
    pl_json *copy;
    bool kept;
    PL_TRY(is_kept(p, &kept));
    if (!kept)
        return PL_OK;
    PL_TRY(pl_json_copy(&copy, cell));
    return pl_json_append_take(p->kept, copy);
}

static pl_status append_cell(planner *p, const char *name, int64_t repeat,
                             pl_json *args)
{
    pl_json *cell, *values = NULL;
    bool same;
    pl_status status = look_for(p, name, args, &same);
    if (status == PL_OK && !same)
        status = pl_json_new_object(&cell);
    if (status != PL_OK || same) {
        pl_json_free(args);
        return status;
    }
    status = pl_json_set_take(cell, "args", args);
    if (status == PL_OK)
        status = pl_json_set_text(cell, "name", name);
    if (status == PL_OK)
        status = make_values(p, &values);
    if (status == PL_OK)
        status = pl_publisher_deal(&p->publisher, values, repeat > 1, cell);
    if (status == PL_OK)
        status = pl_json_set_take(cell, "values", values);
    else
        pl_json_free(values);
    if (status == PL_OK)
        status = pl_json_set_int(cell, "repeat", repeat);
    if (status == PL_OK)
        status = keep_cell(p, cell);
    if (status != PL_OK) {
        pl_json_free(cell);
        return status;
    }
    return pl_json_append_take(p->cells, cell);
}

static pl_status add_cell(planner *p, int64_t repeat)
{
    pl_buffer name = { 0 };
    pl_json *args = NULL;
    put_name(p, repeat, &name);
    pl_status status = pl_buffer_status(&name);
    if (status == PL_OK) {
        status = make_args(p, repeat, &args);
        if (status == PL_OK)
            status = append_cell(p, name.data, repeat, args);
        if (status != PL_OK && status != PL_NOMEM)
            status = pl_context(status, "cell %s", name.data);
    }
    pl_buffer_close(&name);
    if (status == PL_OK && pl_json_length(p->cells) > PL_SWEEP_CELLS_MOST)
        return PL_FAIL(PL_USAGE, "more than %d cells", PL_SWEEP_CELLS_MOST);
    return status;
}

/* False after the last combination. */
static bool next_combination(planner *p)
{
    for (size_t i = p->axis_count; i-- > 0;) {
        axis *a = &p->axes[i];
        if (++a->at < pl_json_length(a->values))
            return true;
        a->at = 0;
    }
    return false;
}

static pl_status unknown_name(const planner *p, const char *name)
{
    const pl_options *options = p->options;
    const char *names[PL_OPTION_GROUPS * PL_OPTION_MOST + 1];
    size_t count = 0;
    for (size_t g = 0; g < options->group_count; g++)
        for (size_t i = 0; i < options->groups[g].count; i++)
            names[count++] = options->groups[g].params[i].name;
    names[count] = NULL;
    const char *near = pl_param_nearest(name, names);
    return PL_FAIL(PL_USAGE, "grid: %.80s is not a flag of train%s%s%s", name,
                   near != NULL ? "; did you mean " : "",
                   near != NULL ? near : "", near != NULL ? "?" : "");
}

static pl_status check_axis(const planner *p, axis *a)
{
    const pl_options *options = p->options;
    a->param = pl_param_find(options->groups, options->group_count, a->name);
    if (a->param == NULL)
        return unknown_name(p, a->name);
    if ((a->param->traits & PL_OPTION_NOT_SWEPT) != 0)
        return PL_FAIL(PL_USAGE, "grid: --%s cannot be part of a sweep",
                       a->name);
    if (has_word(p, a->name))
        return PL_FAIL(PL_USAGE,
                       "--%s is in the grid and among the flags; leave out one",
                       a->name);
    if (p->repeat > 1 && (a->param->traits & PL_PARAM_REPEATS) != 0)
        return PL_FAIL(PL_USAGE,
                       "%s is in the grid, but repeated cells get their own "
                       "seeds; leave out one",
                       a->name);
    return PL_OK;
}

static pl_status add_grid(planner *p, const pl_json *grid)
{
    const char *name;
    const pl_json *values;
    void *walk = NULL;
    p->axis_count = 0;
    while (pl_json_next(grid, &walk, &name, &values)) {
        if (p->axis_count == AXES_MOST)
            return PL_FAIL(PL_USAGE, "a grid of more than %d flags", AXES_MOST);
        axis *a = &p->axes[p->axis_count];
        *a = (axis) { .name = name, .values = values };
        PL_TRY(check_axis(p, a));
        p->axis_count++;
    }
    do
        for (int64_t r = 1; r <= p->repeat; r++)
            PL_TRY(add_cell(p, r));
    while (next_combination(p));
    return PL_OK;
}

static bool is_of_kind(const char *source, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(source, kind, length) == 0 && source[length] == ':';
}

/* The data of the kind that the spec requires, and its flags. */
static const char *wanted_data(const pl_sweep_plan_opts *opts,
                               const pl_json **flags)
{
    const pl_json *data;
    const char *kind, *given = opts->data;
    if (!pl_json_has(opts->spec, "data") ||
        pl_json_get_object(opts->spec, "data", &data) != PL_OK ||
        pl_json_get_text(data, "kind", &kind) != PL_OK ||
        pl_json_get_array(data, "flags", flags) != PL_OK)
        return NULL;
    return given != NULL && is_of_kind(given, kind) ? given : NULL;
}

/* The line quick: its flags, and the part of the grids that it keeps. */
static pl_status get_quick(const planner *p, const pl_json **flags,
                           const pl_json **only)
{
    const pl_json *quick;
    if (!pl_json_has(p->opts->spec, "quick"))
        return PL_FAIL(PL_USAGE, "no quick line; expected one that defines "
                                 "the shortened sweep");
    PL_TRY(pl_json_get_object(p->opts->spec, "quick", &quick));
    PL_TRY(pl_json_get_array(quick, "flags", flags));
    return pl_json_get_object(quick, "grid", only);
}

static bool in_grids(const pl_json *grids, const char *name,
                     const pl_json *value)
{
    const pl_json *values;
    for (size_t i = 0; i < pl_json_length(grids); i++) {
        const pl_json *grid = pl_json_at(grids, i);
        if (!pl_json_has(grid, name) ||
            pl_json_get_array(grid, name, &values) != PL_OK)
            continue;
        for (size_t k = 0; k < pl_json_length(values); k++)
            if (pl_json_equal(value, pl_json_at(values, k)))
                return true;
    }
    return false;
}

static pl_status check_only(const planner *p, const pl_json *grids)
{
    const char *name, *value;
    const pl_json *values;
    void *walk = NULL;
    while (pl_json_next(p->only, &walk, &name, &values))
        for (size_t i = 0; i < pl_json_length(values); i++) {
            PL_TRY(pl_json_as_text(pl_json_at(values, i), name, &value));
            if (!in_grids(grids, name, pl_json_at(values, i)))
                return PL_FAIL(PL_USAGE, "quick: %s=%s is in no grid", name,
                               value);
        }
    return PL_OK;
}

static pl_status put_words(planner *p, const pl_json *flags)
{
    for (size_t i = 0; i < pl_json_length(flags); i++)
        PL_TRY(pl_json_as_text(pl_json_at(flags, i), "flags",
                               &p->words[p->word_count++]));
    return PL_OK;
}

/* If a flag is given twice, the last one counts: the spec's come first, the
 * user's last. */
static pl_status gather_words(planner *p)
{
    const pl_sweep_plan_opts *opts = p->opts;
    const pl_json *flags, *with = NULL, *quick = NULL;
    const char *data = wanted_data(opts, &with);
    PL_TRY(pl_json_get_array(opts->spec, "flags", &flags));
    if (opts->quick)
        PL_TRY(get_quick(p, &quick, &p->only));
    size_t room = pl_json_length(flags) + pl_json_length(with) +
                  pl_json_length(quick) + (size_t)opts->flag_count + 3;
    PL_TRY(PL_NEW(p->words, room));
    PL_TRY(put_words(p, flags));
    if (data != NULL) {
        p->words[p->word_count++] = "--data";
        p->words[p->word_count++] = data;
        PL_TRY(put_words(p, with));
    }
    PL_TRY(put_words(p, quick));
    for (int i = 0; i < opts->flag_count; i++)
        p->words[p->word_count++] = opts->flags[i];
    for (size_t i = 0; i < p->word_count; i++) {
        const char *word = p->words[i];
        const pl_param *param =
            strncmp(word, "--", 2) == 0
                ? find_param(p, word + 2, strcspn(word + 2, "="))
                : NULL;
        if (param != NULL && (param->traits & PL_OPTION_NOT_SWEPT) != 0)
            return PL_FAIL(PL_USAGE, "--%s cannot be part of a sweep",
                           param->name);
    }
    return PL_OK;
}

static pl_status plan(planner *p)
{
    const pl_json *grids;
    PL_TRY(pl_json_get_int(p->opts->spec, "repeat", 1, PL_SWEEP_CELLS_MOST,
                           &p->repeat));
    if (p->opts->repeat > 0)
        p->repeat = p->opts->repeat;
    /* Only the tables are needed, for the names. */
    PL_TRY(pl_options_init(p->options, p->opts->model));
    pl_options_close(p->options);
    PL_TRY(gather_words(p));
    PL_TRY(pl_publisher_init(&p->publisher, p->opts->spec));
    PL_TRY(pl_json_get_array(p->opts->spec, "grids", &grids));
    if (p->only != NULL)
        PL_TRY(check_only(p, grids));
    for (size_t i = 0; i < pl_json_length(grids); i++)
        PL_TRY(add_grid(p, pl_json_at(grids, i)));
    if (pl_json_length(p->kept) == 0)
        return PL_FAIL(PL_USAGE,
                       "quick: no cell of the grids has these values");
    return pl_publisher_finish(&p->publisher);
}

pl_status pl_sweep_plan(pl_json **out, const pl_sweep_plan_opts *opts)
{
    planner *p;
    PL_TRY(PL_NEW(p, 1));
    p->opts = opts;
    pl_status status = PL_NEW(p->options, 1);
    if (status == PL_OK)
        status = pl_json_new_array(&p->cells);
    if (status == PL_OK)
        status = pl_json_new_array(&p->kept);
    if (status == PL_OK)
        status = plan(p);
    if (status == PL_OK)
        *out = p->kept;
    else
        pl_json_free(p->kept);
    pl_json_free(p->cells);
    pl_publisher_close(&p->publisher);
    pl_mem_free(p->words);
    pl_mem_free(p->options);
    pl_mem_free(p);
    return status;
}

bool pl_sweep_plan_has_data(const pl_sweep_plan_opts *opts)
{
    const pl_json *flags;
    return !pl_json_has(opts->spec, "data") ||
           wanted_data(opts, &flags) != NULL;
}
