/* experiment.c - finds the sweep of each run by its folder, and reads what
 * sweep.json contains about it. An unreadable sweep.json loses only that, not
 * the runs. */
#include "observe/runs/experiment.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/json/fields.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_FILE ((size_t)64 << 20)

static const pl_field about_rows[] = {
    { "experiment", PL_FIELD_TEXT(pl_experiment_about, experiment),
      .when = PL_WHEN_SET },
    { "question", PL_FIELD_TEXT(pl_experiment_about, question),
      .when = PL_WHEN_SET },
    { "machine_bound", PL_FIELD_ANY_LIST(pl_experiment_about, machine_bound),
      .when = PL_WHEN_SET },
    { "notes", PL_FIELD_ANY_LIST(pl_experiment_about, notes),
      .when = PL_WHEN_SET },
    { "other", PL_FIELD_BOOL(pl_experiment_about, other), .when = PL_WHEN_SET },
};
const pl_fields pl_experiment_about_fields =
    PL_FIELDS(pl_experiment_about, about_rows);

/* --- reading ---------------------------------------------------------- */

static const char *cell_name(const pl_record *record)
{
    const char *slash = strrchr(record->path, '/');
    return slash != NULL ? slash + 1 : record->path;
}

static pl_status folder_of(const pl_record *record, char **out)
{
    const char *name = cell_name(record);
    if (name == record->path)
        return pl_mem_copy_text(out, ".");
    int length = (int)(name - record->path) - 1;
    return pl_mem_format(out, "%.*s", length > 0 ? length : 1, record->path);
}

static pl_status read_about(pl_experiment *e)
{
    const pl_json *about;
    char *path;
    PL_TRY(pl_file_join(&path, e->folder, "sweep.json"));
    pl_status status = pl_json_read_file(&e->own_json, path, MOST_FILE);
    if (status == PL_OK && pl_json_has(e->own_json, "about")) {
        status = pl_json_get_object(e->own_json, "about", &about);
        if (status == PL_OK)
            status =
                pl_fields_read(&pl_experiment_about_fields, about, &e->about);
    }
    if (status != PL_OK && status != PL_NOTFOUND && status != PL_NOMEM) {
        pl_error why;
        pl_error_save(&why, status);
        why.message[pl_error_words(why.message)] = '\0';
        pl_log(PL_LOG_WARN, "%s: %s; published values are not shown", path,
               why.message);
        pl_json_free(e->own_json);
        e->own_json = NULL;
        e->about = (pl_experiment_about) { 0 };
    }
    pl_mem_free(path);
    return status == PL_NOMEM ? status : PL_OK;
}

/* The runs of a folder share one. */
static pl_status find_experiment(pl_records *records, const pl_record *record,
                                 pl_experiment **out)
{
    char *folder;
    pl_experiment *e;
    PL_TRY(folder_of(record, &folder));
    for (e = records->experiments; e != NULL; e = e->next)
        if (strcmp(e->folder, folder) == 0)
            break;
    pl_status status = PL_OK;
    if (e == NULL) {
        status = PL_NEW(e, 1);
        if (status == PL_OK) {
            *e = (pl_experiment) { records->experiments, .folder = folder };
            records->experiments = e;
            folder = NULL;
            status = read_about(e);
        }
    }
    pl_mem_free(folder);
    if (status == PL_OK)
        *out = e;
    return status;
}

static void look_up(const pl_experiment *e, pl_record *record)
{
    const pl_json *cells, *published;
    const char *name;
    if (!pl_json_has(e->own_json, "cells") ||
        pl_json_get_array(e->own_json, "cells", &cells) != PL_OK)
        return;
    for (size_t i = 0; i < pl_json_length(cells); i++) {
        const pl_json *cell = pl_json_at(cells, i);
        if (!pl_json_has(cell, "published") ||
            pl_json_get_text(cell, "name", &name) != PL_OK ||
            strcmp(name, cell_name(record)) != 0 ||
            pl_json_get_object(cell, "published", &published) != PL_OK)
            continue;
        record->published = published;
        return;
    }
}

pl_status pl_experiments_read(pl_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        pl_record *record = &records->list[i];
        pl_experiment *e;
        PL_TRY(find_experiment(records, record, &e));
        if (e->own_json == NULL)
            continue;
        record->experiment = e;
        look_up(e, record);
    }
    return PL_OK;
}

void pl_experiments_close(pl_records *records)
{
    while (records->experiments != NULL) {
        pl_experiment *e = records->experiments;
        records->experiments = e->next;
        pl_mem_free(e->folder);
        pl_json_free(e->own_json);
        pl_mem_free(e);
    }
}

/* --- queries ---------------------------------------------------------- */

size_t pl_experiment_part(const pl_records *records, size_t first,
                          pl_records *part)
{
    size_t end = first;
    while (end < records->count &&
           records->list[end].experiment == records->list[first].experiment)
        end++;
    *part = *records;
    part->list = records->list + first;
    part->count = end - first;
    return end;
}

const char *pl_experiment_name(const pl_record *record)
{
    const pl_experiment *e = record->experiment;
    const char *slash = e != NULL ? strrchr(e->folder, '/') : NULL;
    if (e == NULL)
        return "";
    return slash != NULL && slash[1] != '\0' ? slash + 1 : e->folder;
}

void pl_experiment_title(const pl_record *record, char *text, size_t room)
{
    const pl_experiment *e = record->experiment;
    if (e != NULL && e->about.experiment != NULL && e->about.question != NULL)
        snprintf(text, room, "%s: %s", e->about.experiment, e->about.question);
    else
        snprintf(text, room, "%s", pl_experiment_name(record));
}

double pl_experiment_published(const pl_record *record, const char *result)
{
    double value;
    if (record->published == NULL || !pl_json_has(record->published, result) ||
        pl_json_get_real(record->published, result, &value) != PL_OK)
        return NAN;
    return value;
}

bool pl_experiment_machine_bound(const pl_records *records, const char *result)
{
    for (size_t i = 0; i < records->count; i++) {
        const pl_experiment *e = records->list[i].experiment;
        size_t count = e != NULL ? pl_json_length(e->about.machine_bound) : 0;
        for (size_t k = 0; k < count; k++) {
            const char *name;
            if (pl_json_as_text(pl_json_at(e->about.machine_bound, k), "",
                                &name) == PL_OK &&
                strcmp(name, result) == 0)
                return true;
        }
    }
    return false;
}

bool pl_experiment_comparable(const pl_record *record)
{
    return record->experiment != NULL && !record->experiment->about.other;
}
