#include "cli/sweep_state.h"

#include "base/file.h"
#include "base/mem.h"

#include <string.h>

#define FORMAT    1
#define MOST_FILE ((size_t)64 << 20)

static const char *const names[] = { "waiting", "running", "done", "failed" };

static pl_status read_file(const pl_sweep_state *state, pl_json **out)
{
    int64_t format;
    const char *model;
    pl_json *json = NULL;
    *out = NULL;
    pl_status status = pl_json_read_file(&json, state->path, MOST_FILE);
    if (status == PL_NOTFOUND)
        return PL_OK;
    if (status == PL_OK)
        status = pl_json_get_int(json, "format", 1, INT64_MAX, &format);
    if (status == PL_OK && format > FORMAT)
        status = PL_FAIL(PL_UNSUPPORTED,
                         "%s was written by a newer paceline (format %lld)",
                         state->path, (long long)format);
    if (status == PL_OK)
        status = pl_json_get_text(json, "model", &model);
    if (status == PL_OK && strcmp(model, state->model) != 0)
        status = PL_FAIL(PL_USAGE,
                         "%s is of a sweep of %s, not of %s; choose another "
                         "--out",
                         state->path, model, state->model);
    if (status != PL_OK) {
        pl_json_free(json);
        return status;
    }
    *out = json;
    return PL_OK;
}

static pl_status take_plan(pl_sweep_state *state, const pl_json *plan)
{
    PL_TRY(PL_NEW(state->cells, pl_json_length(plan)));
    for (size_t i = 0; i < pl_json_length(plan); i++) {
        pl_sweep_cell *cell = &state->cells[i];
        cell->plan = pl_json_at(plan, i);
        PL_TRY(pl_json_get_text(cell->plan, "name", &cell->name));
        state->count++;
    }
    return PL_OK;
}

static pl_sweep_cell *find_cell(pl_sweep_state *state, const char *name)
{
    for (size_t i = 0; i < state->count; i++)
        if (strcmp(state->cells[i].name, name) == 0)
            return &state->cells[i];
    return NULL;
}

static pl_status keep_other(pl_sweep_state *state, const pl_json *old)
{
    pl_json *copy;
    PL_TRY(pl_json_copy(&copy, old));
    return pl_json_append_take(state->others, copy);
}

static pl_status take_state(pl_sweep_state *state, const pl_json *old)
{
    const char *name, *word, *error;
    const pl_json *then, *now;
    PL_TRY(pl_json_get_text(old, "name", &name));
    pl_sweep_cell *cell = find_cell(state, name);
    if (cell == NULL)
        return keep_other(state, old);
    PL_TRY(pl_json_get_array(old, "args", &then));
    PL_TRY(pl_json_get_array(cell->plan, "args", &now));
    PL_TRY(pl_json_get_text(old, "state", &word));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], word) == 0)
            cell->state = (pl_cell_state)i;
    if (cell->state != PL_CELL_WAITING && !pl_json_equal(then, now))
        return PL_FAIL(PL_USAGE,
                       "%s: the cell %s was run with other flags; choose "
                       "another --out",
                       state->path, name);
    if (pl_json_has(old, "seconds"))
        PL_TRY(pl_json_get_real(old, "seconds", &cell->seconds));
    if (cell->state != PL_CELL_FAILED || !pl_json_has(old, "error"))
        return PL_OK;
    PL_TRY(pl_json_get_text(old, "error", &error));
    return pl_mem_copy_text(&cell->error, error);
}

static pl_status take_states(pl_sweep_state *state)
{
    const pl_json *cells;
    pl_json *file;
    PL_TRY(read_file(state, &file));
    if (file == NULL)
        return PL_OK;
    pl_status status = pl_json_get_array(file, "cells", &cells);
    for (size_t i = 0; status == PL_OK && i < pl_json_length(cells); i++)
        status = take_state(state, pl_json_at(cells, i));
    pl_json_free(file);
    return status == PL_OK || status == PL_USAGE
               ? status
               : pl_context(status, "%s", state->path);
}

/* A folder that no cell of the sweep has made is somebody else's. */
static pl_status check_folders(const pl_sweep_state *state, const char *out)
{
    for (size_t i = 0; i < state->count; i++) {
        char *path;
        PL_TRY(pl_file_join(&path, out, state->cells[i].name));
        bool there = pl_file_exists(path);
        pl_mem_free(path);
        if (there && state->cells[i].state == PL_CELL_WAITING)
            return PL_FAIL(PL_USAGE,
                           "%s/%s is there, but not of this sweep; choose "
                           "another --out",
                           out, state->cells[i].name);
    }
    return PL_OK;
}

pl_status pl_sweep_state_init(pl_sweep_state *state, const char *out,
                              const char *model, const pl_json *plan)
{
    *state = (pl_sweep_state) { .model = model };
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&state->path, out, "sweep.json"));
    PL_TRY_OUT(status, pl_json_new_array(&state->others));
    PL_TRY_OUT(status, take_plan(state, plan));
    PL_TRY_OUT(status, take_states(state));
    status = check_folders(state, out);
out:
    if (status != PL_OK)
        pl_sweep_state_close(state);
    return status;
}

void pl_sweep_state_close(pl_sweep_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        pl_mem_free(state->cells[i].error);
    pl_mem_free(state->cells);
    pl_mem_free(state->path);
    pl_json_free(state->others);
    *state = (pl_sweep_state) { 0 };
}

static pl_status add_cell(pl_json *list, const pl_sweep_cell *cell)
{
    pl_json *copy;
    PL_TRY(pl_json_copy(&copy, cell->plan));
    pl_status status = pl_json_set_text(copy, "state", names[cell->state]);
    if (status == PL_OK)
        status = pl_json_set_real(copy, "seconds", cell->seconds);
    if (status == PL_OK && cell->error != NULL)
        status = pl_json_set_text(copy, "error", cell->error);
    if (status != PL_OK) {
        pl_json_free(copy);
        return status;
    }
    return pl_json_append_take(list, copy);
}

static pl_status make_list(const pl_sweep_state *state, pl_json **out)
{
    pl_json *list;
    PL_TRY(pl_json_copy(&list, state->others));
    pl_status status = PL_OK;
    for (size_t i = 0; i < state->count && status == PL_OK; i++)
        status = add_cell(list, &state->cells[i]);
    if (status == PL_OK)
        *out = list;
    else
        pl_json_free(list);
    return status;
}

pl_status pl_sweep_state_save(const pl_sweep_state *state)
{
    pl_json *json, *list;
    char *text = NULL;
    PL_TRY(pl_json_new_object(&json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_set_int(json, "format", FORMAT));
    PL_TRY_OUT(status, pl_json_set_text(json, "model", state->model));
    PL_TRY_OUT(status, make_list(state, &list));
    PL_TRY_OUT(status, pl_json_set_take(json, "cells", list));
    PL_TRY_OUT(status, pl_json_text(json, 1, &text));
    status = pl_file_replace(state->path, text, strlen(text));
out:
    pl_mem_free(text);
    pl_json_free(json);
    return status;
}
