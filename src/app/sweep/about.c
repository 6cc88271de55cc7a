/* about.c - describes the experiment of a sweep, and how its runs differ from
 * it.  Results with other data or a shorter training cannot be compared with
 * the published ones; flags that the user added are only listed, because most
 * (threads, a transport) do not change the result. */
#include "app/sweep/about.h"

#include "app/sweep/published.h"
#include "base/buffer.h"
#include "base/json/fields.h"
#include "observe/runs/experiment.h"

#include <string.h>

static pl_status add_note(pl_json *notes, const pl_buffer *text)
{
    PL_TRY(pl_buffer_status(text));
    return pl_json_append_text(notes, text->data);
}

/* "also with: --threads 1" */
static pl_status note_flags(const pl_sweep_plan_opts *opts, pl_json *notes)
{
    pl_buffer text = { 0 };
    if (!pl_json_has(opts->spec, "experiment"))
        return PL_OK; /* nothing to differ from */
    for (int i = 0; i < opts->flag_count; i++) {
        pl_buffer_text(&text, text.bytes > 0 ? " " : "also with: ");
        pl_buffer_text(&text, opts->flags[i]);
    }
    pl_status status = text.bytes > 0 ? add_note(notes, &text) : PL_OK;
    pl_buffer_close(&text);
    return status;
}

static pl_status note_data(const pl_sweep_plan_opts *opts, pl_json *notes,
                           bool *other)
{
    const pl_json *data;
    const char *kind;
    pl_buffer text = { 0 };
    if (pl_sweep_plan_has_data(opts))
        return PL_OK;
    *other = true;
    PL_TRY(pl_json_get_object(opts->spec, "data", &data));
    PL_TRY(pl_json_get_text(data, "kind", &kind));
    pl_buffer_format(&text, "other data: the experiment uses %s (--data)",
                     kind);
    pl_status status = add_note(notes, &text);
    pl_buffer_close(&text);
    return status;
}

/* The spec's value of a flag; "" if it has none. */
static const char *value_before(const pl_json *spec, const char *flag)
{
    const pl_json *flags;
    const char *word, *value = "";
    if (pl_json_get_array(spec, "flags", &flags) != PL_OK)
        return "";
    for (size_t i = 0; i + 1 < pl_json_length(flags); i++)
        if (pl_json_as_text(pl_json_at(flags, i), "", &word) == PL_OK &&
            strcmp(word, flag) == 0 &&
            pl_json_as_text(pl_json_at(flags, i + 1), "", &word) == PL_OK)
            value = word;
    return value;
}

/* "--epochs 2 (not 10)" */
static pl_status put_flags(const pl_json *spec, const pl_json *flags,
                           pl_buffer *text)
{
    const char *flag = "", *word;
    for (size_t i = 0; i < pl_json_length(flags); i++) {
        PL_TRY(pl_json_as_text(pl_json_at(flags, i), "", &word));
        bool names = strncmp(word, "--", 2) == 0;
        const char *before = names ? "" : value_before(spec, flag);
        pl_buffer_format(text, names && i > 0 ? ", %s" : " %s", word);
        if (before[0] != '\0')
            pl_buffer_format(text, " (not %s)", before);
        flag = names ? word : "";
    }
    return PL_OK;
}

/* "; only batch 32, 64"; without the semicolon if nothing precedes it. */
static pl_status put_kept(const pl_json *grid, bool any, pl_buffer *text)
{
    const char *name, *value;
    const pl_json *values;
    void *walk = NULL;
    while (pl_json_next(grid, &walk, &name, &values)) {
        pl_buffer_format(text, "%s only %s", any ? ";" : "", name);
        any = true;
        for (size_t i = 0; i < pl_json_length(values); i++) {
            PL_TRY(pl_json_as_text(pl_json_at(values, i), "", &value));
            pl_buffer_format(text, i > 0 ? ", %s" : " %s", value);
        }
    }
    return PL_OK;
}

/* "quick: --epochs 2 (not 10); only batch 32, 64" */
static pl_status note_quick(const pl_sweep_plan_opts *opts, pl_json *notes,
                            bool *other)
{
    const pl_json *quick, *flags, *grid;
    pl_buffer text = { 0 };
    if (!opts->quick)
        return PL_OK;
    *other = true;
    PL_TRY(pl_json_get_object(opts->spec, "quick", &quick));
    PL_TRY(pl_json_get_array(quick, "flags", &flags));
    PL_TRY(pl_json_get_object(quick, "grid", &grid));
    pl_buffer_text(&text, "quick:");
    pl_status status = put_flags(opts->spec, flags, &text);
    if (status == PL_OK)
        status = put_kept(grid, pl_json_length(flags) > 0, &text);
    if (status == PL_OK)
        status = add_note(notes, &text);
    pl_buffer_close(&text);
    return status;
}

static pl_status get_experiment(const pl_json *spec, pl_experiment_about *about)
{
    const pl_json *experiment;
    if (!pl_json_has(spec, "experiment"))
        return PL_OK;
    PL_TRY(pl_json_get_object(spec, "experiment", &experiment));
    PL_TRY(pl_json_get_text(experiment, "id", &about->experiment));
    return pl_json_get_text(experiment, "question", &about->question);
}

pl_status pl_sweep_about(pl_json **out, const pl_sweep_plan_opts *opts)
{
    pl_experiment_about about = { 0 };
    pl_json *notes = NULL, *machine = NULL;
    pl_status status;
    PL_TRY_OUT(status, get_experiment(opts->spec, &about));
    PL_TRY_OUT(status, pl_published_machine(&machine, opts->spec));
    PL_TRY_OUT(status, pl_json_new_array(&notes));
    PL_TRY_OUT(status, note_data(opts, notes, &about.other));
    PL_TRY_OUT(status, note_quick(opts, notes, &about.other));
    PL_TRY_OUT(status, note_flags(opts, notes));
    about.machine_bound = pl_json_length(machine) > 0 ? machine : NULL;
    about.notes = pl_json_length(notes) > 0 ? notes : NULL;
    status = pl_fields_write(&pl_experiment_about_fields, &about, out);
out:
    pl_json_free(notes);
    pl_json_free(machine);
    return status;
}
