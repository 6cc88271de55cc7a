/* state.c - reads and writes sweep.json, and matches the cells of an earlier
 * start with those of this one, so that a sweep can resume. */
#include "app/sweep/state.h"

#include "base/file/file.h"
#include "base/mem.h"

#include <string.h>

#define FORMAT    1
#define MOST_FILE ((size_t)64 << 20)

static const char *const states[] = { [PL_CELL_WAITING] = "waiting",
                                      [PL_CELL_RUNNING] = "running",
                                      [PL_CELL_DONE] = "done",
                                      [PL_CELL_FAILED] = "failed",
                                      NULL };

/* A plan's cells lack the last three fields. */
static const pl_field cell_rows[] = {
    { "args", PL_FIELD_ANY_LIST(pl_sweep_cell, args) },
    { "name", PL_FIELD_TEXT(pl_sweep_cell, name) },
    { "values", PL_FIELD_ANY_OBJECT(pl_sweep_cell, values),
      .when = PL_WHEN_SET },
    { "repeat", PL_FIELD_INT(pl_sweep_cell, repeat), .when = PL_WHEN_KNOWN },
    { "published", PL_FIELD_ANY_OBJECT(pl_sweep_cell, published),
      .when = PL_WHEN_SET },
    { "state", PL_FIELD_CHOICE(pl_sweep_cell, state, states),
      .when = PL_WHEN_KNOWN },
    { "seconds", PL_FIELD_REAL(pl_sweep_cell, seconds), .when = PL_WHEN_KNOWN },
    { "error", PL_FIELD_OWN_TEXT(pl_sweep_cell, error), .when = PL_WHEN_SET },
};
const pl_fields pl_sweep_cell_fields = PL_FIELDS(pl_sweep_cell, cell_rows);

static const pl_field file_rows[] = {
    { "format", PL_FIELD_INT(pl_sweep_file, format), .least = 1,
      .most = INT64_MAX },
    { "model", PL_FIELD_TEXT(pl_sweep_file, model) },
    { "about", PL_FIELD_ANY_OBJECT(pl_sweep_file, about), .when = PL_WHEN_SET },
    { "cells",
      PL_FIELD_LIST(pl_sweep_file, cells, count, &pl_sweep_cell_fields),
      .most = PL_SWEEP_FILE_CELLS_MAX },
};
const pl_fields pl_sweep_file_fields = PL_FIELDS(pl_sweep_file, file_rows);

/* The fields of a newer format may differ. */
static pl_status check_format(const pl_json *json)
{
    int64_t format;
    PL_TRY(pl_json_get_int(json, "format", 1, INT64_MAX, &format));
    if (format > FORMAT)
        return PL_FAIL(PL_UNSUPPORTED,
                       "written by a newer paceline (format %lld)",
                       (long long)format);
    return PL_OK;
}

/* Read the file; nothing if it does not exist. */
static pl_status read_file(pl_sweep_state *state)
{
    pl_sweep_file *file = &state->others;
    pl_status status =
        pl_json_read_file(&state->own_json, state->path, MOST_FILE);
    if (status == PL_NOTFOUND)
        return PL_OK;
    PL_TRY(status);
    status = check_format(state->own_json);
    if (status == PL_OK)
        status = pl_fields_read(&pl_sweep_file_fields, state->own_json, file);
    if (status != PL_OK)
        return pl_context(status, "%s", state->path);
    if (strcmp(file->model, state->model) != 0)
        return PL_FAIL(PL_USAGE,
                       "%s belongs to a sweep of %s, not of %s; choose "
                       "another --out",
                       state->path, file->model, state->model);
    return PL_OK;
}

static pl_status take_plan(pl_sweep_state *state, const pl_json *plan)
{
    PL_TRY(PL_NEW(state->cells, pl_json_length(plan)));
    for (size_t i = 0; i < pl_json_length(plan); i++) {
        PL_TRY(pl_fields_read(&pl_sweep_cell_fields, pl_json_at(plan, i),
                              &state->cells[i]));
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

/* Move the state of a cell in the file to the plan's cell. */
static pl_status take_state(const pl_sweep_state *state, pl_sweep_cell *cell,
                            pl_sweep_cell *old)
{
    if (old->state != PL_CELL_WAITING && !pl_json_equal(old->args, cell->args))
        return PL_FAIL(PL_USAGE,
                       "%s: the cell %s was run with other flags; choose "
                       "another --out",
                       state->path, cell->name);
    cell->state = old->state;
    cell->seconds = old->seconds;
    pl_mem_free(cell->error); /* a file may name a cell twice */
    cell->error = NULL;
    if (old->state == PL_CELL_FAILED) {
        cell->error = old->error;
        old->error = NULL;
    }
    return PL_OK;
}

/* `others` keeps the cells that the plan does not have. */
static pl_status take_states(pl_sweep_state *state)
{
    PL_TRY(read_file(state));
    pl_sweep_file *file = &state->others;
    size_t kept = 0;
    for (size_t i = 0; i < file->count; i++) {
        pl_sweep_cell *cell = find_cell(state, file->cells[i].name);
        if (cell != NULL)
            PL_TRY(take_state(state, cell, &file->cells[i]));
    }
    for (size_t i = 0; i < file->count; i++) {
        pl_sweep_cell *old = &file->cells[i];
        if (find_cell(state, old->name) == NULL)
            file->cells[kept++] = *old;
        else
            pl_mem_free(old->error);
    }
    file->count = kept;
    return PL_OK;
}

/* A folder that no cell of the sweep created is not ours. */
static pl_status check_folders(const pl_sweep_state *state, const char *out)
{
    for (size_t i = 0; i < state->count; i++) {
        char *path;
        PL_TRY(pl_file_join(&path, out, state->cells[i].name));
        bool there = pl_file_exists(path);
        pl_mem_free(path);
        if (there && state->cells[i].state == PL_CELL_WAITING)
            return PL_FAIL(PL_USAGE,
                           "%s/%s exists, but does not belong to this sweep; "
                           "choose another --out",
                           out, state->cells[i].name);
    }
    return PL_OK;
}

pl_status pl_sweep_state_init(pl_sweep_state *state, const char *out,
                              const char *model, const pl_json *about,
                              const pl_json *plan)
{
    *state = (pl_sweep_state) { .model = model, .about = about };
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&state->path, out, "sweep.json"));
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
        pl_fields_close(&pl_sweep_cell_fields, &state->cells[i]);
    pl_mem_free(state->cells);
    pl_mem_free(state->path);
    pl_fields_close(&pl_sweep_file_fields, &state->others);
    pl_json_free(state->own_json);
    *state = (pl_sweep_state) { 0 };
}

pl_status pl_sweep_state_save(const pl_sweep_state *state)
{
    const pl_sweep_file *others = &state->others;
    pl_sweep_file file = { .format = FORMAT,
                           .model = state->model,
                           .about = state->about };
    char *text;
    PL_TRY(PL_NEW(file.cells, others->count + state->count));
    for (size_t i = 0; i < others->count; i++)
        file.cells[file.count++] = others->cells[i];
    for (size_t i = 0; i < state->count; i++)
        file.cells[file.count++] = state->cells[i];
    pl_status status = pl_fields_text(&pl_sweep_file_fields, &file, 1, &text);
    pl_mem_free(file.cells);
    PL_TRY(status);
    status = pl_file_replace(state->path, text, strlen(text));
    pl_mem_free(text);
    return status;
}
