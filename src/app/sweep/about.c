/* about.c - says what a sweep is about, and in which ways its runs differ from
 * the experiment. Other data make results that cannot be compared with the
 * published ones; flags that the user has added are only named, because most
 * (threads, a transport) do not change what is learned. */
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

/* "also with: --threads 1"; --data is spoken of elsewhere. */
static pl_status note_flags(const pl_sweep_plan_opts *opts, pl_json *notes)
{
    pl_buffer text = { 0 };
    for (int i = 0; i < opts->flag_count; i++) {
        if (strncmp(opts->flags[i], "--data=", 7) == 0)
            continue;
        if (strcmp(opts->flags[i], "--data") == 0) {
            i++;
            continue;
        }
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
    pl_buffer_format(&text, "other data: the experiment is about %s (--data)",
                     kind);
    pl_status status = add_note(notes, &text);
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
    PL_TRY_OUT(status, note_flags(opts, notes));
    about.machine_bound = pl_json_length(machine) > 0 ? machine : NULL;
    about.notes = pl_json_length(notes) > 0 ? notes : NULL;
    status = pl_fields_write(&pl_experiment_about_fields, &about, out);
out:
    pl_json_free(notes);
    pl_json_free(machine);
    return status;
}
