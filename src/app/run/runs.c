/* runs.c - reads the runs that a command's arguments name, and warns about
 * unreadable ones. */
#include "app/run/runs.h"

#include "app/options/options.h"
#include "base/log.h"
#include "nn/model.h"

#include <string.h>

static pl_status warn(const pl_records *records)
{
    for (size_t i = 0; i < pl_json_length(records->left_out); i++) {
        const char *why;
        PL_TRY(pl_json_get_text(pl_json_at(records->left_out, i), "why", &why));
        pl_log(PL_LOG_WARN, "%s; left out", why);
    }
    return PL_OK;
}

/* The own flags of the built-in models. */
static void know_own_flags(pl_record *record)
{
    for (const pl_model *const *m = pl_model_list(); *m != NULL; m++)
        if (strcmp((*m)->name, record->run.model) == 0) {
            record->own_flags = (*m)->params;
            record->own_flag_count = (*m)->param_count;
        }
}

pl_status pl_runs_open(pl_records *records, char *const *paths, size_t count)
{
    PL_TRY(pl_records_init(records, paths, count));
    records->flags = pl_options_flags(&records->flag_groups);
    for (size_t i = 0; i < records->count; i++)
        know_own_flags(&records->list[i]);
    return PL_OK;
}

pl_status pl_runs_read(pl_records *records, const pl_words *words)
{
    PL_TRY(pl_runs_open(records, words->list, (size_t)words->count));
    pl_status status = warn(records);
    if (status == PL_OK && records->count == 0)
        status = PL_FAIL(PL_FORMAT, "there is no run to show");
    if (status != PL_OK)
        pl_records_close(records);
    return status;
}
